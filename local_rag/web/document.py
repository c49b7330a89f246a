"""A document as it was indexed: its text in parts of bounded size, its lines, headings and one passage marked."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from local_rag.store.database import Store, StoredChunk, StoredDocument

PART = 60_000  # characters shown at once
_BEFORE = 4000  # of them before a passage
_MOST_HEADINGS = 400
_LONGEST_LINE = 4000


@dataclass(frozen=True, slots=True)
class Line:
    """A line, or a piece of a very long one, as (text, marked); `number` is 0 for what goes on with a line."""

    number: int
    pieces: tuple[tuple[str, bool], ...]
    begins: bool = False  # the passage


@dataclass(frozen=True, slots=True)
class Outline:
    """A heading, and the chunk that begins below it."""

    title: str
    level: int
    chunk: int


@dataclass(frozen=True, slots=True)
class DocumentView:
    """A part of a document, with what leads to the others: offsets, None where there are none."""

    document: StoredDocument
    lines: tuple[Line, ...]
    outline: tuple[Outline, ...]
    start: int
    end: int
    length: int
    before: int | None
    after: int | None
    page: int | None
    pages: tuple[int, ...]
    chunk: StoredChunk | None
    earlier: int | None
    later: int | None


def view_document(store: Store, document: StoredDocument, *, chunk_id: int, start: int, page: int) -> DocumentView:
    """Show the part of a document that holds a chunk, or a page, or begins at an offset."""
    text = store.document_text(document.id)
    chunks = list(store.chunks(document.id))
    place = next((place for place, one in enumerate(chunks) if one.id == chunk_id), None)
    chosen = chunks[place] if place is not None else None
    pages = tuple(sorted({one.chunk.page for one in chunks if one.chunk.page is not None}))
    if chosen is None and page in pages:
        start = next(one.chunk.start for one in chunks if one.chunk.page == page)
    marked = (chosen.chunk.start, chosen.chunk.end) if chosen else (0, 0)
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
        page=(chosen.chunk.page if chosen else page if page in pages else pages[0]) if pages else None,
        pages=pages,
        chunk=chosen,
        earlier=chunks[place - 1].id if place else None,
        later=chunks[place + 1].id if place is not None and place + 1 < len(chunks) else None,
    )


def _line_start(text: str, offset: int) -> int:
    """Return where the line of an offset begins, or the offset itself where that is too far off."""
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


def _outline(chunks: Sequence[StoredChunk]) -> Iterator[Outline]:
    """Yield each heading once, where the chunks go on below it."""
    before: tuple[str, ...] = ()
    count = 0
    for stored in chunks:
        headings = stored.chunk.headings
        for level, title in enumerate(headings):
            if headings[: level + 1] != before[: level + 1] and count < _MOST_HEADINGS:
                count += 1
                yield Outline(title, level, stored.id)
        before = headings
