"""The one thread that owns a library: it does one job after another, and the others wait in a queue.

A search does not wait for all answers that were asked for before it: a job that takes long lets later ones pass for a
while, and so do the second and third one of a client.
"""

import threading
import time
from bisect import insort
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from statistics import median
from typing import Any, TypeVar

from local_rag.errors import BusyError, LocalRagError, StoppedError
from local_rag.files import SETTINGS_FILE, state_of
from local_rag.library import Library
from local_rag.serving.job import Job, QueuePosition

_PATIENCE = 5.0  # seconds for which a job lets later ones pass, for each second that it usually takes
MAX_WAITING, MAX_WAITING_OF_ONE = 64, 16
_REMEMBERED = 20  # jobs of each kind by whose time it is told how long others will take

T = TypeVar("T")


class LibraryWorker:
    """Hold a library in a thread of its own.

    Models are loaded for the first job, freed after `idle_seconds` without one (the library's setting by default), and
    loaded again when they are needed; with `answering` the model that answers is loaded together with those that
    search. `open_library` is called again when another process has changed the settings of the library. Workers whose
    libraries share models also share a `turn`, in which one of them at a time works.
    """

    def __init__(
        self,
        open_library: Callable[[], Library],
        *,
        idle_seconds: float | None = None,
        answering: bool = True,
        max_waiting: int = MAX_WAITING,
        turn: AbstractContextManager[Any] = nullcontext(),  # noqa: B008
    ) -> None:
        self._turn = turn
        self._open_library, self._answering, self._max_waiting = open_library, answering, max_waiting
        self._library = open_library()
        self._idle_seconds = idle_seconds
        self._stamp = self._settings_stamp()
        self._changed = threading.Condition()
        self._waiting = list[Job[Any]]()  # in the order in which they are done
        self._running: Job[Any] | None = None
        self._began = self._ended = time.monotonic()
        self._took = defaultdict[str, deque[float]](lambda: deque(maxlen=_REMEMBERED))
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="library", daemon=True)
        self.ready = self.loaded = self._loading = False
        self.on_answering: Callable[[bool], None] = lambda _answering: None  # called when work begins, and when it ends
        self.problem = ""

    @property
    def library(self) -> Library:
        """Return the library; other threads may call only what opens its own store."""
        return self._library

    def current_library(self) -> Library:
        """Return the library with the settings that count from the next question on, for what opens its own store."""
        return self._library if self._settings_stamp() == self._stamp else self._open_library()

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return len(self._waiting)

    @property
    def unasked_seconds(self) -> float:
        """How long nothing was asked; 0 while something is."""
        return 0.0 if self._running or self._waiting else time.monotonic() - self._ended

    @property
    def quiet_seconds(self) -> float:
        """How long nothing was asked of a library whose models are loaded; 0 while something is, or before they are."""
        return self.unasked_seconds if self.loaded else 0.0

    @property
    def shares_turns(self) -> bool:
        """Whether the jobs of other workers wait while one of this one runs."""
        return not isinstance(self._turn, nullcontext)

    @property
    def loading(self) -> bool:
        """Whether a job would wait for models that are still to be loaded."""
        return (self._loading or not self.loaded) and not self.problem

    def start(self) -> None:
        """Start the thread, without loading any model yet."""
        self._thread.start()

    def close(self, seconds: float | None = None) -> bool:
        """Stop the running job, drop the waiting ones and free the models; return whether `seconds` were enough."""
        with self._changed:
            self._closed = True
            for job in (*self._waiting, *([self._running] if self._running else ())):
                job.stopped.set()
            self._changed.notify_all()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def wake(self) -> None:
        """Load the models in the background, unless they are loaded or about to be."""
        with self._changed:
            wanted = not self.loaded and not self._waiting and self._running is None and not self._closed
        if wanted:
            self.submit(Job(lambda _library, _job: None))

    def submit(self, job: Job[T]) -> Job[T]:
        """Queue a job and return it; raise BusyError where too many jobs wait, or too many of this client."""
        job.result.set_running_or_notify_cancel()  # cancelling the future ends nothing, `stop` does
        job.on_stop = self._drop
        with self._changed:
            if self._closed:
                raise StoppedError("The server was stopped.")
            of_one = sum(waiting.client == job.client for waiting in self._waiting)
            if len(self._waiting) >= self._max_waiting or (job.client and of_one >= MAX_WAITING_OF_ONE):
                raise BusyError("Too many questions are waiting; ask again when some are answered.")
            turns = 1 + of_one if job.client else 1
            job.due = time.monotonic() + _PATIENCE * turns * (self._usual(job.kind) or 0.0)
            insort(self._waiting, job, key=lambda one: one.due)
            if self._running or len(self._waiting) > 1:
                self._tell_positions(self._waiting.index(job))
            self._changed.notify_all()
        return job

    def _drop(self, job: Job[Any]) -> None:
        with self._changed:
            if job in self._waiting:
                self._waiting.remove(job)
                self._tell_positions()
                job.result.set_exception(StoppedError("The answer was stopped."))

    def _tell_positions(self, first: int = 0) -> None:
        for place, job in enumerate(self._waiting[first:], start=first):
            job.tell(self._position(place))

    def _position(self, place: int) -> QueuePosition:
        """Return what stands before the job at a place of the queue, and how long that may take by earlier jobs."""
        before = self._waiting[:place]
        times = [self._usual(job.kind) for job in before]
        if self._running:
            usual = self._usual(self._running.kind)
            times.append(None if usual is None else max(0.0, usual - (time.monotonic() - self._began)))
        known = [one for one in times if one is not None]
        return QueuePosition(len(times), round(sum(known), 1) if len(known) == len(times) else None)

    def _usual(self, kind: str) -> float | None:
        """Return how many seconds a job of a kind has taken, None if none was done yet."""
        took = self._took.get(kind)
        return median(took) if took else None

    def _run(self) -> None:
        while not self._closed:
            job = self._next()
            if job:
                with self._turn:
                    self._began = time.monotonic()
                    self._do(job)
                    if not job.stopped.is_set():
                        self._took[job.kind].append(time.monotonic() - self._began)
            elif self.loaded and not self._closed:
                with self._turn:
                    self._library.close()  # nobody has asked for a while
                self.loaded = False
        with self._changed:  # from now on nobody else takes a job out, and none comes in
            left, self._waiting = self._waiting, []
        for job in left:
            job.result.set_exception(StoppedError("The server was stopped."))
        with suppress(LocalRagError), self._turn:
            self._library.close()

    def _do(self, job: Job[Any]) -> None:
        """Do a job, and load the model that answers once nobody waits."""
        try:
            self._refresh()
            if (result := job.forward(job)) is None:
                self._load()
                job.check()
                result = job.work(self._library, job)
            if not job.wanted():
                raise StoppedError("The answer was stopped.")
        except BaseException as error:  # noqa: BLE001  the caller gets it; the thread continues
            job.result.set_exception(error)
        else:
            job.result.set_result(result)
        if self._answering and self.loaded and not self._waiting and not self._closed:
            self._load(answering=True)

    def _next(self) -> Job[Any] | None:
        """Wait for a job; None at the end, or after a while without one in which models were loaded."""
        self.on_answering(False)
        with self._changed:
            self._running, self._ended = None, time.monotonic()
            idle = self._library.settings.idle_seconds if self._idle_seconds is None else self._idle_seconds
            self._changed.wait_for(lambda: self._waiting or self._closed, idle if self.loaded else None)
            if self._closed or not self._waiting:
                return None
            self._running, self._began = self._waiting.pop(0), time.monotonic()
            self.on_answering(True)
            self._running.tell(QueuePosition(0, self._usual(self._running.kind)))
            self._tell_positions()
            return self._running

    def _load(self, *, answering: bool = False) -> None:
        """Load the models that search, or also the one that answers; without that one the library can be searched."""
        if self.loaded and not answering:
            return
        problem, self._loading = "", True
        try:
            self._library.retrieval.load()
            if answering:
                self._library.answering.load()
            self.ready = self.loaded = True
        except LocalRagError as error:
            problem = str(error)
        finally:
            self.problem, self._loading = problem, False

    def _refresh(self) -> None:
        """Open the library again where its settings have changed: in the user's file, or by another `index`."""
        if (stamp := self._settings_stamp()) == self._stamp:
            return
        library = self._open_library()
        if library.settings != self._library.settings:
            self._library.close()
            self._library, self.loaded = library, False
        self._stamp = stamp

    def _settings_stamp(self) -> tuple[Any, ...]:
        with suppress(OSError):
            return tuple(state_of(self._library.folder / name) for name in (SETTINGS_FILE, "CURRENT"))
        return ()
