"""`local-rag stop`."""

from pathlib import Path
from typing import Any

import click

from local_rag.cli.options import Command, json_option, library_options
from local_rag.display import printable_json
from local_rag.errors import LocalRagError
from local_rag.serving.socket_client import running, stop_left


@click.command(cls=Command, epilog="Example: local-rag stop")
@library_options
@json_option
def command(library: Path, as_json: bool, **_settings: Any) -> None:
    """End the process that keeps the models loaded for the next commands, and give its memory back."""
    folder = library.resolve()
    found = running(folder)
    if found and found.seconds_left is None:
        raise LocalRagError(
            f"A server of this library is running, as process {found.process}; end it with Ctrl-C where it was started."
        )
    if found and not stop_left(folder):
        raise LocalRagError(f"Process {found.process} does not end; end it with `kill {found.process}`.")
    if as_json:
        click.echo(printable_json({"ended": found.process if found else None}))
    else:
        click.echo(f"Ended process {found.process}." if found else "No process keeps models loaded for this library.")
