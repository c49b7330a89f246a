"""Write the rows of tables and sheets so that each can be understood without its table."""

import re
from collections.abc import Iterator, Mapping, Sequence

from local_rag.answering.blocks import Block
from local_rag.passage_records import Passage
from local_rag.text.pipe_rows import cells_of
from local_rag.text.sheet_rows import CELL_BREAK, COLUMNS, ROW, named_cells, table_of

_CELL_END = re.compile(rf"{CELL_BREAK}| \| ")
_LETTER = re.compile(r"[^\W\d_]")
_FEW_EMPTY = 6  # empty cells of a row that are shown though it has fewer others


def header_above(passage: Passage) -> tuple[list[str], str]:
    """Return the names of the columns above a passage that begins within a table, and the row that it continues."""
    names, label = list[str](), ""
    for line in passage.table_header.splitlines():
        if line.startswith("|"):
            names = cells_of(line)
        else:
            label = ROW.sub("", line)
    return names, label


def row_text(head: list[str], cells: list[str], *, cut: bool = False) -> str:
    """Write a row so that it can be understood without its table; `cut` if its last cells may be missing."""
    if len(head) != len(cells) and not (cut and len(head) > len(cells)):
        return " | ".join(cell for cell in cells if cell)
    named = list(zip(head, cells, strict=False))
    shown = _is_shown(sum(bool(name and not cell) for name, cell in named), sum(map(bool, cells)))
    return named_cells((name, cell or ("-" if name and shown else "")) for name, cell in named)


def cells_in(row: str) -> list[str]:
    """Return the cells of a row that is so written, each behind the head of its column."""
    return _CELL_END.split(row)


def naming_cell(cells: Sequence[str]) -> tuple[int, str]:
    """Return the place and the value of the first cell with a letter, else of the first: it names the row."""
    values = [cell.partition(": ")[2] or cell for cell in cells]
    return next(((place, value) for place, value in enumerate(values) if _LETTER.search(value)), (0, values[0]))


def sheet_rows_of(text: str, blocks: Sequence[Block]) -> dict[int, str]:
    """Return the rows of a sheet, by where they begin, without their numbers and with their empty cells."""
    tables = [dict[int, str]()]  # their lines, by where they begin
    for block in blocks:
        line = text[block.start : block.end]
        if line.startswith(COLUMNS):
            tables.append({block.start: line})
        elif block.kind == "row" and ROW.match(line):
            tables[-1][block.start] = line
    return dict(row for lines in tables for row in _with_empty(lines))


def _with_empty(lines: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    table = table_of([*lines.values()])
    for (start, line), cells in zip(lines.items(), table.rows or [()] * len(lines), strict=True):
        if line.startswith(COLUMNS):
            continue
        if not cells or any(cell.column < 0 for cell in cells):
            yield start, ROW.sub("", line)
            continue
        by_column = {cell.column: line[cell.start : cell.end] for cell in cells}
        shown = _is_shown(len(table.names) - len(cells), len(cells))
        named = (by_column.get(at, f"{name}: -" if shown and name else "") for at, name in enumerate(table.names))
        yield start, CELL_BREAK.join(filter(None, named))


def _is_shown(empty: int, filled: int) -> bool:
    """Return whether the empty cells of a row are shown: so no cell of its neighbours is taken for one of it."""
    return filled > 1 and empty <= max(_FEW_EMPTY, filled)
