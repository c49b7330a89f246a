"""A piece of work for the thread that owns a library, and the events that tell how it goes."""

import asyncio
import sys
import threading
import traceback
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from local_rag.answer_records import BeingRead, Written
from local_rag.errors import LocalRagError, StoppedError
from local_rag.library import Library
from local_rag.passage_records import Passage
from local_rag.progress_records import Progress

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """Report how many jobs run before this one, and in how many seconds they may be done.

    There are 0 once it runs, and the `seconds` are those that it may take; None where no such job was done before.
    """

    ahead: int
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class PassagesFound:
    """Report what was found for a question that is being answered."""

    passages: Sequence[Passage]


@dataclass(frozen=True, slots=True)
class Ping:
    """Report that nothing else has happened for a while."""


@dataclass(frozen=True, slots=True)
class Result(Generic[T]):
    """Report the result; it is the last event."""

    value: T


@dataclass(frozen=True, slots=True)
class Failure:
    """Report that there is no result; it is the last event. Other errors than local-rag's own are printed."""

    error: BaseException

    @property
    def expected(self) -> bool:
        """Whether the error is one of local-rag's own, whose sentence is for the user."""
        return isinstance(self.error, LocalRagError)

    @property
    def message(self) -> str:
        """Return the sentence for the user."""
        return str(self.error) if self.expected else "The answer failed; see what `local-rag serve` has printed."


Event: TypeAlias = QueuePosition | PassagesFound | Progress | BeingRead | Written | Ping | Result[T] | Failure


def failure(error: BaseException) -> Failure:
    """Return the event of an error; print the traceback of one that is not local-rag's own."""
    failed = Failure(error)
    if not failed.expected:
        traceback.print_exception(error, file=sys.stderr)
    return failed


@dataclass(eq=False, slots=True)
class Job(Generic[T]):
    """Work on a library, which `LibraryWorker.submit` queues; jobs of a `kind` take about as long as each other.

    `forward` is tried first, without any model; where it returns None, `work` is done. The result is given to nobody
    once it is not `wanted` any more. Of those that wait, the one that is `due` first is done next. `tell` may be called
    in any thread; one reader takes the events.
    """

    work: Callable[[Library, "Job[T]"], T]
    client: str = ""
    kind: str = ""
    forward: Callable[["Job[T]"], T | None] = lambda _job: None
    wanted: Callable[[], bool] = lambda: True
    on_stop: Callable[["Job[T]"], None] = lambda _job: None
    due: float = 0.0
    result: Future[T] = field(default_factory=Future)
    stopped: threading.Event = field(default_factory=threading.Event)
    _told: deque[Event[T]] = field(default_factory=deque)
    _notify: Callable[[], None] = lambda: None

    def tell(self, event: Event[T]) -> None:
        """Add an event."""
        self._told.append(event)
        self._notify()

    def check(self) -> None:
        """Raise StoppedError once nobody wants the result any more."""
        if self.ended():
            raise StoppedError("The answer was stopped.")

    def ended(self) -> bool:
        """Return whether nobody wants the result any more."""
        return self.stopped.is_set() or not self.wanted()

    def stop(self) -> None:
        """End the job: at once if it waits, between two operations of its model if it runs."""
        self.stopped.set()
        self.on_stop(self)

    async def outcome(self) -> T:
        """Wait for the result; a caller that stops waiting stops the job."""
        try:
            return await asyncio.wrap_future(self.result)
        finally:
            self.stop()

    async def events(self, ping: float) -> AsyncGenerator[Event[T]]:
        """Yield what happens, a Ping after each `ping` seconds without news, and last a Result or a Failure.

        A caller that closes this iterator stops the job.
        """
        news, loop = asyncio.Event(), asyncio.get_running_loop()

        def notify() -> None:
            with suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(news.set)

        self._notify = notify
        self.result.add_done_callback(lambda _result: notify())
        try:
            while True:
                news.clear()
                done = self.result.done()
                while self._told:
                    yield self._told.popleft()
                if done:
                    break
                try:
                    # wait_for may swallow a cancellation that arrives together with an event.
                    async with asyncio.timeout(ping):
                        await news.wait()
                except TimeoutError:
                    yield Ping()
            error = self.result.exception()
            yield failure(error) if error else Result(self.result.result())
        finally:
            self.stop()
