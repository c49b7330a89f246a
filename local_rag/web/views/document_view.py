"""The view of a document as it was indexed: a part of its text with one passage marked, and all its headings."""

import hashlib
import itertools
import re
import zlib
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from operator import attrgetter
from urllib.parse import urlencode

from markupsafe import Markup

from local_rag.catalogue.contents import WholeDocument
from local_rag.passage_records import Passage
from local_rag.reading.markdown import find_headings
from local_rag.retrieval.highlights import Mark
from local_rag.text.heading_lines import HEADING_SIGNS
from local_rag.text.sheet_rows import names_above
from local_rag.web.views.document_html import header_above, keeps_lines, kind_of, open_fence, render

PART = 40_000  # characters shown at once
_BEFORE = 4000  # of them before a passage
_LONGEST_LINE = 4000
_MOVED_BY = 200_000  # characters, within which words are looked for that a link leads to
_BEGINNING = re.compile(r"(?<!\w)\w|[^\w\s]")  # where words may begin that a link leads to
_start_of = attrgetter("start")
_PLACE = re.compile(r"([0-9]{1,12})-([0-9]{1,12})-([0-9a-f]{8})")
_MOST_HEADINGS = 3000
_PARSED = 500_000  # characters of Markdown that are parsed; of longer text, lines that begin with # are headings
_SIGNED = re.compile(r"^(#{1,6})[ \t]+(\S[^\n]{0,300})$|^ {0,3}(```|~~~)", re.MULTILINE)
_Found = tuple[int, int, str]  # offset, level and title of a heading


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A heading, and where it stands: `anchor` is the id of its element, if it has one; `shown` if that is here."""

    title: str
    level: int
    anchor: str
    offset: int
    page: int | None
    shown: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A line, or a piece of a very long one, as pairs (text, marked); `number` is 0 for the later pieces of a line."""

    number: int
    pieces: tuple[tuple[str, bool], ...]
    begins: bool = False  # the passage


@dataclass(frozen=True, slots=True)
class DocumentView:
    """A part of a document; `before` and `after` are offsets of the parts around it, None if there are none.

    Either its `rendered` text is shown or, as it was indexed, its `lines`. `address` leads to what is marked, also when
    the document has changed. `pages` are the numbers of pages, each with its label. `is_gone` says that a link led to
    words that it has no more.
    """

    document: WholeDocument
    rendered: Markup
    lines: tuple[Line, ...]
    outline: tuple[OutlineEntry, ...]
    start: int
    end: int
    length: int
    before: int | None
    after: int | None
    page: int | None
    pages: Mapping[int, str]
    chunk: Passage | None
    earlier: int | None
    later: int | None
    address: str
    is_gone: bool


def address_of(document: int, passage: Passage, best: tuple[int, int] = (0, 0)) -> str:
    """Return the address of a passage in its document, and of the words in it that are the best.

    It holds what finds them again after a change: a checksum of the words and one of the path, but nothing readable.
    """
    start, end = best if best[0] < best[1] else (0, len(passage.text))
    words = passage.text[start:end]
    if not words or passage.kind != "chunk":
        return f"/document/{document}?chunk={passage.chunk_id}#passage"
    place = f"{passage.start + start}-{passage.start + end}-{_checksum(words):08x}"
    fields = {"chunk": passage.chunk_id, "at": place, "of": path_key(passage.path)}
    return f"/document/{document}?{urlencode(fields)}#passage"


def path_key(path: str) -> str:
    """Return what stands for a path in a link."""
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _checksum(words: str) -> int:
    return zlib.crc32(words.encode("utf-8", "surrogatepass"))


def find_place(text: str, place: str) -> tuple[int, int] | None:
    """Return the span of the words that a link leads to, also if they have moved a little; None if they are gone."""
    if (named := _PLACE.fullmatch(place)) is None:
        return None
    start, length, checksum = int(named[1]), int(named[2]) - int(named[1]), int(named[3], 16)
    if not 0 < length <= PART:
        return None
    near = range(max(0, start - _MOVED_BY), min(len(text) - length, start + _MOVED_BY) + 1)
    offsets = (found.start() for found in _BEGINNING.finditer(text, near.start, near.stop)) if near else ()
    return next(
        (
            (one, one + length)
            for one in itertools.chain([start], offsets)
            if _checksum(text[one : one + length]) == checksum
        ),
        None,
    )


def view_document(
    document: WholeDocument, *, chunk_id: int = 0, place: str = "", start: int = 0, page: int = 0, plain: bool = False
) -> DocumentView:
    """Return the part of a document that holds a chunk, the place of a link, or a page, or begins at an offset."""
    text, chunks = document.text, document.passages
    best = find_place(text, place) if place else None
    position = next((position for position, one in enumerate(chunks) if one.chunk_id == chunk_id), None)
    if best and (position is None or not chunks[position].start <= best[0] < chunks[position].end):
        position = max(0, bisect_right(chunks, best[0], key=_start_of) - 1) if chunks else None
    chosen = chunks[position] if position is not None else None
    pages = {one.page: one.page_label for one in chunks if one.page is not None}
    marked = (chosen.start, max(chosen.end, best[1] if best else 0)) if chosen else (0, 0)
    begin, end = _part(text, chunks, marked, start)
    number = (chosen.page if chosen else page if page in pages else _page_at(chunks, start)) if pages else None
    if number is not None and document.path.lower().endswith(".pdf"):
        begin, end = _page_part(text, chunks, number, start, marked[1])
    kind = kind_of(document.path)
    first = text.count("\n", 0, begin) + 1
    marks = [Mark(marked[0] - begin, marked[1] - begin, "passage")]
    if best and best != marked:
        marks.append(Mark(best[0] - begin, best[1] - begin, "best"))
    marks = [Mark(max(0, one.start), min(end - begin, one.end), one.kind) for one in marks]
    plain = plain or kind == "code"
    return DocumentView(
        document=document,
        rendered=Markup("") if plain else _render(document, (begin, end), marks, first),
        lines=tuple(_lines(text, begin, end, first, best or marked)) if plain else (),
        outline=outline_of(document, (begin, end)),
        start=begin,
        end=end,
        length=len(text),
        before=_line_start(text, max(0, begin - PART)) if begin else None,
        after=end if end < len(text) else None,
        page=number,
        pages=pages,
        chunk=chosen,
        earlier=chunks[position - 1].chunk_id if position else None,
        later=chunks[position + 1].chunk_id if position is not None and position + 1 < len(chunks) else None,
        address=address_of(document.id, chosen, _within(best, chosen)) if chosen else "",
        is_gone=bool(place) and best is None,
    )


def _within(span: tuple[int, int] | None, chunk: Passage) -> tuple[int, int]:
    """Return a span of the document as one of a chunk."""
    return (span[0] - chunk.start, min(span[1], chunk.end) - chunk.start) if span else (0, 0)


def _part(text: str, chunks: Sequence[Passage], marked: tuple[int, int], start: int) -> tuple[int, int]:
    """Return the span of the part to show: it begins and ends with a chunk, or else with a line."""
    wanted = max(0, marked[0] - _BEFORE) if marked[1] else min(max(0, start), len(text))
    begin = max(_line_start(text, wanted), _chunk_start(text, chunks, wanted) if marked[1] else 0)
    end = min(len(text), begin + PART)
    if end < len(text):
        chunk = _chunk_start(text, chunks, end)
        cut = chunk if chunk > max(begin, marked[1]) else text.rfind("\n", begin, end) + 1
        end = cut if cut > begin else end
    return begin, end


def _chunk_start(text: str, chunks: Sequence[Passage], offset: int) -> int:
    """Return where the last chunk before an offset begins, 0 if none begins there with a line."""
    index = bisect_right(chunks, offset, key=_start_of) - 1
    start = chunks[index].start if index >= 0 else 0
    return start if start and text[start - 1] == "\n" else 0


def _page_part(text: str, chunks: Sequence[Passage], page: int, start: int, least: int) -> tuple[int, int]:
    """Return the span of the text of a page, or its rest from an offset on."""
    on_page = next(chunk.start for chunk in chunks if chunk.page is not None and chunk.page >= page)
    end = next((chunk.start for chunk in chunks if chunk.page is not None and chunk.page > page), len(text))
    begin = start if on_page < start < end else on_page
    return begin, min(max(end, least), begin + PART)


def _page_at(chunks: Sequence[Passage], offset: int) -> int | None:
    return chunks[max(0, bisect_right(chunks, offset, key=_start_of) - 1)].page if chunks else None


def _render(document: WholeDocument, part: tuple[int, int], marks: Sequence[Mark], first_line: int) -> Markup:
    begin, end = part
    kind, text, chunks = kind_of(document.path), document.text[begin:end], document.passages
    index = bisect_right(chunks, begin, key=_start_of) - 1
    before = open_fence(document.text, begin) if kind == "markdown" else ""
    if not before and kind in {"markdown", "text"} and index >= 0:
        before = header_above(text, chunks[index].table_header)
    headings = titles_in(chunks) if kind == "text" else ()
    columns = names_above(document.text, begin) if kind != "markdown" else ()
    return render(
        text,
        kind,
        marks,
        before=before,
        heading=2,
        headings=headings,
        first_line=first_line,
        anchor="passage",
        columns=columns,
        breaks=keeps_lines(document.path),
    )


def _line_start(text: str, offset: int) -> int:
    """Return the offset at which the line of an offset begins, or the offset itself if the line is very long."""
    start = text.rfind("\n", 0, offset) + 1
    return start if offset - start <= _LONGEST_LINE else offset


def _lines(text: str, begin: int, end: int, number: int, marked: tuple[int, int]) -> Iterator[Line]:
    begun = False
    for line in re.finditer(r"[^\n]*(?:\n|\Z)", text[begin:end]):
        for offset in range(0, max(1, len(line[0].rstrip("\n"))), _LONGEST_LINE):
            left = begin + line.start() + offset
            right = min(left + _LONGEST_LINE, begin + line.start() + len(line[0].rstrip("\n")))
            edges = sorted({left, right, *(edge for edge in marked if left < edge < right)})
            pieces = tuple((text[one:other], marked[0] <= one < marked[1]) for one, other in itertools.pairwise(edges))
            begins = not begun and any(mark for _, mark in pieces)
            begun = begun or begins
            if line[0]:
                yield Line(number if offset == 0 else 0, pieces, begins)
        number += 1


def outline_of(document: WholeDocument, shown: tuple[int, int]) -> tuple[OutlineEntry, ...]:
    """Return the headings of a document of which the text between two offsets is shown."""
    text, chunks, kind = document.text, document.passages, kind_of(document.path)
    exact = list[_Found]()
    if kind in {"markdown", "sheet"}:
        exact = [*_of_markdown(text)]
    elif kind == "text":
        exact = [*_of_lines(text, titles_in(chunks))]
    titles = {title for _, _, title in exact}
    near = [] if kind == "markdown" and exact else [one for one in _of_chunks(chunks) if one[2] not in titles]
    found = sorted([*exact, *near])[:_MOST_HEADINGS]
    least, lines = min((level for _, level, _ in found), default=0), _lines_of(text, [one[0] for one in found])
    return tuple(
        OutlineEntry(
            title,
            level - least,
            f"line-{line}" if title in titles else "",
            offset,
            _page_at(chunks, offset),
            title in titles and shown[0] <= offset < shown[1],
        )
        for (offset, level, title), line in zip(found, lines, strict=True)
    )


def titles_in(chunks: Collection[Passage]) -> Mapping[str, int]:
    """Return the headings above the passages of a document, with their levels."""
    return {title: level for chunk in chunks for level, title in enumerate(chunk.headings)}


@lru_cache(maxsize=16)
def _of_markdown(text: str) -> tuple[_Found, ...]:
    """Return the offset, level and title of each heading of Markdown."""
    if len(text) <= _PARSED:
        return tuple((one.start, one.level - 1, one.title) for one in find_headings(text))
    headings, fence = [], ""
    for line in _SIGNED.finditer(text):
        if line[3]:
            fence = "" if fence == line[3] else fence or line[3]
        elif not fence:
            headings.append((line.start(), len(line[1]) - 1, line[2].strip().rstrip("#").strip()))
    return tuple(headings)


def _of_lines(text: str, titles: Mapping[str, int]) -> Iterator[_Found]:
    """Yield the lines that consist of a title, as they are shown as headings."""
    start = 0
    for line in text.split("\n") if titles else ():
        signs = HEADING_SIGNS.match(line)
        title = " ".join(line[signs.end() if signs else 0 :].split())
        if (level := titles.get(title)) is not None:
            yield start, level, title
        start += len(line) + 1


def _of_chunks(chunks: Sequence[Passage]) -> Iterator[_Found]:
    """Yield each heading at the first passage below it, where its own place is not known."""
    before: tuple[str, ...] = ()
    for chunk in chunks:
        for level, title in enumerate(chunk.headings):
            if chunk.headings[: level + 1] != before[: level + 1]:
                yield chunk.start, level, title
        before = chunk.headings


def _lines_of(text: str, offsets: Sequence[int]) -> Iterator[int]:
    """Return the number of the line of each offset; they ascend."""
    spans = zip([0, *offsets], offsets, strict=False)
    counted = accumulate((text.count("\n", start, end) for start, end in spans), initial=1)
    next(counted)
    yield from counted
