"""Ask the questions of saved tables, in a thread that waits for one part of a table after another.

Tables take turns, and each part is one job in the queue beside the questions of people.
"""

import sys
import threading
import time
import traceback
from collections import deque
from dataclasses import dataclass, field, replace

from local_rag.errors import BusyError, LocalRagError
from local_rag.extraction.saved_tables import SavedTable
from local_rag.serving.job import Job
from local_rag.serving.requests import Caller
from local_rag.serving.service import Service

_BUSY_SECONDS = 1.0
_MOST_RUNNING, _MOST_ENDED = 20, 200


@dataclass(eq=False, slots=True)
class _Run:
    """A table that is asked for somebody; `first` is how many cells were missing at its first part."""

    table: SavedTable
    caller: Caller
    most: int
    began: float = field(default_factory=time.monotonic)
    first: int | None = None
    ended: bool = False
    message: str = ""
    job: Job[int] | None = None


@dataclass(frozen=True, slots=True)
class TableRun:
    """Whether a table is being asked, the seconds `left` if they can be told, and why it ended."""

    running: bool = False
    left: float | None = None
    message: str = ""


class TableRuns:
    """Ask the tables of one library until it is closed."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._changed = threading.Condition()
        self._waiting = deque[_Run]()
        self._runs = dict[str, _Run]()  # the last one of each table
        self._thread: threading.Thread | None = None
        self._closed = False

    def start(self, table: SavedTable, caller: Caller, *, most: int = 0) -> None:
        """Ask what is missing in a table, or in its `most` first documents; raise BusyError if too many are asked."""
        with self._changed:
            if self._closed or sum(not run.ended for run in self._runs.values()) >= _MOST_RUNNING:
                raise BusyError("Too many tables are being asked; try again when one is done.")
            if (before := self._runs.get(table.id)) and not before.ended:
                if before.most == most:
                    return
                self._end(before, "")
            for key in [key for key, run in self._runs.items() if run.ended][:-_MOST_ENDED]:
                del self._runs[key]
            self._runs[table.id] = run = _Run(table, caller, most)
            self._waiting.append(run)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="tables", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def stop(self, identifier: str) -> None:
        """Stop asking a table; what is stored is kept."""
        with self._changed:
            if (run := self._runs.get(identifier)) and not run.ended:
                self._end(run, "Stopped; what was answered is kept.")

    def view(self, identifier: str, missing: int) -> TableRun:
        """Return how the asking of a table goes, of which so many cells are missing."""
        with self._changed:
            run = self._runs.get(identifier)
            if run is None:
                return TableRun()
            done = (run.first or 0) - missing
            left = (time.monotonic() - run.began) / done * missing if done > 0 and not run.ended else None
            if run.first is None:
                run.first = missing
            return TableRun(not run.ended, left, run.message)

    def close(self) -> None:
        """Stop all."""
        with self._changed:
            self._closed = True
            for run in self._runs.values():
                self._end(run, run.message)
            self._changed.notify_all()

    def _end(self, run: _Run, message: str) -> None:
        run.ended, run.message = True, message
        if run.job:
            run.job.stop()

    def _work(self) -> None:
        while run := self._next():
            try:
                more, problem = self._ask_part(run), ""
            except BusyError:
                more, problem = True, ""
                time.sleep(_BUSY_SECONDS)
            except LocalRagError as error:
                more, problem = False, str(error)
            except Exception as error:  # noqa: BLE001  the thread goes on with other tables
                traceback.print_exception(error, file=sys.stderr)
                more, problem = False, "This failed; see what `local-rag serve` has printed."
            with self._changed:
                run.job = None
                if more and not run.ended:
                    self._waiting.append(run)
                elif not run.ended:
                    self._end(run, problem)

    def _next(self) -> _Run | None:
        with self._changed:
            while not self._closed:
                while self._waiting:
                    run = self._waiting.popleft()
                    if not run.ended:
                        return run
                self._changed.wait()
            return None

    def _ask_part(self, run: _Run) -> bool:
        """Ask a part of a table; return whether there is more."""
        person = self._service.library.people.present(run.caller.person)
        if person is None:
            return False
        with self._changed:
            if run.ended:
                return False
            job = run.job = self._service.extract(run.table, replace(run.caller, person=person), most=run.most)
        return job.result.result() > 0
