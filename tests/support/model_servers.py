"""A fake Hugging Face Hub on loopback and tiny real wheels, for the tests of `pull`."""

import re
import zipfile
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Self


class FakeHub:
    """Serve files as the Hub does, with Range support, and misbehave on request.

    `files` maps "owner/name/resolve/revision/file" to contents. `drops` maps such a path to the byte counts after which
    successive responses break off; `on_drop` is called at that moment. `requests` records (path, first byte asked for),
    `tokens` how a client said who it is.
    """

    def __init__(self, files: Mapping[str, bytes]):
        self.files = dict(files)
        self.statuses: dict[str, int] = {}
        self.drops: dict[str, list[int]] = {}
        self.trickles: dict[str, float] = {}  # path -> seconds on `clock` before every further 10,000 bytes
        self.clock = 0.0
        self.on_drop: Callable[[], None] = lambda: None
        self.ignores_ranges = False
        self.requests: list[tuple[str, int]] = []
        self.tokens: set[str | None] = set()
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub._answer(self)

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.lstrip("/")
        asked = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
        start = int(asked[1]) if asked else 0
        self.requests.append((path, start))
        self.tokens.add(handler.headers.get("Authorization"))
        status = self.statuses.get(path, 200 if path in self.files else 404)
        if status != 200:
            handler.send_response(status)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        content = self.files[path]
        start = 0 if self.ignores_ranges else start
        if start >= len(content) > 0:
            handler.send_error(416)
            return
        handler.send_response(206 if start else 200)
        if start:
            handler.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        handler.send_header("Content-Length", str(len(content) - start))
        handler.send_header("ETag", '"0123456789abcdef"')
        handler.send_header("X-Repo-Commit", "0" * 40)
        handler.end_headers()
        if self.drops.get(path):
            handler.wfile.write(content[start : start + self.drops[path].pop(0)])
            handler.wfile.flush()
            self.on_drop()
            handler.close_connection = True
        elif path in self.trickles:
            for first in range(start, len(content), 10_000):
                self.clock += self.trickles[path]
                handler.wfile.write(content[first : first + 10_000])
        else:
            handler.wfile.write(content[start:])


def write_wheel(directory: Path, package: str, version: str, members: Mapping[str, bytes]) -> Path:
    """Build the smallest wheel that pip accepts, holding the members."""
    stem = f"{package.replace('-', '_')}-{version}"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        archive.writestr(
            f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{stem}.dist-info/RECORD", "")
    return path
