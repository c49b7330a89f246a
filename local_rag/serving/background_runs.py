"""Files of questions and saved tables, which are asked in the background: one part of each run after another.

Runs take turns, so each gets on, and no more than one part waits in the queue beside the questions of people.
"""

import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from local_rag.errors import BusyError, LocalRagError, QuestionError
from local_rag.extraction.saved_tables import SavedTable
from local_rag.serving.job import Job
from local_rag.serving.requests import AskRequest, Caller
from local_rag.serving.service import Service

T = TypeVar("T")
_BUSY_SECONDS = 1.0
_MOST_RUNNING, _MOST_ENDED = 20, 200


@dataclass(frozen=True, slots=True)
class RunView:
    """Whether something is being asked, the seconds `left` if they can be told, why it ended, what could not be asked.

    `failed` holds questions with reasons.
    """

    running: bool = False
    left: float | None = None
    message: str = ""
    failed: tuple[tuple[str, str], ...] = ()


@dataclass(eq=False, slots=True)
class Run:
    """What is asked for somebody."""

    id: str
    caller: Caller
    began: float = field(default_factory=time.monotonic)
    ended: bool = False
    message: str = ""
    job: Job[Any] | None = None


RunT = TypeVar("RunT", bound=Run)


class BackgroundRuns(ABC, Generic[RunT]):
    """Do the runs of one library until it is closed."""

    thread: ClassVar[str]
    too_many: ClassVar[str]  # what is said to who wants one more
    stopped: ClassVar[str]  # what is said of a run that a person has stopped

    def __init__(self, service: Service) -> None:
        self._service = service
        self._changed = threading.Condition()
        self._waiting = deque[RunT]()
        self._runs = dict[str, RunT]()  # the last one of each id
        self._thread: threading.Thread | None = None
        self._closed = False

    @abstractmethod
    def _go_on(self, run: RunT) -> bool:
        """Do the next part of a run; return whether there may be more."""

    def stop(self, identifier: str) -> None:
        """Stop a run; what it has answered is kept."""
        with self._changed:
            if run := self._running(identifier):
                self._end(run, self.stopped)

    def close(self) -> None:
        """Stop all."""
        with self._changed:
            self._closed = True
            for run in self._runs.values():
                self._end(run, run.message)
            self._changed.notify_all()

    def _running(self, identifier: str) -> RunT | None:
        run = self._runs.get(identifier)
        return run if run and not run.ended else None

    def _require_room(self) -> None:
        """Raise BusyError if too much is done already; the caller holds the lock."""
        if self._closed or sum(not run.ended for run in self._runs.values()) >= _MOST_RUNNING:
            raise BusyError(self.too_many)

    def _begin(self, run: RunT) -> None:
        """Let a run take its turns; the caller holds the lock."""
        for key in [key for key, one in self._runs.items() if one.ended][:-_MOST_ENDED]:
            del self._runs[key]
        self._runs[run.id] = run
        self._waiting.append(run)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self.thread, daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _submit(self, run: RunT, submit: Callable[[Caller], Job[T]]) -> Job[T] | None:
        """Queue a job for who wanted the run; None if the run was stopped or the person removed."""
        person = self._service.library.people.present(run.caller.person)
        with self._changed:
            if person is None or run.ended:
                return None
            job = run.job = submit(replace(run.caller, person=person))
            return job

    def _end(self, run: RunT, message: str) -> None:
        run.ended, run.message = True, message
        if run.job:
            run.job.stop()

    def _work(self) -> None:
        while run := self._next():
            try:
                more, problem = self._go_on(run), ""
            except BusyError:
                more, problem = True, ""
                time.sleep(_BUSY_SECONDS)
            except LocalRagError as error:
                more, problem = False, str(error)
            except Exception as error:  # noqa: BLE001  the thread goes on with other runs
                traceback.print_exception(error, file=sys.stderr)
                more, problem = False, "This failed; see what `local-rag serve` has printed."
            with self._changed:
                run.job = None
                if more and not run.ended:
                    self._waiting.append(run)
                elif not run.ended:
                    self._end(run, problem)

    def _next(self) -> RunT | None:
        with self._changed:
            while not self._closed:
                while self._waiting:
                    run = self._waiting.popleft()
                    if not run.ended:
                        return run
                self._changed.wait()
            return None


@dataclass(eq=False, slots=True)
class _ListRun(Run):
    """A list that is answered; `failed` are the questions that could not be asked, with the reasons."""

    done: int = 0
    failed: dict[str, str] = field(default_factory=dict)


class QuestionLists(BackgroundRuns[_ListRun]):
    """Answer lists of one library until it is closed."""

    thread = "question lists"
    too_many = "Too many files of questions are being answered; try again when one is done."
    stopped = "Stopped; what is answered is kept."

    def start(self, identifier: str, caller: Caller) -> None:
        """Answer what is unanswered in a list; raise BusyError where too many are answered."""
        with self._changed:
            if not self._running(identifier):
                self._require_room()
                self._begin(_ListRun(identifier, caller))

    def view(self, identifier: str, unanswered: int) -> RunView:
        """Return how the answering of a list goes."""
        with self._changed:
            run = self._runs.get(identifier)
            return _view(run, run.done, unanswered, run.failed) if run else RunView()

    def _go_on(self, run: _ListRun) -> bool:
        person = run.caller.person.id
        if self._service.library.people.present(run.caller.person) is None:
            return False
        with self._service.history(person) as history:
            kept, epoch = history.question_list(run.id), history.epoch()
        waiting = (text for text in kept.questions if text not in kept.answered and text not in run.failed)
        if (question := next(waiting, None)) is None:
            return False
        asked = AskRequest(question=question, options=kept.options)
        job = self._submit(run, lambda caller: self._service.ask(asked, caller))
        if job is None:
            return False
        try:
            answer = replace(job.result.result().answer, question=question)
        except QuestionError as error:
            run.failed[question] = str(error)
            return True
        with self._service.history(person) as history:
            run.done += 1
            return history.add(run.id, answer, epoch=epoch, opens=True) is not None or self._is_kept(run)

    def _is_kept(self, run: _ListRun) -> bool:
        """Return whether a list is still there: while a question was answered, a document may have been erased."""
        with self._service.history(run.caller.person.id) as history:
            return history.holds(run.id)


@dataclass(eq=False, slots=True, kw_only=True)
class _TableRun(Run):
    """A table, or its `most` first documents; `first` is how many cells were missing at its first part."""

    table: SavedTable
    most: int
    first: int | None = None


class TableRuns(BackgroundRuns[_TableRun]):
    """Ask the tables of one library until it is closed."""

    thread = "tables"
    too_many = "Too many tables are being asked; try again when one is done."
    stopped = "Stopped; what was answered is kept."

    def start(self, table: SavedTable, caller: Caller, *, most: int = 0) -> None:
        """Ask what is missing in a table, or in its `most` first documents; raise BusyError if too many are asked."""
        with self._changed:
            if before := self._running(table.id):
                if before.most == most:
                    return
                self._end(before, "")
            self._require_room()
            self._begin(_TableRun(id=table.id, caller=caller, table=table, most=most))

    def view(self, identifier: str, missing: int) -> RunView:
        """Return how the asking of a table goes, of which so many cells are missing."""
        with self._changed:
            if (run := self._runs.get(identifier)) is None:
                return RunView()
            run.first = missing if run.first is None else run.first
            return _view(run, run.first - missing, missing)

    def _go_on(self, run: _TableRun) -> bool:
        job = self._submit(run, lambda caller: self._service.extract(run.table, caller, most=run.most))
        return job is not None and job.result.result() > 0


def _view(run: Run, done: int, waiting: int, failed: Mapping[str, str] = MappingProxyType({})) -> RunView:
    """Return how a run goes, of which so many parts are done and so many wait."""
    left = (time.monotonic() - run.began) / done * waiting if done > 0 and not run.ended else None
    return RunView(not run.ended, left, run.message, tuple(failed.items()))
