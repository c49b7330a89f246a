"""Find the columns and cells in the rows of a sheet, which the text of a document holds one a line.

`Columns: Name; Born` may stand above rows such as `Row 2: Name: Ada; Born: 1815`, in which empty cells are left out.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

RECORD = re.compile(r"(?:Row \d{1,9}|Columns):(?= )")
FIELD = re.compile(r"(?:(?<=; )|(?<=\A))[^:;\n]{1,200}:(?= )")
_HEADER = "Columns: "
_LONGEST_NAME = 200  # characters of a name that each row repeats
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


def names_above(text: str, offset: int) -> tuple[str, ...]:
    """Return the names of the columns of the table in which an offset of a text lies, none if they are not known."""
    line = text.rfind(f"\n{_HEADER}", 0, offset) + 1
    if (not line and not text.startswith(_HEADER)) or text.rfind("\n\n", line, offset) >= 0:
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
    rows = tuple(tuple(_header(line) if line.startswith(_HEADER) else _cells(line, names)) for line in lines)
    if any(row and row[0].column < 0 and len(row) > 1 for row in rows):  # the first column has no name
        names = ("", *names)
        rows = tuple(
            tuple(Cell(max(0, cell.column + 1), cell.start, cell.value, cell.end) for cell in row)
            if len(row) > 1 or (row and row[0].column >= 0)
            else row
            for row in rows
        )
    return SheetTable(tuple(names), rows)


def _names_in(line: str) -> tuple[str, ...]:
    return tuple(line.removeprefix(_HEADER).split("; ")) if line.startswith(_HEADER) else ()


def _header(line: str) -> Iterator[Cell]:
    start = len(_HEADER)
    for column, name in enumerate(_names_in(line)):
        yield Cell(column, start, start, start + len(name))
        start += len(name) + 2


def _cells(line: str, names: Sequence[str]) -> Iterator[Cell]:
    """Yield the cells of a row; what has no name goes on with the cell before it."""
    named = RECORD.match(line)
    start = value = named.end() + 1 if named else 0
    labels, column, place = [f"{name[:_LONGEST_NAME]}: " for name in names], -1, start
    while place >= 0:
        for number in range(column + 1, len(labels)):
            if line.startswith(labels[number], place):
                if place > start:
                    yield Cell(column, start, value, place - 2)
                column, start, value = number, place, place + len(labels[number])
                break
        place = line.find("; ", place) + 2 or -1
        place = place if place > 1 else -1
    yield Cell(column, start, value, len(line))


def _common(lines: Sequence[str]) -> list[str]:
    """Return what stands in front of colons in several rows, in the order of the rows."""
    rows = [[field[0][:-1] for field in FIELD.finditer(line[found.end() + 1 :])]
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
