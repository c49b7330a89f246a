"""The headings of a document, all of them: also those where no passage begins."""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from local_rag.catalogue.contents import WholeDocument
from local_rag.reading.markdown import find_headings
from local_rag.records import Passage
from local_rag.web.views.document_html import kind_of

_MOST_HEADINGS = 3000
_PARSED = 500_000  # characters of Markdown that are parsed; of longer text, lines that begin with # are headings
_SIGNED = re.compile(r"^(#{1,6})[ \t]+(\S[^\n]{0,300})$|^ {0,3}(```|~~~)", re.MULTILINE)
_SIGNS = re.compile(r"#{1,6} ")


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
        signs = _SIGNS.match(line)
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


def _page_at(chunks: Sequence[Passage], offset: int) -> int | None:
    index = bisect_right(chunks, offset, key=lambda chunk: chunk.start) - 1
    return chunks[max(index, 0)].page if chunks else None
