"""A library of three documents, served as a chat's model."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from local_rag.openai.endpoint import chat_interface
from tests.support import served

INTERFACES = [chat_interface]


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    with served.client(folder, interfaces=INTERFACES) as opened:
        yield opened
