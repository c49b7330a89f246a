"""`local-rag extract`."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from local_rag.asking import Filters
from local_rag.cli.loaded import Loaded
from local_rag.cli.options import (
    FILE,
    Command,
    json_option,
    library_options,
    model_option,
    no_matching_document,
    open_library,
    say_if_indexed,
    say_what_is_missing,
    stopping,
    version_options,
)
from local_rag.cli.progress import IndexProgress
from local_rag.display import counted, display_path, one_line, printable_json
from local_rag.errors import QuestionError
from local_rag.extraction.columns import Column, parse_columns
from local_rag.extraction.extraction import Table, table_from
from local_rag.serving.extracted_files import require_form, row_as_dict, write_table
from local_rag.serving.table_files import read_columns


@click.command(cls=Command, epilog="Example: local-rag extract columns.yaml --in contracts --output contracts.xlsx")
@click.argument("columns", required=False, type=FILE)
@click.option(
    "--column",
    "written",
    multiple=True,
    metavar="'NAME: QUESTION? (TYPE)'",
    help="A column, instead of or after those of the file; repeat for several. Types: text, name, number, amount, "
    "percentage, date, duration, yes/no, one of: A | B, list.",
)
@click.option(
    "--output",
    type=FILE,
    help="The file for the table, .xlsx, .csv or .jsonl; what it held is replaced. Without it, each row is printed as "
    "a line of JSON.",
)
@click.option("--newest", is_flag=True, help="Only the newest version of each document, instead of one row for each.")
@click.option("--first", type=click.IntRange(min=1), metavar="N", help="Only the first N documents, as a preview.")
@library_options
@model_option("answer", "answer with")
@version_options
@json_option
def command(
    columns: Path | None,
    written: tuple[str, ...],
    output: Path | None,
    newest: bool,
    first: int | None,
    library: Path,
    filters: Filters,
    as_json: bool,
    **settings: Any,
) -> None:
    """Ask every document the questions of COLUMNS, and write the answers as a table.

    COLUMNS is a YAML, CSV or XLSX file with a name, a question and a type for each column. Each answer has its
    quotation and place; what a document does not say is "not stated". Answers are stored as they are given, so stop
    with Ctrl-C and run the command again to go on.
    """
    if columns is None and not written:
        raise click.UsageError("Give a file of COLUMNS, or --column 'Name: Question? (type)'.")
    if columns and not columns.exists():
        raise QuestionError(
            f"There is no file {one_line(display_path(columns))}; name a file of columns, or give a column as "
            "--column 'Name: Question? (type)'."
        )
    asked = parse_columns([*(read_columns(columns) if columns else ()), *written])
    if output:
        require_form(output)
        if columns and output.resolve() == columns.resolve():
            raise QuestionError(f"{one_line(display_path(output))} holds the columns; name another file for the table.")
    request = {"do": "extract", "columns": asked, "filters": filters, "newest": newest, "most": first or 0}
    with open_library(library, **settings) as opened:
        if output:
            say_if_indexed(opened, output)
        with stopping("Stopping; what was answered is stored.") as stopped, IndexProgress() as progress:
            if served := Loaded(library, settings).ask(request, stop=stopped.is_set):
                table = table_from(served["found"])
            else:
                table = opened.extract(
                    asked, filters=filters, newest=newest, most=first or 0, progress=progress, stop=stopped.is_set
                )
                progress.stop()
                say_what_is_missing(opened)
    if not table.rows:
        raise QuestionError(no_matching_document(library, filters) if filters else "The library holds no documents.")
    if output:
        write_table(output, table)
    _report(asked, table, output, as_json=as_json)
    if stopped.is_set():
        cells = len(table.rows) * len(asked)
        said = f"{cells - table.missing} of {cells} cells are there; run the command again to go on."
        click.echo(said, err=True)
        raise KeyboardInterrupt


def _report(columns: Sequence[Column], table: Table, output: Path | None, *, as_json: bool) -> None:
    if output is None:
        for row in table.rows:
            click.echo(printable_json(row_as_dict(tuple(columns), row)))
        return
    counts = Counter("not asked" if cell is None else cell.state for row in table.rows for cell in row.cells)
    states = {state: counts[state] for state in ("stated", "unsure", "not stated", "not asked")}
    if as_json:
        totals = {"documents": len(table.rows), "columns": len(columns), "asked": table.asked}
        named = {state.replace(" ", "_"): count for state, count in states.items()}
        click.echo(printable_json({**totals, **named, "output": str(output)}))
        return
    said = ", ".join(f"{count} {state}" for state, count in states.items() if count or state != "not asked")
    click.echo(
        f"{counted(len(table.rows), 'document')}, {counted(len(columns), 'column')}: {said}. The table is in "
        f"{one_line(display_path(output))}."
    )
