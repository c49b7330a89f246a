"""A real HTTP server on loopback that answers as each test tells it to."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HTML = "text/html; charset=utf-8"
Handler = Callable[[BaseHTTPRequestHandler], None]


@dataclass(frozen=True)
class Reply:
    """A canned answer; a `Content-Length` is added unless `headers` holds one."""

    body: bytes | str = b""
    content_type: str | None = HTML
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def __call__(self, request: BaseHTTPRequestHandler) -> None:
        body = self.body.encode() if isinstance(self.body, str) else self.body
        request.send_response(self.status)
        headers = {"Content-Length": str(len(body)), **self.headers}
        if self.content_type is not None:
            headers["Content-Type"] = self.content_type
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)


def redirect(location: str) -> Reply:
    return Reply(status=302, headers={"Location": location})


def in_turn(*replies: Handler) -> Handler:
    """Give each reply once, in order, and the last one ever after."""
    left = list(replies)

    def answer(request: BaseHTTPRequestHandler) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(request)

    return answer


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    time: float


class WebServer:
    """`pages` maps a path to what answers it (404 if nothing does); `requests` is what came, in order."""

    def __init__(self, port: int, closing: threading.Event) -> None:
        self.port = port
        self.closing = closing
        self.pages: dict[str, Handler] = {}
        self.requests: list[Request] = []

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def paths(self) -> list[str]:
        """List the paths asked for, without robots.txt."""
        return [request.path for request in self.requests if request.path != "/robots.txt"]

    def last(self, path: str) -> Request:
        return [request for request in self.requests if request.path == path][-1]

    def hang(self, request: BaseHTTPRequestHandler) -> None:
        """Answer nothing until the test is over."""
        self.closing.wait(10)

    def drip(self, request: BaseHTTPRequestHandler) -> None:
        """Send a body byte by byte, without an end."""
        request.send_response(200)
        request.send_header("Content-Type", "text/plain")
        request.end_headers()
        while not self.closing.wait(0.05):
            request.wfile.write(b"x")

    def drip_headers(self, request: BaseHTTPRequestHandler) -> None:
        """Send headers byte by byte, without an end."""
        request.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
        while not self.closing.wait(0.05):
            request.wfile.write(b"x")

    def drip_interim_answers(self, request: BaseHTTPRequestHandler) -> None:
        """Announce an answer again and again."""
        while not self.closing.wait(0.05):
            request.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def drip_chunk_size(self, request: BaseHTTPRequestHandler) -> None:
        """Send the size of a body's first chunk byte by byte, without an end."""
        request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not self.closing.wait(0.05):
            request.wfile.write(b"0")

    def pour(self, request: BaseHTTPRequestHandler) -> None:
        """Send a body of undeclared length, without an end."""
        request.send_response(200)
        request.send_header("Content-Type", "text/plain")
        request.end_headers()
        while not self.closing.is_set():
            request.wfile.write(b"x" * 65536)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing when a client hangs up, which these tests make it do."""


@contextmanager
def web_server() -> Iterator[WebServer]:
    class RequestHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append(Request(self.path, dict(self.headers), time.monotonic()))
            site.pages.get(self.path, Reply("nothing here", status=404))(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    closing = threading.Event()
    with _Server(("127.0.0.1", 0), RequestHandler) as server:
        site = WebServer(server.server_address[1], closing)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield site
        finally:
            closing.set()
            server.shutdown()
            thread.join()
