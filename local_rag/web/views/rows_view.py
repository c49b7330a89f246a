"""Show the rows that an answer was computed from: value, how, the first rows as a table, and a link to all."""

from collections.abc import Sequence
from dataclasses import dataclass

from local_rag.display import Name, cell_as_text, one_line, table_lines
from local_rag.records import SHOWN_TABLE_ROWS, TableAnswer

_MOST_COLUMNS = 30


@dataclass(frozen=True, slots=True)
class RowsView:
    """What was computed from rows, as it is shown; `count` is the number of all rows, `query` selects them.

    Of the parts of a line, every second one is a name or a value.
    """

    headline: str
    lines: Sequence[Sequence[str]]
    columns: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[str]]
    count: int
    query: str
    sources: Sequence[str]


def view_rows(table: TableAnswer, name: Name) -> RowsView:
    """Return what was computed from rows as it is shown, with `name` for places."""
    headline, *lines = table_lines(table)
    columns = table.columns[:_MOST_COLUMNS]
    numeric = [
        any(isinstance(row[at], int | float) for row in table.rows[:SHOWN_TABLE_ROWS]) for at in range(len(columns))
    ]
    return RowsView(
        headline=headline,
        lines=[one_line(line).split("*") for line in lines],
        columns=[(one_line(name), right) for name, right in zip(columns, numeric, strict=True)],
        rows=[
            [one_line(cell_as_text(value)) for value in row[:_MOST_COLUMNS]] for row in table.rows[:SHOWN_TABLE_ROWS]
        ],
        count=table.count,
        query=table.rows_sql,
        sources=[", ".join(filter(None, (name(one.path), one.place))) for one in table.sources],
    )
