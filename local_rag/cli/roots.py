"""`local-rag roots` and `local-rag roots move`."""

from pathlib import Path
from typing import Any

import click

from local_rag.cli.opening import open_library
from local_rag.cli.options import Group, json_option, library_options
from local_rag.display import display_path, one_line, printable_json


class RootsGroup(Group):
    """Take whatever is not the name of a command for the arguments of `list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `list` in front where no command is named."""
        return super().parse_args(ctx, args if args and args[0] in self.commands else ["list", *args])


@click.group(cls=RootsGroup)
def command() -> None:
    """List the indexed folders, or say where one has moved."""


@command.command("list", epilog="`local-rag roots move OLD NEW` says where one has moved.")
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
        click.echo("Nothing is indexed yet; name a folder: `local-rag index FOLDER`.", err=True)


@command.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@library_options
@json_option
def move(old: Path, new: Path, library: Path, as_json: bool, **settings: Any) -> None:
    """Say that an indexed folder, or one that holds such folders, has moved from OLD to NEW.

    Nothing is read or computed again: the index stays as it is, and its documents have their new places at once.
    """
    with open_library(library, **settings) as opened:
        documents = opened.move_root(old, new)
    if as_json:
        click.echo(printable_json({"old": str(old), "new": str(new), "documents": documents}))
    else:
        click.echo(f"{documents} documents of {one_line(display_path(old))} lie in {one_line(display_path(new))} now.")
