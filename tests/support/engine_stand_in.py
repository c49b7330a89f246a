"""A stand-in for an engine with the interface of OpenAI: like Ollama, or one that tells odds, or that thinks."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass
class Engine:
    """What the stand-in says; `asked` are the bodies that it received."""

    reply: Callable[[str], str] = lambda _prompt: "The boat leaves at seven."
    models: tuple[dict[str, Any], ...] = ({"id": "llama3.2:3b"},)
    odds: dict[str, float] | None = None  # of the first token; None: it tells none, like Ollama
    refuses: tuple[str, ...] = ()  # fields that it does not accept
    thinks: bool = False  # whatever it is told
    raw: bytes | None = None  # sent instead of a reply
    status: int = 200
    slow: float = 0.0  # seconds before each piece
    asked: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        if request.command == "GET":
            self._send(request, 200, json.dumps({"object": "list", "data": self.models}).encode())
            return
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        self.asked.append(body)
        if self.status != 200 or any(name in body for name in self.refuses):
            status = self.status if self.status != 200 else 400
            self._send(request, status, b'{"error": {"message": "Unrecognized request argument"}}')
        elif self.raw is not None:
            self._send(request, 200, self.raw)
        elif body.get("logprobs"):
            self._send(request, 200, json.dumps(self._odds()).encode())
        else:
            self._stream(request, body)

    def _odds(self) -> dict[str, Any]:
        if self.odds is None:
            return {"choices": [{"message": {"content": "Yes"}, "logprobs": None}]}
        top = [{"token": token, "logprob": chance} for token, chance in self.odds.items()]
        return {"choices": [{"message": {"content": "Yes"}, "logprobs": {"content": [{"top_logprobs": top}]}}]}

    def _stream(self, request: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.end_headers()
        text = self.reply(body["messages"][-1]["content"])
        text = f"<think>{'Hm. ' * 100}</think>\n\n{text}" if self.thinks else text
        pieces = [text[start : start + 4] for start in range(0, len(text), 4)]
        for piece in pieces[: body["max_tokens"]]:
            time.sleep(self.slow)
            event = {"choices": [{"delta": {"content": piece}, "finish_reason": None}]}
            request.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
            request.wfile.flush()
        ended = "stop" if len(pieces) <= body["max_tokens"] else "length"
        request.wfile.write(
            b"data: " + json.dumps({"choices": [{"delta": {}, "finish_reason": ended}]}).encode() + b"\n\n"
        )
        request.wfile.write(b"data: [DONE]\n\n")

    def _send(self, request: BaseHTTPRequestHandler, status: int, content: bytes) -> None:
        request.send_response(status)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)


@contextmanager
def running(engine: Engine) -> Iterator[Engine]:
    """Serve a stand-in on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            engine.handle(self)

        def do_POST(self) -> None:
            engine.handle(self)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # the client went away

    server = Server(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    engine.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield engine
    finally:
        server.shutdown()
        server.server_close()
