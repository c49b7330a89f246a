"""The one thread that owns the library: work waits in a queue, is told its place, and can be stopped."""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from local_rag.errors import BusyError, LocalRagError, StoppedError
from local_rag.files import SETTINGS_FILE
from local_rag.library import Library

MAX_WAITING, MAX_WAITING_OF_ONE = 64, 16

Tell = Callable[[str, Any], None]


def _tell_nobody(_event: str, _value: Any) -> None:
    pass


@dataclass(eq=False, slots=True)
class Job:
    """A piece of work on the library.

    `tell` is called in the owner's thread, or in one that changes the queue: with "queue" and the number of jobs ahead
    whenever that changes, and with whatever the work itself has to tell.
    """

    work: Callable[[Library, "Job"], Any]
    tell: Tell = _tell_nobody
    client: str = ""
    result: Future[Any] = field(default_factory=Future)
    stopped: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Raise StoppedError once nobody wants the result any more."""
        if self.stopped.is_set():
            raise StoppedError("The answer was stopped.")


class Owner:
    """Hold a library in a thread of its own, and do one job after another with it.

    Its models are loaded at the start, freed after `idle_seconds` without work, and loaded again when they are needed.
    `open_library` is called again when another process has changed the settings that the library was opened under.
    """

    def __init__(self, open_library: Callable[[], Library], *, idle_seconds: float) -> None:
        self._open_library, self._idle_seconds = open_library, idle_seconds
        self._library = open_library()
        self._stamp = self._settings_stamp()
        self._changed = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._running: Job | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="library", daemon=True)
        self.ready = self.loaded = self._loading = False
        self.problem = ""

    @property
    def library(self) -> Library:
        """Return the library; of other threads only what opens its own store may be called."""
        return self._library

    @property
    def loading(self) -> bool:
        """Say whether work would wait for models that are still to be loaded."""
        return self._loading or not (self.loaded or self.problem)

    def start(self) -> None:
        """Begin to work, by loading the models."""
        self._thread.start()
        self.wake()

    def close(self) -> None:
        """Stop what is running, drop what waits, and free the models."""
        with self._changed:
            self._closed = True
            for job in (*self._waiting, *([self._running] if self._running else ())):
                job.stopped.set()
            self._changed.notify_all()
        self._thread.join()

    def wake(self) -> None:
        """Load the models behind whoever asks, unless they are loaded or about to be."""
        with self._changed:
            wanted = not self.loaded and not self._waiting and self._running is None and not self._closed
        if wanted:
            self.submit(lambda _library, _job: None)

    def submit(self, work: Callable[[Library, Job], Any], tell: Tell = _tell_nobody, client: str = "") -> Job:
        """Queue work and return its job; raise BusyError where too much of everybody's or this client's waits."""
        job = Job(work, tell, client)
        job.result.set_running_or_notify_cancel()  # whoever waits may give up, which ends nothing: `stop` does
        with self._changed:
            of_one = sum(waiting.client == client for waiting in self._waiting)
            if len(self._waiting) >= MAX_WAITING or (client and of_one >= MAX_WAITING_OF_ONE):
                raise BusyError("Too many questions are waiting; ask again when some are answered.")
            self._waiting.append(job)
            if self._running or len(self._waiting) > 1:
                job.tell("queue", len(self._waiting))
            self._changed.notify_all()
        return job

    def stop(self, job: Job) -> None:
        """End a job: one that waits at once, one that runs between two operations of its model."""
        job.stopped.set()
        with self._changed:
            if job in self._waiting:
                self._waiting.remove(job)
                self._tell_places()
                job.result.set_exception(StoppedError("The answer was stopped."))

    def _tell_places(self) -> None:
        for place, job in enumerate(self._waiting, start=1):
            job.tell("queue", place if self._running else place - 1)

    def _run(self) -> None:
        while (job := self._next()) is not None:
            try:
                self._refresh()
                self._load()
                job.check()
                result = job.work(self._library, job)
            except BaseException as error:  # noqa: BLE001  it is told to whoever waits; the thread goes on
                job.result.set_exception(error)
            else:
                job.result.set_result(result)
        for job in self._waiting:
            job.result.set_exception(StoppedError("The server was stopped."))
        self._library.close()

    def _next(self) -> Job | None:
        """Wait for a job, None at the end; after a while without one free the models."""
        with self._changed:
            self._running = None
            deadline = time.monotonic() + self._idle_seconds
            while not self._waiting and not self._closed:
                left = deadline - time.monotonic() if self.loaded else None
                if left is not None and left <= 0:
                    self._library.close()
                    self.loaded = False
                else:
                    self._changed.wait(left)
            if self._closed:
                return None
            self._running = self._waiting.popleft()
            self._running.tell("queue", 0)
            self._tell_places()
            return self._running

    def _load(self) -> None:
        """Load the models; where those that answer are missing, what can be searched is."""
        if self.loaded:
            return
        self.problem, self._loading = "", True
        try:
            self._library.load()
            self.ready = self.loaded = True
            self._library.load(answering=True)
        except LocalRagError as error:
            self.problem = str(error)
        finally:
            self._loading = False

    def _refresh(self) -> None:
        """Open the library anew where its settings have changed: by the user's file, or by another `index`."""
        if (stamp := self._settings_stamp()) == self._stamp:
            return
        library = self._open_library()
        if library.settings != self._library.settings:
            self._library.close()
            self._library, self.loaded = library, False
        self._stamp = stamp

    def _settings_stamp(self) -> tuple[Any, ...]:
        folder, found = self._library.folder, list[Any]()
        for name in (SETTINGS_FILE, "CURRENT"):
            try:
                status = (folder / name).stat()
                found.append((status.st_ino, status.st_mtime_ns, status.st_size))
            except OSError:
                found.append(None)
        return tuple(found)
