"""What the tools need of whoever holds the library: the server of the page, or a thread of this process."""

import asyncio
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from local_rag.errors import LocalRagError, StoppedError
from local_rag.library import Library
from local_rag.records import Answer, AskOptions, Filters, Passage
from local_rag.serialization import from_plain

T = TypeVar("T")
# Lets a running server of the library do a `search` or an `ask`; None where there is none that would.
AskServer = Callable[[Mapping[str, Any]], dict[str, Any] | None]


class Desk(Protocol):
    """Hold a library and its models, for one question after the other."""

    @property
    def library(self) -> Library:
        """Return the library, of which only what opens its own store may be called."""

    @property
    def loading(self) -> bool:
        """Say whether a search would wait for models that are still to be loaded."""

    def wake(self) -> None:
        """Load the models behind whoever asks, unless they are loaded."""

    def record(self, question: str, *, client: str) -> None:
        """Write down a question that is answered without the models, where questions are written down."""

    async def search(self, question: str, *, top: int, filters: Filters, client: str) -> Sequence[Passage]:
        """Search as `Library.search` does."""

    async def ask(self, question: str, *, client: str) -> Answer:
        """Answer as `Library.ask` does; who gives up waiting ends it."""


class OwnDesk:
    """Hold a library in a thread of this process, or let a running server of the same library answer.

    Models are loaded once they are wanted, unless a server has them, and freed after `idle_seconds` without a question.
    """

    def __init__(self, library: Library, ask_server: AskServer, is_served: Callable[[], bool]) -> None:
        self.library = library
        self._ask_server, self._is_served = ask_server, is_served
        self._work: queue.SimpleQueue[tuple[Callable[[Library], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._loaded = self._failed = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="library", daemon=True)
        self._thread.start()

    @property
    def loading(self) -> bool:
        """Say whether a search would wait for models."""
        return not (self._loaded or self._failed) and not self._is_served()

    def wake(self) -> None:
        """Load the models that search, unless they are loaded or a server has them."""
        if self.loading and self._work.empty():
            self._submit(lambda _library: None)

    def record(self, question: str, *, client: str) -> None:
        """Write nothing down: the one who asks is the user of this machine."""

    async def search(self, question: str, *, top: int, filters: Filters, client: str) -> Sequence[Passage]:
        """Search, best first."""
        order = {"do": "search", "question": question, "top": top, "options": AskOptions(filters=filters)}
        if served := await asyncio.to_thread(self._ask_server, order):
            return [from_plain(Passage, fields) for fields in served["found"]["passages"]]
        return await self._done(lambda library: library.search(question, top=top, filters=filters))

    async def ask(self, question: str, *, client: str) -> Answer:
        """Answer a question."""
        if served := await asyncio.to_thread(self._ask_server, {"do": "ask", "question": question}):
            answer: Answer = from_plain(Answer, served["found"]["answer"])
            return answer
        given_up = threading.Event()
        try:
            return await self._done(
                lambda library: library.ask(question, stop=lambda: given_up.is_set() or self._stopped.is_set())
            )
        finally:
            given_up.set()

    def close(self, seconds: float) -> bool:
        """End what is running and free the models; say whether that was done in so many seconds."""
        self._stopped.set()
        self._work.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    async def _done(self, work: Callable[[Library], T]) -> T:
        result: T = await asyncio.wrap_future(self._submit(work))
        return result

    def _submit(self, work: Callable[[Library], Any]) -> Future[Any]:
        result: Future[Any] = Future()
        self._work.put((work, result))
        return result

    def _run(self) -> None:
        while (job := self._next()) is not None:
            work, result = job
            if self._stopped.is_set() or not result.set_running_or_notify_cancel():
                continue
            try:
                self._load()
                done = work(self.library)
            except BaseException as error:  # noqa: BLE001  it is told to whoever waits; the thread goes on
                result.set_exception(error)
            else:
                result.set_result(done)
        with suppress(LocalRagError):
            self.library.close()

    def _next(self) -> tuple[Callable[[Library], Any], Future[Any]] | None:
        """Wait for work, None at the end; after a while without any free the models."""
        while True:
            try:
                return self._work.get(timeout=self.library.settings.idle_seconds if self._loaded else None)
            except queue.Empty:
                self.library.close()
                self._loaded = False

    def _load(self) -> None:
        """Load what searches; where that fails, so does the work, in words of its own."""
        if self._loaded:
            return
        try:
            self.library.load()
        except LocalRagError:
            self._failed = True
        else:
            self._loaded, self._failed = True, False
        if self._stopped.is_set():
            raise StoppedError("The answer was stopped.")
