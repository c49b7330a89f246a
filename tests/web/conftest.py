"""A client of the server of a library of three documents."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.support import served


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    with served.client(folder) as opened:
        yield opened
