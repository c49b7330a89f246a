"""`local-rag find`."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any

import click

from local_rag.asking import Filters
from local_rag.cli.no_match import no_matching_document
from local_rag.cli.options import (
    Command,
    as_of_option,
    filter_options,
    json_option,
    library_options,
    model_option,
    open_library,
    require_question,
)
from local_rag.cli.progress import IndexProgress
from local_rag.display import found_as_csv, found_as_dict, found_as_lines, one_line, printable_json
from local_rag.errors import LocalRagError
from local_rag.files import permissions_of_regular, write_whole
from local_rag.records import Found


@click.command(cls=Command)
@click.argument("question")
@library_options
@model_option("embed", "embed with")
@filter_options
@as_of_option
@click.option(
    "--csv", "table", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Also write a new CSV file."
)
@json_option
def command(
    question: str,
    library: Path,
    filters: Filters,
    as_of: date | None,
    table: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Count or list all documents that contain words, or that are about something, without a language model.

    The QUESTION asks how many, which, or for all: `How many reports mention the crane?`, `Which policies cover travel
    expenses?`, `List every deadline in the contracts`. A few bare words are looked for as they are; quoted words
    exactly. Ctrl-C stops a long search and shows what was found until then.
    """
    require_question(question)
    filters = replace(filters, as_of=as_of)
    if table is not None:
        _require_new(table)
    with open_library(library, **settings) as opened, _stopping() as stopped, IndexProgress() as progress:
        found = opened.find(question, filters=filters, progress=progress, stop=stopped.is_set)
    if table is not None:
        _write(table, found)
    if as_json:
        click.echo(printable_json(found_as_dict(found)))
    else:
        for line in found_as_lines(found):
            click.echo(line)
    for note in found.notes:
        click.echo(one_line(note), err=True)
    if filters and not found.places:
        click.echo(no_matching_document(library, filters), err=True)


@contextmanager
def _stopping() -> Iterator[Event]:
    """Let the first Ctrl-C end the search, and a second one the command."""
    stopped = Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        stopped.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)


def _require_new(path: Path) -> None:
    try:
        if permissions_of_regular(path) is not None and path.stat().st_size:
            raise LocalRagError(f"{path} already exists; name another file.")
    except OSError as error:
        raise LocalRagError(f"{path} cannot be written ({error.strerror}); name another file.") from None


def _write(path: Path, found: Found) -> None:
    try:
        write_whole(path, found_as_csv(found))
    except OSError as error:
        raise LocalRagError(f"{path} cannot be written ({error.strerror}); name another file.") from None
