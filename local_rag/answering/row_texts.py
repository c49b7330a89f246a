"""Write the rows of tables and sheets so that each can be understood without its table."""

import re
from collections.abc import Sequence

from local_rag.answering.blocks import COLUMNS, Block
from local_rag.passage_records import Passage
from local_rag.text.pipe_rows import cells_of
from local_rag.text.sheet_rows import table_of

_SHEET_ROW = re.compile(r"Row \d+: ")
_FEW_EMPTY = 6  # empty cells of a row that are shown though it has fewer others


def header_above(passage: Passage) -> tuple[list[str], str]:
    """Return the names of the columns above a passage that begins within a table, and the row that it continues."""
    names, label = list[str](), ""
    for line in passage.table_header.splitlines():
        if line.startswith("|"):
            names = cells_of(line)
        else:
            label = _SHEET_ROW.sub("", line)
    return names, label


def row_text(head: list[str], cells: list[str], *, cut: bool = False) -> str:
    """Write a row so that it can be understood without its table; `cut` if its last cells may be missing."""
    if len(head) != len(cells) and not (cut and len(head) > len(cells)):
        return " | ".join(cell for cell in cells if cell)
    named = list(zip(head, cells, strict=False))
    shown = _is_shown(sum(bool(name and not cell) for name, cell in named), sum(map(bool, cells)))
    said = [(name, cell or ("-" if name and shown else "")) for name, cell in named]
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in said if cell)


def sheet_rows_of(text: str, blocks: Sequence[Block]) -> dict[int, str]:
    """Return the rows of a sheet, by where they begin, without their numbers and with their empty cells."""
    starts, lines = list[int](), list[str]()
    rows = dict[int, str]()
    for block in blocks:
        line = text[block.start : block.end]
        if line.startswith(COLUMNS):
            rows |= _with_empty(starts, lines)
            starts, lines = [block.start], [line]
        elif block.kind == "row" and _SHEET_ROW.match(line):
            starts.append(block.start)
            lines.append(line)
    return rows | _with_empty(starts, lines)


def _with_empty(starts: Sequence[int], lines: Sequence[str]) -> dict[int, str]:
    table = table_of(lines) if lines else None
    rows = dict[int, str]()
    for start, line, cells in zip(starts, lines, (table and table.rows) or [()] * len(lines), strict=True):
        if line.startswith(COLUMNS):
            continue
        if table is None or not cells or any(cell.column < 0 for cell in cells):
            rows[start] = line[line.index(": ") + 2 :]
            continue
        by_column = {cell.column: line[cell.start : cell.end] for cell in cells}
        shown = _is_shown(len(table.names) - len(cells), len(cells))
        named = (by_column.get(at, f"{name}: -" if shown and name else "") for at, name in enumerate(table.names))
        rows[start] = "; ".join(filter(None, named))
    return rows


def _is_shown(empty: int, filled: int) -> bool:
    """Return whether the empty cells of a row are shown: so no cell of its neighbours is taken for one of it."""
    return filled > 1 and empty <= max(_FEW_EMPTY, filled)
