"""Read the lines of a PDF's page with their place and size, and find the tables among them."""

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from local_rag.reading.converters.tables import find_header, is_number
from local_rag.reading.decode import clean

_WIDE = 0.75  # a gap of this part of a line's height separates cells: a space is 0.25, in justified text up to 0.6
_NEXT_LINE = 3.0  # heights between two rows of a table at most
_FEWEST_ROWS, _FEWEST_FULL_ROWS = 3, 2
_LONG_CELL = 40  # characters: two columns of longer cells are columns of prose
_MOST_WORDS = 20_000  # of a page: longer ones are read as text alone

_Place = Callable[[int], tuple[float, float, float, float] | None]


@dataclass(frozen=True, slots=True)
class Cell:
    """Words without a wide gap between them, and their extent."""

    text: str
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page; `height` is that of its font, 0 if it is not known, and `top` is measured from below."""

    cells: tuple[Cell, ...]
    top: float = 0.0
    height: float = 0.0

    @property
    def text(self) -> str:
        """Return the words."""
        return " ".join(cell.text for cell in self.cells)


@dataclass(frozen=True, slots=True)
class PageTable:
    """Lines `first` to `last - 1` of a page as a table; `lefts` are where its columns begin."""

    first: int
    last: int
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lefts: tuple[float, ...]


def lines_of(textpage: Any) -> list[Line]:
    """Return the lines of a page in the order of its text; blank ones are left out."""
    text = textpage.get_text_range()
    if text.count(" ") > _MOST_WORDS:
        return [Line((Cell(line, 0, 0),)) for line in clean(text).split("\n") if line.strip()]
    place = _places(textpage, len(text))
    lines, start = list[Line](), 0
    for line in text.split("\n"):
        words = _words(line, start)
        start += len(line) + 1
        if words:
            one = _line(words, place)
            if lines and _is_beside(lines[-1], one):  # PDFium may break a line between cells
                one = Line((*lines.pop().cells, *one.cells), one.top, one.height)
            lines.append(one)
    return lines


def find_tables(lines: Sequence[Line]) -> Iterator[PageTable]:
    """Find rows of cells that stand below each other; text in columns is none."""
    number = 0
    while number < len(lines):
        last = _block_end(lines, number)
        table = _table(lines, number, last) if last - number >= _FEWEST_ROWS else None
        if table:
            yield table
        number = max(number + 1, last)


def _places(textpage: Any, length: int) -> _Place:
    """Return a function that gives the box of a character: left, bottom, right, top; None if it has none."""
    import pypdfium2.raw as pdfium

    box = pdfium.FS_RECTF()
    same = textpage.count_chars() == length

    def place(offset: int) -> tuple[float, float, float, float] | None:
        index = offset if same else pdfium.FPDFText_GetCharIndexFromTextIndex(textpage.raw, offset)
        if index < 0 or not pdfium.FPDFText_GetLooseCharBox(textpage.raw, index, ctypes.byref(box)):
            return None
        return box.left, box.bottom, box.right, box.top

    return place


def _words(line: str, start: int) -> list[tuple[str, int]]:
    """Return the words of a line with their offsets."""
    words, offset = [], 0
    for word in line.replace("\r", " ").replace("\t", " ").split(" "):
        if word.strip():
            words.append((word, start + offset))
        offset += len(word) + 1
    return words


def _line(words: Sequence[tuple[str, int]], place: _Place) -> Line:
    cells: list[Cell] = []
    top = height = 0.0
    for word, offset in words:
        first, last = place(offset), place(offset + len(word) - 1)
        left, right = (first[0], last[2]) if first and last else (cells[-1].right if cells else 0.0,) * 2
        if first and not height:
            height, top = first[3] - first[1], first[3]
        if cells and left - cells[-1].right <= _WIDE * (height or 1.0):
            cells[-1] = Cell(f"{cells[-1].text} {clean(word)}", cells[-1].left, right)
        else:
            cells.append(Cell(clean(word), left, right))
    return Line(tuple(cells), top, height)


def _is_beside(line: Line, other: Line) -> bool:
    """Return whether a line stands to the right of the line before it."""
    same = abs(line.top - other.top) < line.height / 4 and abs(line.height - other.height) < line.height / 4
    return same and other.cells[0].left > line.cells[-1].right + _WIDE * line.height


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
    if _is_prose(rows, width):
        return None
    # A name may take several lines: a line of the header that leaves columns blank continues in the next one.
    spanned = {number for number, row in enumerate(rows) if not all(row) and not any(map(is_number, row))}
    header = find_header(rows, spanned)
    names = header.names if not any(name.endswith(":") for name in header.names) else ()
    body = rows[header.captions + (header.rows if names else 0) :]
    lefts = tuple(left for left, _ in columns)
    return PageTable(first + header.captions, last, names, tuple(map(tuple, body)), lefts)


def _columns(lines: Sequence[Line]) -> list[tuple[float, float]] | None:
    """Return the extents of the columns; None if they overlap."""
    extents = [
        (min(cell.left for cell in cells), max(cell.right for cell in cells))
        for cells in zip(*(line.cells for line in lines), strict=True)
    ]
    apart = all(right < left for (_, right), (left, _) in pairwise(extents))
    return extents if apart else None


def _row(line: Line, columns: Sequence[tuple[float, float]]) -> list[str]:
    """Write each cell under the column that it overlaps most; one that spans several counts for all of them."""
    row = [""] * len(columns)
    for cell in line.cells:
        shared = [min(cell.right, right) - max(cell.left, left) for left, right in columns]
        over = [number for number, width in enumerate(shared) if width > 0]
        if len(over) <= 1 or len(line.cells) == 1:
            over = [max(range(len(columns)), key=shared.__getitem__)] if len(line.cells) > 1 or len(over) <= 1 else [0]
        for number in over:
            row[number] = f"{row[number]} {cell.text}".strip()
    return row


def _is_prose(rows: Sequence[Sequence[str]], width: int) -> bool:
    lengths = [sorted(len(row[column]) for row in rows)[len(rows) // 2] for column in range(width)]
    return sum(length > _LONG_CELL for length in lengths) > 1
