"""No connection is kept for a client that sends no request or reads no answer, however many there are."""

import json
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from local_rag.serving.requests import client_key
from local_rag.web.app import make_app
from local_rag.web.gate.authentication import Access
from local_rag.web.gate.connections import Connections, most_connections
from tests.support import served

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1"


@contextmanager
def serving(folder: Path, connections: Connections) -> Iterator[tuple[str, int]]:
    allowed = {f"127.0.0.1:{port}" for port in range(1, 65536)}
    with served.server(make_app(served.worker(folder), hosts=allowed), connections) as address:
        yield "127.0.0.1", urlsplit(address).port or 0


def answers(place: tuple[str, int]) -> float:
    """Return how long the server takes to say that it is there."""
    began = time.monotonic()
    with urllib.request.urlopen(f"http://{place[0]}:{place[1]}/healthz", timeout=20) as answer:
        assert "ready" in json.load(answer)
    return time.monotonic() - began


def is_closed(opened: socket.socket) -> bool:
    """Return whether the other side has ended a connection."""
    opened.settimeout(20)
    try:
        return opened.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("sent", [b"", b"G", HALF, HALF + b"\r\nX: y\r\n"])
def test_a_request_that_does_not_come_ends_its_connection(folder: Path, sent: bytes) -> None:
    with serving(folder, Connections(seconds=0.3)) as place, socket.create_connection(place) as opened:
        opened.sendall(sent)
        began = time.monotonic()
        assert is_closed(opened)
        assert time.monotonic() - began < 10


def test_sending_a_sign_now_and_then_keeps_no_connection(folder: Path) -> None:
    """Neither before the first request, nor after an answer whose request has a body that is not needed."""
    with serving(folder, Connections(seconds=0.5)) as place:
        port = place[1]
        for beginning in (b"", f"POST /nothing HTTP/1.1\r\nHost: x:{port}\r\nContent-Length: 999\r\n\r\n".encode()):
            with socket.create_connection(place) as opened:
                opened.sendall(beginning)
                ended = threading.Event()

                def dribble(opened: socket.socket = opened, ended: threading.Event = ended) -> None:
                    try:
                        for _ in range(400):
                            opened.sendall(b"G")
                            if ended.wait(0.05):
                                return
                    except OSError:
                        ended.set()

                thread = threading.Thread(target=dribble)
                thread.start()
                assert ended.wait(15), "the server never closed it"
                thread.join()


def test_connections_that_are_used_again_stay(folder: Path) -> None:
    with serving(folder, Connections(seconds=1.0)) as place, socket.create_connection(place) as opened:
        for _ in range(5):
            opened.sendall(f"GET /static/page.css HTTP/1.1\r\nHost: 127.0.0.1:{place[1]}\r\n\r\n".encode())
            assert opened.recv(15) == b"HTTP/1.1 200 OK"
            opened.settimeout(0.3)
            try:
                while opened.recv(65536):
                    pass
            except TimeoutError:
                opened.settimeout(20)


@pytest.mark.slow
def test_1300_half_requests_leave_the_server_answering(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    most_connections()
    with serving(folder, Connections()) as place, ExitStack() as stack:
        for _ in range(1300):
            opened = stack.enter_context(socket.create_connection(place, timeout=20))
            opened.sendall(HALF)
        assert max(answers(place) for _ in range(20)) < 2
    assert len(capfd.readouterr().err) < 2000, "the log does not grow"


def test_connections_to_a_busy_server_wait_and_later_ones_take_no_place_of_a_request() -> None:
    """The system would try again only after a second what it refuses."""
    busy = threading.Event()

    async def work(request: Request) -> Response:
        if request.url.path == "/busy":
            busy.set()
            time.sleep(3)  # the event loop has much to do
        return Response()

    with served.server(Starlette(routes=[Route("/{name}", work)])) as address, ExitStack() as stack:
        place = "127.0.0.1", urlsplit(address).port or 0

        def connect(sent: bytes = b"") -> socket.socket:
            opened = stack.enter_context(socket.create_connection(place, timeout=0.9))
            opened.sendall(sent)
            return opened

        connect(b"GET /busy HTTP/1.1\r\nHost: x\r\n\r\n")
        assert busy.wait(20)
        first = connect(b"GET /quick HTTP/1.1\r\nHost: x\r\n\r\n")
        for _ in range(500):
            connect()
        first.settimeout(20)
        assert first.recv(12) == b"HTTP/1.1 200"


def test_clients_that_leave_before_their_bodies_leave_nothing_in_the_log(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(folder, Connections()) as place:
        for target in ("login", "ask", "library/add"):
            with socket.create_connection(place) as opened:
                opened.sendall(
                    f"POST /{target} HTTP/1.1\r\nHost: 127.0.0.1:{place[1]}\r\nContent-Length: 9\r\n"
                    "Content-Type: application/x-www-form-urlencoded\r\n\r\nt".encode()
                )
                time.sleep(0.3)
        assert answers(place) < 20
    assert capfd.readouterr().err == ""


def test_a_new_connection_takes_the_place_of_the_oldest_that_waits(folder: Path) -> None:
    with serving(folder, Connections(most_of_one=3)) as place, ExitStack() as stack:
        first, *others = [stack.enter_context(socket.create_connection(place)) for _ in range(3)]
        for opened in (first, *others):
            opened.sendall(HALF)
            time.sleep(0.1)
        assert answers(place) < 5
        assert is_closed(first)
        others[-1].settimeout(0.1)
        with pytest.raises(TimeoutError):
            others[-1].recv(1)


def test_a_client_that_does_not_read_is_left(folder: Path, documents: Path) -> None:
    (documents / "boat.txt").write_bytes(b"x" * 40_000_000)
    with serving(folder, Connections(read_seconds=0.3)) as place, socket.create_connection(place) as opened:
        number = next(number for number in (1, 2, 3) if b"boat.txt" in file_head(place, number))
        opened.sendall(f"GET /document/{number}/file HTTP/1.1\r\nHost: 127.0.0.1:{place[1]}\r\n\r\n".encode())
        time.sleep(2)
        opened.settimeout(20)
        received = 0
        try:
            while part := opened.recv(1_000_000):
                received += len(part)
        except ConnectionError:
            pass
        assert received < 40_000_000


def file_head(place: tuple[str, int], number: int) -> bytes:
    """Return the beginning of the answer that holds a document's file."""
    with socket.create_connection(place) as opened:
        opened.sendall(f"GET /document/{number}/file HTTP/1.1\r\nHost: 127.0.0.1:{place[1]}\r\n\r\n".encode())
        return opened.recv(400)


def test_one_client_of_ipv6_is_a_whole_network() -> None:
    assert client_key("2001:db8:1:2:3::4") == client_key("2001:db8:1:2:ffff::") == "2001:db8:1:2::/64"
    assert client_key("2001:db8:1:3::4") != client_key("2001:db8:1:2::4")
    assert client_key("::ffff:192.0.2.7") == client_key("192.0.2.7") == "192.0.2.7"
    assert client_key("testclient") == "testclient"


def slow(place: tuple[str, int], more: str = "") -> socket.socket:
    """Send the headers of a form to log in, and one letter of its body."""
    opened = socket.create_connection(place)
    opened.sendall(f"POST /login HTTP/1.1\r\nHost: {place[0]}:{place[1]}\r\nContent-Length: 99\r\n{more}\r\nt".encode())
    return opened


def test_bodies_of_strangers_that_do_not_come_make_room_for_others(folder: Path) -> None:
    allowed = {f"127.0.0.1:{port}" for port in range(1, 65536)}
    app = make_app(served.worker(folder), hosts=allowed, access=Access("a-token-of-the-owner"))
    with served.server(app, Connections(most_of_one=8)) as address, ExitStack() as stack:
        place = "127.0.0.1", urlsplit(address).port or 0
        held = [stack.enter_context(slow(place)) for _ in range(8)]
        assert answers(place) < 10
        assert is_closed(held[0])


def test_behind_a_proxy_connections_count_for_the_client_that_it_tells(folder: Path) -> None:
    allowed = {f"127.0.0.1:{port}" for port in range(1, 65536)}
    app = make_app(served.worker(folder), hosts=allowed, access=Access("a-token-of-the-owner"), behind_proxy=True)
    with served.server(app, Connections(most_of_one=2, behind_proxy=True)) as address, ExitStack() as stack:
        place = "127.0.0.1", urlsplit(address).port or 0
        one, two, other = (
            stack.enter_context(slow(place, f"X-Forwarded-For: {client}\r\n"))
            for client in ("192.0.2.1", "192.0.2.1", "192.0.2.2")
        )
        time.sleep(0.3)
        stack.enter_context(slow(place, "X-Forwarded-For: 192.0.2.1\r\n"))
        assert is_closed(one)
        for kept in (two, other):
            kept.settimeout(0.2)
            with pytest.raises(TimeoutError):
                kept.recv(1)
