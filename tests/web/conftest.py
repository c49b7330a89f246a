"""A client of the server of a library of three documents."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.support import served


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    with served.client(folder) as opened:
        yield opened


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runtime directory of the user, of which a socket's path may not be long."""
    place = tmp_path_factory.mktemp("run")
    place.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", os.fspath(place))
    return place
