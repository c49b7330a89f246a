"""Write the rows of a sheet, which the text of a document holds one a line, and find their columns and cells.

`Columns: Name; Born` may stand above rows such as `Row 2: Name: Ada; Born: 1815`, in which empty cells are left out.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

COLUMNS, CELL_BREAK = "Columns: ", "; "  # before the names of the columns, and between names or cells
CELL_BREAKS = re.compile(CELL_BREAK)
ROW_LABEL = r"Row (?P<row>\d{1,9}): "  # as `row_label` writes it
ROW = re.compile(rf"^{ROW_LABEL}", re.MULTILINE)
RECORD = re.compile(rf"{ROW_LABEL}|{COLUMNS}")
FIELD = re.compile(r"(?:(?<=; )|(?<=\A))[^:;\n]{1,200}:(?= )")
LONGEST_NAME = 200  # characters of a name that each row repeats
_MOST_COLUMNS, _FEW_ROWS = 100, 3


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a row: its column, and the offsets in the line at which it, its value and what follows it begin."""

    column: int
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True)
class SheetTable:
    """The names of the columns, and the cells of each line; of a line with names, the cells are those names.

    Without names that rows have in common, there are no columns. The cell of a row that stands under no column has the
    column -1.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def row_label(number: int) -> str:
    """Return what the row with a number begins with."""
    return f"Row {number}: "


def named_cells(cells: Iterable[tuple[str, str]], between: str = CELL_BREAK) -> str:
    """Write the cells of a row that are not empty, each given after the name of its column, which may be empty."""
    return between.join(f"{name}: {cell}" if name else cell for name, cell in cells if cell)


def names_above(text: str, offset: int) -> tuple[str, ...]:
    """Return the names of the columns of the table in which an offset of a text lies, none if they are not known."""
    line = text.rfind(f"\n{COLUMNS}", 0, offset) + 1
    if not text.startswith(COLUMNS, line) or text.find("\n\n", line, offset) >= 0:
        return ()
    end = text.find("\n", line)
    return _names_in(text[line : len(text) if end < 0 else end])


def table_of(lines: Sequence[str], names: Sequence[str] = ()) -> SheetTable:
    """Return the table of lines that each begin as a row or as the names of columns; `names` may stand further above.

    Where no names are known, they are what several rows have in front of a colon.
    """
    names = next((found for line in lines if (found := _names_in(line))), tuple(names)) or tuple(_common(lines))
    if not 0 < len(names) <= _MOST_COLUMNS:
        return SheetTable((), ())
    rows = tuple(tuple(_header(line) if line.startswith(COLUMNS) else _cells(line, names)) for line in lines)
    if any(row[0].column < 0 and len(row) > 1 for row in rows):  # the first column has no name
        names = ("", *names)
        rows = tuple(
            row if len(row) == 1 and row[0].column < 0 else tuple(replace(cell, column=cell.column + 1) for cell in row)
            for row in rows
        )
    return SheetTable(tuple(names), rows)


def _names_in(line: str) -> tuple[str, ...]:
    return tuple(line.removeprefix(COLUMNS).split(CELL_BREAK)) if line.startswith(COLUMNS) else ()


def _header(line: str) -> Iterator[Cell]:
    start = len(COLUMNS)
    for column, name in enumerate(_names_in(line)):
        yield Cell(column, start, start, start + len(name))
        start += len(name) + len(CELL_BREAK)


def _cells(line: str, names: Sequence[str]) -> Iterator[Cell]:
    """Yield the cells of a row; what has no name goes on with the cell before it."""
    named = RECORD.match(line)
    start = value = named.end() if named else 0
    labels, column = [f"{name[:LONGEST_NAME]}: " for name in names], -1
    for place in [start, *(found.end() for found in CELL_BREAKS.finditer(line, start))]:
        number = next((at for at in range(column + 1, len(labels)) if line.startswith(labels[at], place)), None)
        if number is not None:
            if place > start:
                yield Cell(column, start, value, place - len(CELL_BREAK))
            column, start, value = number, place, place + len(labels[number])
    yield Cell(column, start, value, len(line))


def _common(lines: Sequence[str]) -> list[str]:
    """Return what stands in front of colons in several rows, in the order of the rows."""
    rows = [[field[0][:-1] for field in FIELD.finditer(line[found.end() :])]
            for line in lines if (found := RECORD.match(line))]  # fmt: skip
    counts = Counter(name for row in rows for name in dict.fromkeys(row))
    names = list[str]()
    for row in rows:
        place = 0
        for name in row:
            if counts[name] < 2 and len(rows) > _FEW_ROWS:  # noqa: PLR2004  a colon within a cell
                continue
            if name in names[place:]:
                place = names.index(name, place) + 1
            elif len(names) <= _MOST_COLUMNS:
                names.insert(place, name)
                place += 1
    return names
