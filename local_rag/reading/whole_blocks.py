"""Keep in one chunk what says little when it is cut: a table that fits, and a list with the line that introduces it."""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from local_rag.reading.ruler import Ruler, Span
from local_rag.records import Table

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
