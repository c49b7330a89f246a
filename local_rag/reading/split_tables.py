"""Split long tables between rows, and find the header that a chunk below it repeats."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter

from local_rag.reading.ruler import Ruler, Span
from local_rag.records import Table

_HEADER_SHARE = 2  # a repeated header takes at most this part of a chunk
_LONGEST_HEADER = 2000  # characters
_LONGEST_ROW = 64 * 1024  # characters before a chunk in which its row and column are looked for
_LONGEST_LABEL = 80  # characters of the cell that says which row a chunk continues
_CELL_END = re.compile(r"(?<!\\)\|")
_NAMED_CELL = re.compile(r"; ")
_LAST_NAME = re.compile(r"(?:^Row \d+: |; )([^:;\n]{1,60}): (?!.*; [^:;\n]{1,60}: )", re.DOTALL)


def pieces_of(tables: Sequence[Table], ruler: Ruler, start: int, end: int) -> Iterator[tuple[Span, Table | None]]:
    """Yield the tables within a span that are longer than a chunk, and the text between them."""
    for table in tables[bisect_right(tables, start, key=attrgetter("end")) :]:
        first, last = max(table.start, start), min(table.end, end)
        if first >= last:
            break
        if not ruler.fits(*ruler.trim(first, last)):
            yield (start, first), None
            yield (first, last), table
            start = last
    yield (start, end), None


def split_table(table: Table, ruler: Ruler, start: int, end: int) -> Iterator[Span]:
    """Split a long table into groups of rows that fit a chunk together with its header; cut a longer row into cells."""
    room = _room(table, ruler, table.rows)
    begun, tokens = start, 0
    for row, row_end in _lines(ruler.text, start, end):
        size = ruler.size(row, row_end)
        if row > begun and tokens + size > (ruler.limit if begun < table.rows else room):
            yield begun, row
            begun, tokens = row, 0
        tokens += size
        if tokens > room and row >= table.rows:
            if begun < row:
                yield begun, row
            yield from _split_row(table, ruler, row, row_end)
            begun, tokens = row_end, 0
    yield begun, end


def table_header(table: Table, ruler: Ruler, start: int) -> str:
    """Return what a chunk that begins at `start` repeats: the names of its columns, and which row it continues."""
    text = ruler.text
    if start < table.rows:
        return ""
    row = max(table.rows, text.rfind("\n", max(0, start - _LONGEST_ROW), start) + 1)
    if start - row >= _LONGEST_ROW:  # within a very long cell
        return ""
    within = bool(text[row:start].strip(" |"))
    if not table.columns:
        return _shorten(ruler, _name_of_row(text, row, start)) if within else ""
    if not within:
        return _shorten(ruler, _row_of(table.columns))
    before = [" ".join(cell.split()) for cell in _CELL_END.split(text[row:start].lstrip().removeprefix("|"))]
    first = f"{table.columns[0]}: {before[0]}" if table.columns[0] else before[0]
    columns = table.columns[len(before) if text[start] == "|" else len(before) - 1 :]
    label = _shorten(ruler, first[:_LONGEST_LABEL], 2 * _HEADER_SHARE)
    return f"{label}\n{_shorten(ruler, _row_of(columns), 2 * _HEADER_SHARE)}".strip()


def _row_of(columns: Sequence[str]) -> str:
    return f"| {' | '.join(columns)} |" if any(columns) else ""


def table_at(tables: Sequence[Table], start: int) -> Table | None:
    """Return the table in which an offset lies."""
    index = bisect_right(tables, start, key=attrgetter("start")) - 1
    return tables[index] if index >= 0 and start < tables[index].end else None


def _split_row(table: Table, ruler: Ruler, start: int, end: int) -> Iterator[Span]:
    """Cut a row that is longer than a chunk between cells, else between words."""
    if table.columns:
        ends = [found.start() for found in _CELL_END.finditer(ruler.text, start + 1, end)]
        ends = ends[:-1] if ends and not ruler.text[ends[-1] + 1 : end].strip() else ends
    else:
        ends = [found.end() for found in _NAMED_CELL.finditer(ruler.text, start + 1, end)]
    begun, tokens, room = start, 0, _room(table, ruler, start)
    for cell, cell_end in pairwise([start, *ends, end]):
        size = ruler.size(cell, cell_end)
        if begun < cell and (tokens + size > room or cell_end - begun > ruler.longest):
            yield begun, cell
            begun, tokens, room = cell, 0, _room(table, ruler, cell)
        tokens += size
        while begun < cell_end and tokens > room:  # this cell alone is longer than a chunk
            cut = Ruler(ruler.text, ruler.tokenizer, max(1, room)).first_cut(begun, cell_end)
            yield begun, cut
            begun, tokens, room = cut, ruler.size(cut, cell_end), _room(table, ruler, cut)
    yield begun, end


def _room(table: Table, ruler: Ruler, start: int) -> int:
    """Return how many tokens a chunk has room for that begins at `start`."""
    return ruler.limit - ruler.tokens(table_header(table, ruler, start))


def _name_of_row(text: str, row: int, start: int) -> str:
    """Name a row and the column in which a chunk continues it: `Row 7: Name: Ada; Remark:`."""
    begun = text[row:start]
    first = begun.split("; ", 1)[0][:_LONGEST_LABEL]
    if begun.endswith("; "):
        return first
    name = _LAST_NAME.search(begun[-_LONGEST_HEADER:])
    return f"{first}; {name[1]}:" if name and not first.endswith(f"{name[1]}: ") else first


def _shorten(ruler: Ruler, header: str, share: int = _HEADER_SHARE) -> str:
    """Cut a header to the part of a chunk that it may take."""
    header = header[:_LONGEST_HEADER]
    offsets = ruler.tokenizer.encode(header, add_special_tokens=False).offsets
    most = ruler.limit // share
    if len(offsets) <= most:
        return header
    cut = header[: offsets[most][0]].rstrip()
    return cut.rpartition(" |")[0] or cut


def _lines(text: str, start: int, end: int) -> Iterator[Span]:
    while start < end:
        line_end = text.find("\n", start, end)
        after = end if line_end < 0 else line_end + 1
        yield start, after
        start = after
