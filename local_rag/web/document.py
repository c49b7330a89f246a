"""The view of a document as it was indexed: a part of its text with one passage marked, and its headings."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from local_rag.maintenance.contents import WholeDocument
from local_rag.records import Passage

PART = 60_000  # characters shown at once
_BEFORE = 4000  # of them before a passage
_MOST_HEADINGS = 400
_LONGEST_LINE = 4000


@dataclass(frozen=True, slots=True)
class Line:
    """A line, or a piece of a very long one, as pairs (text, marked); `number` is 0 for the later pieces of a line."""

    number: int
    pieces: tuple[tuple[str, bool], ...]
    begins: bool = False  # the passage


@dataclass(frozen=True, slots=True)
class Outline:
    """A heading and the chunk that begins below it."""

    title: str
    level: int
    chunk: int


@dataclass(frozen=True, slots=True)
class DocumentView:
    """A part of a document; `before` and `after` are offsets of the parts around it, None if there are none."""

    document: WholeDocument
    lines: tuple[Line, ...]
    outline: tuple[Outline, ...]
    start: int
    end: int
    length: int
    before: int | None
    after: int | None
    page: int | None
    pages: tuple[int, ...]
    chunk: Passage | None
    earlier: int | None
    later: int | None


def view_document(document: WholeDocument, *, chunk_id: int, start: int, page: int) -> DocumentView:
    """Return the part of a document that holds a chunk, or a page, or begins at an offset."""
    text, chunks = document.text, document.passages
    position = next((position for position, one in enumerate(chunks) if one.chunk_id == chunk_id), None)
    chosen = chunks[position] if position is not None else None
    pages = tuple(sorted({one.page for one in chunks if one.page is not None}))
    if chosen is None and page in pages:
        start = next(one.start for one in chunks if one.page == page)
    marked = (chosen.start, chosen.end) if chosen else (0, 0)
    begin = _line_start(text, max(0, marked[0] - _BEFORE) if chosen else min(max(0, start), len(text)))
    end = min(len(text), begin + PART)
    if end < len(text) and (cut := text.rfind("\n", begin, end)) > begin:
        end = cut + 1
    first = text.count("\n", 0, begin) + 1
    return DocumentView(
        document=document,
        lines=tuple(_lines(text, begin, end, first, marked)),
        outline=tuple(_outline(chunks)),
        start=begin,
        end=end,
        length=len(text),
        before=_line_start(text, max(0, begin - PART)) if begin else None,
        after=end if end < len(text) else None,
        page=(chosen.page if chosen else page if page in pages else pages[0]) if pages else None,
        pages=pages,
        chunk=chosen,
        earlier=chunks[position - 1].chunk_id if position else None,
        later=chunks[position + 1].chunk_id if position is not None and position + 1 < len(chunks) else None,
    )


def _line_start(text: str, offset: int) -> int:
    """Return the offset at which the line of an offset begins, or the offset itself if the line is very long."""
    start = text.rfind("\n", 0, offset) + 1
    return start if offset - start <= _LONGEST_LINE else offset


def _lines(text: str, begin: int, end: int, number: int, marked: tuple[int, int]) -> Iterator[Line]:
    begun = False
    for found in re.finditer(r"[^\n]*(?:\n|\Z)", text[begin:end]):
        for offset in range(0, max(1, len(found[0].rstrip("\n"))), _LONGEST_LINE):
            left = begin + found.start() + offset
            right = min(left + _LONGEST_LINE, begin + found.start() + len(found[0].rstrip("\n")))
            edges = sorted({left, right, *(edge for edge in marked if left < edge < right)})
            pieces = tuple((text[one:other], marked[0] <= one < marked[1]) for one, other in itertools.pairwise(edges))
            begins = not begun and any(mark for _, mark in pieces)
            begun = begun or begins
            if found[0]:
                yield Line(number if offset == 0 else 0, pieces, begins)
        number += 1


def _outline(chunks: Sequence[Passage]) -> Iterator[Outline]:
    """Yield each heading once, with the first chunk below it."""
    before: tuple[str, ...] = ()
    count = 0
    for chunk in chunks:
        headings = chunk.headings
        for level, title in enumerate(headings):
            if headings[: level + 1] != before[: level + 1] and count < _MOST_HEADINGS:
                count += 1
                yield Outline(title, level, chunk.chunk_id)
        before = headings
