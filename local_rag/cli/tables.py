"""The tables of the documents: `local-rag tables` and `local-rag query`."""

from pathlib import Path
from typing import Any

import click

from local_rag.asking import Filters
from local_rag.cli.options import Command, filter_options, json_option, library_options, open_library
from local_rag.display import cell_as_text, counted, display_path, lines_of_cells, one_line, printable_json, rows_as_csv
from local_rag.tables.relation_set import NamedRelation, relation_as_dict

_MOST_SHOWN, _WIDTH = 200, 40  # rows in the terminal, and characters of a cell


@click.command(cls=Command, epilog="Example: local-rag tables --json")
@library_options
@filter_options
@json_option
def tables(library: Path, filters: Filters, as_json: bool, **settings: Any) -> None:
    """List the tables of the documents: sheets, CSV files, and tables with a header in other documents."""
    with open_library(library, **settings) as opened:
        found = opened.tables.listed(filters=filters)
    if as_json:
        click.echo(printable_json({"tables": [relation_as_dict(one, display_path) for one in found]}))
        return
    for one in found:
        click.echo("\n".join(_as_lines(one)))
    if not found:
        click.echo("No document has a table with a header.", err=True)


def _as_lines(one: NamedRelation) -> list[str]:
    place = ", ".join(filter(None, (display_path(one.stored.path), one.place)))
    names = zip(one.columns, one.stored.columns, strict=True)
    columns = [f"{name} ({', '.join(filter(None, (column.kind, column.unit)))})" for name, column in names]
    totals = f", {counted(one.stored.totals, 'row')} of totals left out" if one.stored.totals else ""
    return [
        one_line(f"{one.table}: {counted(one.stored.rows, 'row')}{totals}, {place}"),
        one_line(f"  {'; '.join(columns)}"),
    ]


@click.command(cls=Command, epilog='Example: local-rag query "SELECT sum([Net EUR]) FROM orders_2024"')
@click.argument("statement")
@library_options
@click.option("--csv", "as_csv", is_flag=True, help="Print the rows as CSV.")
@json_option
def query(statement: str, library: Path, as_csv: bool, as_json: bool, **settings: Any) -> None:
    """Run one SELECT, a STATEMENT in SQLite's SQL, on a copy of the tables that `local-rag tables` lists.

    Nothing can be written. A query ends after 10 seconds and gives 10,000 rows at most. Dates are text such as
    2024-05-31, and rows of totals are left out.
    """
    if as_csv and as_json:
        raise click.UsageError("Give --csv or --json, not both.")
    with open_library(library, **settings) as opened:
        result = opened.tables.query(statement)
    if as_json:
        click.echo(printable_json({"columns": result.columns, "rows": result.rows, "complete": result.is_complete}))
    elif as_csv:
        click.echo(rows_as_csv(result.columns, result.rows), nl=False)
    else:
        rows = [map(_as_text, row) for row in (result.columns, *result.rows[:_MOST_SHOWN])]
        for line in lines_of_cells([[one_line(cell)[:_WIDTH] for cell in row] for row in rows]):
            click.echo(line)
        if len(result.rows) > _MOST_SHOWN:
            click.echo(f"{_MOST_SHOWN} of {len(result.rows):,} rows; --csv and --json give all.", err=True)
    if not result.is_complete:
        click.echo(f"Only the first {len(result.rows):,} rows were read; add conditions or LIMIT.", err=True)


def _as_text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else cell_as_text(value)
