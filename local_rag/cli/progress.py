"""Show progress on stderr: a live bar on a terminal, otherwise a line per stage and from time to time."""

import sys
import time

from local_rag.display import STAGES, printable
from local_rag.progress_records import Progress

_LINE_SECONDS = 30.0


class IndexProgress:
    """Show the progress of each stage; call it with every `Progress`, and `stop` it before anything is printed.

    A bar rewrites the line that the terminal's cursor is in, whatever is written there.
    """

    def __init__(self) -> None:
        # Imported here because a command whose question a server answers shows no progress.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description:<16}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.fields[detail]}", markup=False),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
            redirect_stdout=False,  # or results would go to stderr
        )
        self._task, self._stage, self._done = TaskID(0), "", 0
        self._started = self._printed = time.monotonic()

    def __enter__(self) -> "IndexProgress":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Leave the bars as they are; the next step begins a new one."""
        if self._bar.live.is_started:
            self._bar.stop()
        for task in self._bar.task_ids:
            self._bar.remove_task(task)
        self._stage = ""

    def __call__(self, progress: Progress) -> None:
        """Show one step."""
        detail = printable(progress.detail).replace("\n", " ")
        name = STAGES[progress.stage]
        self._bar.start()
        begins = progress.stage != self._stage or progress.done == 0
        if begins:
            self._stage, self._started, self._done = progress.stage, time.monotonic(), progress.done
            self._task = self._bar.add_task(name, total=progress.total, completed=progress.done, detail=detail)
        self._bar.update(self._task, completed=progress.done, detail=detail)
        if self._bar.disable and (begins or time.monotonic() - self._printed > _LINE_SECONDS):
            self._printed = time.monotonic()
            left = "" if begins else f", {self._seconds_left(progress):.0f} s left"
            print(f"{name}: {progress.done} of {progress.total}{left}, {detail}".rstrip(", "), file=sys.stderr)

    def _seconds_left(self, progress: Progress) -> float:
        spent = time.monotonic() - self._started
        return spent / max(1, progress.done - self._done) * (progress.total - progress.done)
