"""Tell the tables of a PDF's page from columns of prose, which are read one after the other."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from local_rag.reading.converters.pdf_page import Cell, Line
from local_rag.reading.converters.table_layout import Row, fill_labels, find_header, has_digit, is_number
from local_rag.reading.line_numbers import Counted, lines_counted

_NEXT_LINE = 3.0  # heights between two rows of a table at most
_FEWEST_ROWS, _FEWEST_FULL_ROWS = 3, 2
_LONG_CELL = 40  # characters: two columns of longer cells are columns of prose
_FEWEST_WORDS = 4  # of most lines of a column of prose
_RUNS_ON = 0.4  # of the lines of a column of prose begin within a sentence
_COUNT, _COUNTED = re.compile(r"\d{1,4}"), re.compile(r"(\d{1,4}) (\S.*)")
_MARK = re.compile(r"[^\w\s]|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,5})[.)]|o")  # of an item of a list
_GAP = 1.25  # times the usual distance of lines: a row of a table begins
_INDENT = 20.0  # points by which a line may stand out of its column


@dataclass(frozen=True, slots=True)
class PageTable:
    """Lines `first` to `last - 1` of a page as a table; `lefts` are where its columns begin."""

    first: int
    last: int
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lefts: tuple[float, ...]


def find_tables(lines: Sequence[Line], ruled: Sequence[PageTable] = ()) -> Iterator[PageTable]:
    """Find rows of cells that stand below each other, beside the `ruled` tables; text in columns and lists are none."""
    number, known = 0, {table.first: table for table in ruled}
    while number < len(lines):
        if own := known.get(number):
            yield own
            number = own.last
            continue
        last = min([_block_end(lines, number), *(first for first in known if first > number)])
        table = _table(lines, number, last) if last - number >= _FEWEST_ROWS else None
        if table:
            yield table
        number = max(number + 1, last)


def unfold_columns(lines: Sequence[Line]) -> list[Line]:
    """Put the columns of prose that were drawn line by line one below the other."""
    ordered, number = list[Line](), 0
    while number < len(lines):
        last = _block_end(lines, number)
        columns = _prose_columns(lines[number:last]) if last - number >= _FEWEST_ROWS else None
        if columns is None:
            last = max(number + 1, last)
            ordered += lines[number:last]
        else:
            while last < len(lines) and _is_below(lines[last - 1], lines[last]) and _fits(lines[last], columns):
                last += 1
            block = lines[number:last]
            for left, right in columns:
                for line in block:
                    cells = tuple(cell for cell in line.cells if _share(cell.left, cell.right, left, right) > 0)
                    if cells:
                        ordered.append(Line(cells, line.top, line.height, line.is_bold))
        number = last
    return ordered


def without_line_numbers(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of a page without the numbers in its margins that count them: before the words or behind them.

    A blank line that is counted is left out.
    """
    numbered = [(Counted(at, number, cell.text if cell else ""), cell) for at, number, cell in _parted(lines)]
    words = {one.at: cell for one, cell in numbered}
    counted = {one.at for one in lines_counted([one for one, _ in numbered])}
    rest = [(line, words[at] if at in counted else None, at in counted) for at, line in enumerate(lines)]
    return [replace(line, cells=(cell,)) if cell else line for line, cell, is_counted in rest if cell or not is_counted]


def _parted(lines: Sequence[Line]) -> Iterator[tuple[int, int, Cell | None]]:
    """Yield the place of each line with a number in its margin, the number, and its words if it is not blank."""
    for at, line in enumerate(lines):
        match line.cells:
            case (one,) if _COUNT.fullmatch(one.text):
                yield at, int(one.text), None
            case (one,) if found := _COUNTED.fullmatch(one.text):
                yield at, int(found[1]), replace(one, text=found[2])
            case (number, other) if _COUNT.fullmatch(number.text):
                yield at, int(number.text), other if other.text != number.text else None
            case (words, number) if _COUNT.fullmatch(number.text):
                yield at, int(number.text), words
            case (number, words, again) if number.text == again.text and _COUNT.fullmatch(number.text):
                yield at, int(number.text), words


def _prose_columns(block: Sequence[Line]) -> list[tuple[float, float]] | None:
    """Return the extents of the columns of a block of prose; None for a table.

    Most cells are parts of sentences that go on in the line below, and no gap runs through all columns.
    """
    width = Counter(len(line.cells) for line in block if len(line.cells) > 1).most_common(1)[0][0]
    full = [line for line in block if len(line.cells) == width]
    columns = _columns(full)
    if len(full) < _FEWEST_ROWS or columns is None or any(not _fits(line, columns) for line in block):
        return None
    texts = [[line.cells[column].text for line in full] for column in range(width)]
    for column in texts:
        starts = [text[:1].islower() for text in column[1:]]
        if median(len(text.split()) for text in column) < _FEWEST_WORDS or sum(starts) < _RUNS_ON * len(starts):
            return None
    steps = [above.top - below.top for above, below in pairwise(full)]
    for at, step in enumerate(steps, start=1):
        if step > _GAP * median(steps) and not any(column[at][:1].islower() for column in texts):
            return None
    return columns


def _is_below(above: Line, line: Line) -> bool:
    return 0 < above.top - line.top < _NEXT_LINE / 2 * max(above.height, line.height)


def _fits(line: Line, columns: Sequence[tuple[float, float]]) -> bool:
    return all(
        any(left - _INDENT <= cell.left and cell.right <= right + _INDENT for left, right in columns)
        and sum(_share(cell.left, cell.right, left, right) > 0 for left, right in columns) == 1
        for cell in line.cells
    )


def _share(left: float, right: float, other_left: float, other_right: float) -> float:
    return min(right, other_right) - max(left, other_left)


def _block_end(lines: Sequence[Line], start: int) -> int:
    """Return the end of the lines that may be a table: rows of several cells, and single cells between them."""
    end = start
    for number in range(start, len(lines)):
        line = lines[number]
        above = lines[number - 1] if number > start else None
        if above and not 0 < above.top - line.top < _NEXT_LINE * max(above.height, line.height):
            break
        if len(line.cells) > 1:
            end = number + 1
        elif not above or number > end:  # no single cell at the beginning, and no two together
            break
    return end


def _table(lines: Sequence[Line], first: int, last: int) -> PageTable | None:
    block = lines[first:last]
    counts = Counter(len(line.cells) for line in block if len(line.cells) > 1)
    width, rows_of_width = max(counts.items(), key=lambda one: (one[1], one[0]))
    columns = _columns([line for line in block if len(line.cells) == width])
    if rows_of_width < _FEWEST_FULL_ROWS or columns is None:
        return None
    rows = [_row(line, columns) for line in block]
    if width == 2 and all(_MARK.fullmatch(row[0]) for row in rows if all(row)):  # noqa: PLR2004  a list
        return None
    usual = [sorted(len(row[column]) for row in rows)[len(rows) // 2] for column in range(width)]
    if sum(length > _LONG_CELL for length in usual) > 1:
        return None
    # A name may take several lines: a line of the header that leaves columns blank continues in the next one.
    spanned = {number for number, row in enumerate(rows) if not all(row) and not any(map(is_number, row))}
    return page_table(first, rows, spanned, tuple(left for left, _ in columns))


def page_table(first: int, rows: Sequence[Row], spanned: Collection[int], lefts: tuple[float, ...]) -> PageTable:
    """Return the table of rows that stand in the lines of a page from `first` on; see find_header for `spanned`."""
    header = find_header(rows, spanned)
    names = header.names if not any(name.endswith(":") for name in header.names) else ()
    body = rows[header.captions + (header.rows if names else 0) :]
    filled = [tuple(row) for _, row in fill_labels(list(enumerate(body)))[0]] if names else map(tuple, body)
    return PageTable(first + header.captions, first + len(rows), names, tuple(filled), lefts)


def _columns(lines: Sequence[Line]) -> list[tuple[float, float]] | None:
    extents = [
        (min(cell.left for cell in cells), max(cell.right for cell in cells))
        for cells in zip(*(line.cells for line in lines), strict=True)
    ]
    apart = all(right < left for (_, right), (left, _) in pairwise(extents))
    return extents if apart else None


def _row(line: Line, columns: Sequence[tuple[float, float]]) -> list[str]:
    """Write each cell under the column that it overlaps most; one that spans several counts for all of them.

    Values of neighbouring columns that stand near are one cell: one of as many words as columns, of which two have
    digits, is parted.
    """
    row = [""] * len(columns)
    for cell in line.cells:
        shared = [min(cell.right, right) - max(cell.left, left) for left, right in columns]
        over = [number for number, width in enumerate(shared) if width > 0]
        if len(over) <= 1 or len(line.cells) == 1:
            over = [max(range(len(columns)), key=shared.__getitem__)] if len(line.cells) > 1 or len(over) <= 1 else [0]
        words = cell.text.split()
        is_values = len(words) == len(over) > 1 and sum(map(has_digit, words)) > 1
        for at, number in enumerate(over):
            row[number] = f"{row[number]} {words[at] if is_values else cell.text}".strip()
    return row
