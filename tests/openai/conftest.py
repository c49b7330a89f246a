"""A library of three documents, served as a chat's model."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from local_rag.openai.endpoint import chat_face
from tests.support import served

FACES = {"/v1/chat/completions": chat_face}


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    with served.client(folder, faces=FACES) as opened:
        yield opened
