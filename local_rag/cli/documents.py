"""`local-rag documents`."""

from pathlib import Path
from typing import Any

import click
from rich.filesize import decimal

from local_rag.asking import Filters
from local_rag.cli.options import Command, filter_options, json_option, library_options, open_library
from local_rag.display import display_path, one_line, printable_json


@click.command(cls=Command)
@library_options
@filter_options
@click.option("--families", is_flag=True, help="List instead the documents that are versions of each other.")
@json_option
def command(library: Path, filters: Filters, families: bool, as_json: bool, **settings: Any) -> None:
    """List the documents of the library: what each is about, its state, its dates and its size.

    The state is indexed, waiting for `local-rag index` to finish, changed or missing since it was read, or unreachable.
    """
    if families:
        _list_families(library, filters, as_json=as_json, **settings)
        return
    with open_library(library, **settings) as opened:
        documents = opened.documents(filters=filters)
    if as_json:
        click.echo(printable_json(documents))
        return
    for document in documents:
        path = click.style(one_line(display_path(document.path)), bold=True)
        own = f", of {document.date}" if document.date else ""
        tags = f", tags: {', '.join(document.tags)}" if document.tags else ""
        facts = f"{document.state}, {decimal(document.size)}, file of {document.modified}{own}{tags}"
        lines = [path, one_line(document.title), one_line(facts), one_line(document.about)]
        click.echo("\n    ".join(line for line in lines if line))
    if not documents:
        click.echo("No document matches." if filters else "The library contains no documents yet.", err=True)


def _list_families(library: Path, filters: Filters, *, as_json: bool, **settings: Any) -> None:
    """List each document that has several versions, newest first."""
    with open_library(library, **settings) as opened:
        families = opened.families(filters=filters)
    if as_json:
        named = [
            [{"path": display_path(one.path), "title": one.title, "date": one.date} for one in family]
            for family in families
        ]
        click.echo(printable_json(named))
        return
    for family in families:
        click.echo(click.style(one_line(family[0].title), bold=True))
        for one in family:
            click.echo(f"    {one.date}{'' if one.stated else ' (of the file)'}  {one_line(display_path(one.path))}")
    if not families:
        click.echo("No documents are versions of each other.", err=True)
