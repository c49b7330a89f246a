"""`local-rag repair`."""

from pathlib import Path
from typing import Any

import click

from local_rag.cli.opening import open_library
from local_rag.cli.options import Command, json_option, library_options
from local_rag.cli.progress import IndexProgress
from local_rag.display import printable, printable_json


@click.command(cls=Command)
@library_options
@json_option
def command(library: Path, as_json: bool, **settings: Any) -> None:
    """Check every row and file of the library, and build again what is damaged.

    Contexts and vectors that can be read are kept, whatever else is lost.
    """
    with open_library(library, **settings) as opened, IndexProgress() as progress:
        done = opened.repair(progress=progress)
    click.echo(printable_json({"done": done}) if as_json else printable("\n".join(done) or "Everything is whole."))
