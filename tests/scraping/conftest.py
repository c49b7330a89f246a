from collections.abc import Iterator

import pytest

from tests.support.web_server import WebServer, web_server


@pytest.fixture
def site() -> Iterator[WebServer]:
    with web_server() as server:
        yield server
