"""Let a process answer whose models are loaded: a running server, or one that this command leaves behind."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from local_rag.cli.options import has_own_process
from local_rag.display import duration, one_line
from local_rag.files import command_for
from local_rag.progress_records import Progress
from local_rag.serialization import from_plain
from local_rag.serving.leaving import leave, may_leave
from local_rag.serving.socket_client import Running, ask_server

if TYPE_CHECKING:
    from local_rag.cli.progress import IndexProgress

_STARTING_SECONDS = 60.0  # until the first line of a process that is still being started


def running_as_text(found: Running, library: Path) -> str:
    """Describe the server of a library that is running."""
    if found.seconds_left is None:
        return f"Process {found.process} serves this library."
    left = duration(found.seconds_left)
    return f"Process {found.process} keeps the models loaded, for {left}; `{command_for(library, 'stop')}` ends it."


class Loaded:
    """A process with loaded models, as one command asks it; `stays` says for how many minutes, or None for a server."""

    def __init__(self, library: Path, settings: Mapping[str, Any]) -> None:
        self._library, self._settings = library, settings
        self._progress: IndexProgress | None = None
        self.stays: float | None = None

    @property
    def name(self) -> str:
        """Return what has answered."""
        return f"the {'running server' if self.stays is None else 'process that keeps the models'} of this library"

    def ask(
        self,
        request: Mapping[str, Any],
        on_event: Callable[[str, Any], None] = lambda _event, _value: None,
        *,
        stop: Callable[[], bool] | None = None,
    ) -> dict[str, Any] | None:
        """Return what came of a request, or None if the command has to do it itself.

        The first command leaves a process behind, if the settings want one, and says so once all else is printed. Once
        `stop` returns true, what was done until then is returned.
        """

        def heard(event: str, value: Any) -> None:
            if event == "stays":
                self.stays = value
            elif event == "progress":
                self._show(from_plain(Progress, value))
            else:
                if self._progress:
                    self._progress.stop()
                on_event(event, value)

        context, own = click.get_current_context(), any(value is not None for value in self._settings.values())
        try:
            how: dict[str, Any] = {"stop": stop, "halfway": True} if stop else {}
            ask = partial(ask_server, self._library, self._settings, request, on_event=heard, **how)
            served = ask()
            may = has_own_process(context) and context.obj.parts is None and not own
            if served is None and may and may_leave(self._library) and leave(self._library.resolve()):
                context.call_on_close(self._say)
                served = ask(first_seconds=_STARTING_SECONDS)
        finally:
            if self._progress:
                self._progress.stop()
        for notice in served["notices"] if served else ():
            click.echo(one_line(notice), err=True)
        return served

    def _show(self, progress: Progress) -> None:
        if self._progress is None:
            # Imported here because most questions show no progress.
            from local_rag.cli.progress import IndexProgress

            self._progress = IndexProgress()
        self._progress(progress)

    def _say(self) -> None:
        if self.stays:
            minutes = f"{self.stays:g} minute{'' if self.stays == 1 else 's'}"
            click.echo(f"Models stay loaded for {minutes}; `{command_for(self._library, 'stop')}` ends this.", err=True)
