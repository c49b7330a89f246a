"""A server with fakes for its models, in this process: over ASGI for most tests, on a port for the browser's."""

import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from local_rag.answer_records import Answer, Written
from local_rag.errors import StoppedError
from local_rag.library import Library, Parts
from local_rag.llama.generator import Request, Token
from local_rag.serving.http import Interface
from local_rag.serving.served_models import open_library
from local_rag.serving.worker import LibraryWorker
from local_rag.web.app import make_app
from local_rag.web.changes.document_changes import COMMAND
from local_rag.web.gate.authentication import Access
from local_rag.web.gate.connections import Connections
from local_rag.web.gate.guard import Limits
from local_rag.web.listening import allowed_hosts, server_config
from tests.fakes import QUICK, FakeGenerator, generating

PORT = 8000
ADDRESS = f"http://127.0.0.1:{PORT}"
QUESTION = "When does the boat leave the harbour?"
ENDLESS = "Tell me of the boat without end"
DOUBTED = "Does the boat leave the harbour at nine?"


def reply(prompt: str) -> str:
    """Answer what the documents of the fixture hold."""
    return "The boat leaves the harbour at seven. It carries **twelve** people."


class Talker(FakeGenerator):
    """A generator that writes slowly, halts if told so, to one question never ends, and has doubts about another."""

    def __init__(self) -> None:
        super().__init__(reply, lambda prompt: DOUBTED not in prompt, context_tokens=100_000)
        self.pause = 0.002
        self.going, self.stopped = threading.Event(), threading.Event()
        self.may_end = threading.Event()  # an answer halts in the middle until this is set
        self.may_end.set()

    def stream(self, requests: Iterable[Request]) -> Generator[Token]:
        for request in requests:
            endless = ENDLESS in self._text(request)
            while endless:
                self.going.set()
                yield Token(request.key, ord("x"))
                time.sleep(0.02)
                if self.stop():
                    self.stopped.set()
                    raise StoppedError("The answer was stopped.")
            for number, token in enumerate(super().stream([request])):
                if number == 10:
                    self.may_end.wait(60)
                time.sleep(self.pause)
                yield token


class Streaming(Library):
    """A library that tells an answer word by word, with a sentence too many that the end of the text replaces.

    Before that it waits until `may_strike` is set.
    """

    STRUCK = " It carries 99 people."

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.may_strike = threading.Event()
        self.may_strike.set()

    def ask(self, *given: Any, on_text: Callable[[Written], None] = lambda _written: None, **more: Any) -> Answer:
        """Answer, and tell the words of the answer."""
        answer = super().ask(*given, **more)
        first, *rest = answer.text.partition(" It ")
        for number, word in enumerate((first + self.STRUCK).split(" ")):
            on_text(Written(f" {word}" if number else word))
        self.may_strike.wait(60)
        on_text(Written(first, replaces=True))
        on_text(Written("".join(rest)))
        return answer


def parts(answer: Callable[[str], str] = reply, holds: Callable[[str], bool] = lambda _prompt: True) -> Parts:
    """Return fakes that answer by a function."""
    return replace(QUICK, open_engine=generating(FakeGenerator(answer, holds, context_tokens=100_000)))


def index(documents: Path, folder: Path, **settings: Any) -> None:
    """Index a folder without models."""
    with Library(folder, parts=QUICK, profile="tiny", **{"context": "headings", **settings}) as library:
        library.index([documents], contexts=settings.get("context") == "auto")


def worker(
    folder: Path,
    made_of: Parts | None = None,
    *,
    idle_seconds: float = 900.0,
    turn: AbstractContextManager[Any] | None = None,
    **settings: Any,
) -> LibraryWorker:
    """Hold a library with fakes in a thread of its own."""
    return LibraryWorker(
        lambda: open_library(folder, made_of or parts(), **settings),
        idle_seconds=idle_seconds,
        turn=turn or nullcontext(),
    )


@contextmanager
def client(
    folder: Path,
    made_of: Parts | None = None,
    *,
    token: str = "",
    limits: Limits | None = None,
    interfaces: Sequence[Interface] = (),
    may_add: Sequence[Path] = (),
    maintain: Sequence[str] = COMMAND,
    **settings: Any,
) -> Iterator[TestClient]:
    """Start the application over ASGI, wait until it is ready, and yield a client for it."""
    app = make_app(
        worker(folder, made_of, **settings),
        hosts=allowed_hosts("127.0.0.1", PORT, ()),
        access=Access(token),
        limits=limits or Limits(),
        interfaces=interfaces,
        may_add=may_add,
        maintain=maintain,
    )
    with TestClient(app, base_url=ADDRESS, follow_redirects=False) as opened:
        wait_until(lambda: opened.get("/healthz").json()["ready"])
        yield opened


@contextmanager
def server(app: ASGIApp, connections: Connections | None = None) -> Iterator[str]:
    """Run an application on a port of its own; yield its address. The hosts must allow every port of this machine."""
    listener = socket.create_server(("127.0.0.1", 0))
    running = uvicorn.Server(server_config(app, connections or Connections()))
    thread = threading.Thread(target=running.run, args=([listener],))
    thread.start()
    try:
        wait_until(lambda: running.started)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join()


@contextmanager
def command_line_server(folder: Path, made_of: Parts | None = None, **settings: Any) -> Iterator[LibraryWorker]:
    """Serve a library to the command line too."""
    held = worker(folder, made_of, **settings)
    app = make_app(held, hosts=allowed_hosts("127.0.0.1", PORT, ()), with_socket=True)
    with TestClient(app, base_url=ADDRESS) as opened:
        wait_until(lambda: opened.get("/healthz").json()["ready"])
        yield held


def wait_until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for a condition; fail where it never comes to hold."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
