"""Ask the questions of saved tables, one part of a table after another."""

import time
from dataclasses import dataclass

from local_rag.extraction.saved_tables import SavedTable
from local_rag.serving.background_runs import BackgroundRuns, Run, RunView
from local_rag.serving.requests import Caller


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
            self._require_room()
            if before := self._running(table.id):
                if before.most == most:
                    return
                self._end(before, "")
            self._begin(_TableRun(id=table.id, caller=caller, table=table, most=most))

    def view(self, identifier: str, missing: int) -> RunView:
        """Return how the asking of a table goes, of which so many cells are missing."""
        with self._changed:
            run = self._runs.get(identifier)
            if run is None:
                return RunView()
            done = (run.first or 0) - missing
            left = (time.monotonic() - run.began) / done * missing if done > 0 and not run.ended else None
            if run.first is None:
                run.first = missing
            return RunView(not run.ended, left, run.message)

    def _go_on(self, run: _TableRun) -> bool:
        """Ask a part of a table; return whether there is more."""
        job = self._submit(run, lambda caller: self._service.extract(run.table, caller, most=run.most))
        return job is not None and job.result.result() > 0
