"""Split long tables between rows, and keep in one chunk what says little when it is cut: short tables, and lists."""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter

from local_rag.document_records import Table
from local_rag.reading.converters.table_layout import pipe_row
from local_rag.reading.ruler import Ruler, Span
from local_rag.text.pipe_rows import CELL_END
from local_rag.text.sheet_rows import CELL_BREAK, CELL_BREAKS, ROW_LABEL

_HEADER_SHARE = 2  # a repeated header takes at most this part of a chunk
_LONGEST_HEADER = 2000  # characters
_LONGEST_ROW = 64 * 1024  # characters before a chunk in which its row and column are looked for
_LONGEST_LABEL = 80  # characters of the cell that says which row a chunk continues
_LAST_NAME = re.compile(rf"(?:^{ROW_LABEL}|; )(?P<name>[^:;\n]{{1,60}}): (?!.*; [^:;\n]{{1,60}}: )", re.DOTALL)


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
    before = [" ".join(cell.split()) for cell in CELL_END.split(text[row:start].lstrip().removeprefix("|"))]
    first = f"{table.columns[0]}: {before[0]}" if table.columns[0] else before[0]
    columns = table.columns[len(before) if text[start] == "|" else len(before) - 1 :]
    label = _shorten(ruler, first[:_LONGEST_LABEL], 2 * _HEADER_SHARE)
    return f"{label}\n{_shorten(ruler, _row_of(columns), 2 * _HEADER_SHARE)}".strip()


def _row_of(columns: Sequence[str]) -> str:
    return pipe_row(columns) if any(columns) else ""


def table_at(tables: Sequence[Table], start: int) -> Table | None:
    """Return the table in which an offset lies."""
    index = bisect_right(tables, start, key=attrgetter("start")) - 1
    return tables[index] if index >= 0 and start < tables[index].end else None


def _split_row(table: Table, ruler: Ruler, start: int, end: int) -> Iterator[Span]:
    """Cut a row that is longer than a chunk between cells, else between words."""
    if table.columns:
        ends = [found.start() for found in CELL_END.finditer(ruler.text, start + 1, end)]
        ends = ends[:-1] if ends and not ruler.text[ends[-1] + 1 : end].strip() else ends
    else:
        ends = [found.end() for found in CELL_BREAKS.finditer(ruler.text, start + 1, end)]
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
    first = begun.split(CELL_BREAK, 1)[0][:_LONGEST_LABEL]
    if begun.endswith(CELL_BREAK):
        return first
    name = _LAST_NAME.search(begun[-_LONGEST_HEADER:])
    return f"{first}; {name['name']}:" if name and not first.endswith(f"{name['name']}: ") else first


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


# Labels of items: signs, `3.`, `(a)`, `iv)`, `2.2`, `1.1.3.`
_ITEM = re.compile(
    r"[ \t]*(?:[-*+\u2022\u25e6\u2013]|\(?(?:\d{1,3}|[A-Za-z]|[ivxlc]{1,6}|[IVXLC]{1,6})[.)]"
    r"|\d{1,3}(?:\.\d{1,3}){1,5}\.?)[ \t]+\S"
)
_INTRODUCES = re.compile(r":[ \t*_]{0,8}\n")

# The start of the headings at the very end of a text that starts at the first offset and ends at the second, or None.
HeadingsBefore = Callable[[int, int], int | None]


def whole_blocks(
    tables: Sequence[Table], ruler: Ruler, table_tokens: int, headings_before: HeadingsBefore, start: int, end: int
) -> list[Span]:
    """Return the blocks of a text that are to stay whole, in order and apart from each other.

    A table, with the heading and the line above it if they fit too, may have `table_tokens`; a list is within the
    limit of the ruler.
    """
    blocks = [*_tables(tables, ruler, table_tokens, headings_before, start, end), *_lists(ruler, start, end)]
    apart: list[Span] = []
    for block in sorted(blocks, key=lambda one: (one[0], -one[1])):
        if not apart or block[0] >= apart[-1][1]:
            apart.append(block)
    return apart


def keep_whole(ruler: Ruler, spans: Iterable[Span], blocks: Iterable[Span]) -> Iterator[Span]:
    """Cut a text elsewhere where its spans cut a block; what is left of them before and after it may be small."""
    waiting = deque(spans)
    for first, last in blocks:
        while waiting and waiting[0][1] <= first:
            yield waiting.popleft()
        touched = list[Span]()
        while waiting and waiting[0][0] < last:
            touched.append(waiting.popleft())
        if len(touched) <= 1:
            waiting.extendleft(touched)
            continue
        for start, end in ((touched[0][0], first), (first, last)):
            if start < end:
                yield ruler.trim(start, end)
        if last < touched[-1][1]:
            waiting.appendleft(ruler.trim(last, touched[-1][1]))
    yield from waiting


def _tables(
    tables: Sequence[Table], ruler: Ruler, most: int, headings_before: HeadingsBefore, start: int, end: int
) -> Iterator[Span]:
    """Yield the tables that fit, each from as far above it as fits; none apart from a heading right above it."""
    large = Ruler(ruler.text, ruler.tokenizer, most)
    for table in tables[bisect_right(tables, start, key=lambda one: one.end) :]:
        if table.start >= end:
            return
        first, last = max(table.start, start), min(table.end, end)
        for above in _starts_above(ruler, headings_before, start, first):
            if large.fits(*ruler.trim(above, last)):
                yield ruler.trim(above, last)
                break
        start = last  # the last row of a table is no line above the next one


def _starts_above(ruler: Ruler, headings_before: HeadingsBefore, start: int, first: int) -> Iterator[int]:
    """Yield where a table with something of the text above it may start, the farthest first."""
    nearest = max(start, first - ruler.longest)
    if (heading := headings_before(nearest, first)) is not None:
        yield heading
        return
    above = ruler.text[nearest:first].rstrip()
    line = nearest + above.rfind("\n") + 1
    if above and (line > nearest or nearest == start) and not _ITEM.match(ruler.text, line):
        heading = headings_before(max(start, line - ruler.longest), line)
        yield from (line,) if heading is None else (heading, line)
    yield first


def _lists(ruler: Ruler, start: int, end: int) -> Iterator[Span]:
    """Yield each list that fits with the line above it that ends with a colon."""
    for found in _INTRODUCES.finditer(ruler.text, start, end):
        line = max(start, ruler.text.rfind("\n", max(start, found.start() - ruler.longest), found.start()) + 1)
        last = _end_of_list(ruler.text, found.end(), min(end, line + ruler.longest))
        if last > found.end() and ruler.fits(*ruler.trim(line, last)):
            yield ruler.trim(line, last)


def _end_of_list(text: str, start: int, end: int) -> int:
    """Return the end of the list that starts at an offset, or after one empty line; the offset if there is none."""
    last = at = start
    while at < end:
        after = text.find("\n", at, end) + 1 or end
        line = text[at:after]
        if line.strip():
            goes_on = last > start and line[0] in " \t"
            if not _ITEM.match(line) and not goes_on:
                break
            last = after
        elif not text[last:at].strip() and at > last:
            break  # a second empty line
        at = after
    return last
