"""`local-rag repair`."""

import json
from pathlib import Path
from typing import Any

import click

from local_rag.cli.options import library_options


@click.command()
@library_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(library: Path, as_json: bool, **settings: Any) -> None:
    """Check every row and file of the library, and build again what is damaged.

    Contexts and vectors that can be read are kept, whatever else is lost.
    """
    from local_rag.cli.progress import IndexProgress
    from local_rag.display import printable
    from local_rag.library import Library

    with Library(library, **settings) as opened, IndexProgress() as progress:
        done = opened.repair(progress=progress)
    if as_json:
        click.echo(json.dumps({"done": done}, ensure_ascii=False))
    else:
        click.echo(printable("\n".join(done) or "Everything is whole."))
