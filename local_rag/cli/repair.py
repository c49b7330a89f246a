"""`local-rag repair`."""

from pathlib import Path
from typing import Any

import click

from local_rag.cli.options import Command, json_option, library_options, open_library
from local_rag.cli.progress import IndexProgress
from local_rag.display import printable, printable_json


@click.command(cls=Command)
@library_options
@json_option
def command(library: Path, as_json: bool, **settings: Any) -> None:
    """Check every row and file of the library, and rebuild what is damaged.

    Readable contexts and vectors are kept even if everything else is lost.
    """
    with open_library(library, **settings) as opened, IndexProgress() as progress:
        done = opened.repair(progress=progress)
    click.echo(printable_json({"done": done}) if as_json else printable("\n".join(done) or "Nothing is damaged."))
