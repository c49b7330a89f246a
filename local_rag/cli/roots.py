"""`local-rag roots` and `local-rag roots move`."""

from pathlib import Path
from typing import Any

import click

from local_rag.cli.options import DefaultGroup, json_option, library_options, open_library
from local_rag.display import display_path, one_line, printable_json


@click.group(cls=DefaultGroup, default="list")
def command() -> None:
    """List the indexed folders, or record that one has moved."""


@command.command("list", epilog="`local-rag roots move OLD NEW` records that a folder has moved.")
@library_options
@json_option
def list_command(library: Path, as_json: bool, **settings: Any) -> None:
    """List the folders and files that `index` was given, with the number of their documents."""
    with open_library(library, **settings) as opened:
        roots = opened.roots()
    if as_json:
        click.echo(printable_json(roots))
        return
    for root in roots:
        note = "" if root.reachable else "  not reachable"
        click.echo(f"{root.documents:>7}  {one_line(display_path(root.path))}{note}")
    if not roots:
        click.echo("Nothing is indexed yet; run `local-rag index FOLDER`.", err=True)


@command.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@library_options
@json_option
def move(old: Path, new: Path, library: Path, as_json: bool, **settings: Any) -> None:
    """Record that an indexed folder, or a folder that contains indexed folders, has moved from OLD to NEW.

    Nothing is read or computed again, and the documents have their new paths at once. An index in a search engine is
    published again with them.
    """
    with open_library(library, **settings) as opened:
        documents = opened.move_root(old, new)
    if as_json:
        click.echo(printable_json({"old": str(old), "new": str(new), "documents": documents}))
    else:
        moved = f"{documents} documents of {one_line(display_path(old))}"
        click.echo(f"{moved} are now in {one_line(display_path(new))}.")
