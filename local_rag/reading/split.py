"""Split a document into chunks along its structure, with sizes in tokens of the embedder."""

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate, islice, pairwise
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from local_rag.document_records import Chunk, Chunker, Document, Heading
from local_rag.errors import LocalRagError
from local_rag.reading.ruler import (
    CHARACTERS_PER_TOKEN,
    SENTENCE_START,
    WORD_START,
    Ruler,
    Span,
    load_tokenizer,
    without_limits,
)
from local_rag.reading.split_tables import keep_whole, pieces_of, split_table, table_at, table_header, whole_blocks
from local_rag.reading.structure import find_boundaries, line_starts

if TYPE_CHECKING:
    from semantic_text_splitter import MarkdownSplitter, TextSplitter
    from tokenizers import Tokenizer

# The time of the splitting library grows with the square of the length of unbroken text, so it gets blocks.
_BLOCK_CHARACTERS = 16 * 1024
_BLOCK_SEPARATORS = ("\n# ", "\n## ", "\n\n", "\n", " ")
# A chunk below this fraction of the limit joins a neighbour if both fit into one chunk.
_TINY = 1 / 8

# Each chunk is stored with as many of the innermost headings above it as fit.
_PATH_HEADINGS, _PATH_CHARACTERS = 8, 600

_START = attrgetter("start")

_HEADING_ALONE = re.compile(r".+|(?:([!-/:-@\[-`{-~])\1+\n)?.+\n[ ]{0,3}([!-/:-@\[-`{-~])\2*[ \t]*")

# Increase it whenever the reader or the splitter would return another document or other chunks for the same file.
READING_VERSION = 32


@dataclass(frozen=True, slots=True)
class Splitting:
    """How documents are split; `tokenizer` is the tokenizer's file, other fields as in `split`.

    `ocr_folder` keeps the pages that OCR has read; without it, OCR reads none.
    """

    tokenizer: Path
    max_tokens: int
    overlap: int = 0
    chunker: Chunker = "auto"
    ocr_folder: Path | None = None
    table_tokens: int = 0

    def split(self, document: Document) -> tuple[Chunk, ...]:
        """Split a document."""
        tokenizer = load_tokenizer(self.tokenizer)
        return split(
            document,
            tokenizer=tokenizer,
            max_tokens=self.max_tokens,
            overlap=self.overlap,
            chunker=self.chunker,
            table_tokens=self.table_tokens,
        )


def split(
    document: Document,
    *,
    tokenizer: "Tokenizer",
    max_tokens: int,
    overlap: int = 0,
    chunker: Chunker = "auto",
    table_tokens: int = 0,
) -> tuple[Chunk, ...]:
    """Split a document into chunks of at most `max_tokens` tokens without special tokens.

    The chunks are in order, cover all text except white space, and do not cross pages. Each may start with up to
    `overlap` tokens of the previous one, unless it starts with a heading. `auto` chooses by the document's kind. Only a
    single character of more than `max_tokens` tokens exceeds the limit, and a table that fits into `table_tokens`,
    which stays whole. A longer one is cut between its rows, so that each chunk has room for the header that it repeats.
    """
    if max_tokens < 1 or not 0 <= overlap < max_tokens:
        raise LocalRagError(f"Chunks of {max_tokens} tokens cannot overlap by {overlap}; choose a smaller overlap.")
    if chunker == "auto":
        chunker = "recursive" if document.kind == "text" else document.kind
    ruler = Ruler(document.text, without_limits(tokenizer), max_tokens - overlap)
    lines = line_starts(document.text) if document.is_source else []
    outline = _outline(document.headings)
    chunks: list[Chunk] = []
    for page_start, page_end in pairwise(sorted({0, *document.pages, len(document.text)})):
        spans = _split_page(document, ruler, chunker, page_start, page_end, max(max_tokens, table_tokens) - overlap)
        starts = _starts_with_overlap(document, ruler, spans, overlap, max_tokens)
        for (core, end), start in zip(spans, starts, strict=True):
            header = _header_above(document, ruler, start)
            fits = ruler.tokens(header) + ruler.count(start, end) <= max_tokens  # always with a table's own splitting
            confidences = [one for first, last, one in document.ocr if first < end and start < last]
            chunks.append(
                Chunk(
                    position=len(chunks),
                    start=start,
                    end=end,
                    text=document.text[start:end],
                    headings=_titles_above(document, outline, core, end),
                    page=(page := bisect_right(document.pages, core) or None),
                    line=bisect_right(lines, start) or None,
                    end_line=bisect_right(lines, end - 1) or None,
                    table_header=header if fits else "",
                    ocr=min(confidences, default=None),  # of what OCR has read of it
                    page_label=document.labels[page - 1] if page and document.labels else "",
                )
            )
    return tuple(chunks)


def _split_page(
    document: Document, ruler: Ruler, chunker: Chunker, start: int, end: int, table_tokens: int
) -> list[Span]:
    """Split one page, or a document without pages, into spans within the limit, and tables within theirs."""
    if chunker == "fixed":
        return list(_cut_to_limit(ruler, start, end))
    if chunker == "code":
        spans = _split_code(ruler, find_boundaries(document.text, document.language), start, end)
    else:
        spans = _split_text_and_tables(document, ruler, chunker, start, end)
    fitting = [piece for span in spans for piece in _cut_to_limit(ruler, *span)]
    if document.kind != "code":
        headings = document.headings
        fitting = _keep_headings_with_text(headings, ruler, _cut_at_headings(headings, ruler, fitting))
        above = partial(_trailing_headings, headings, document.text)
        fitting = list(
            keep_whole(ruler, fitting, whole_blocks(document.tables, ruler, table_tokens, above, start, end))
        )
    return _join_tiny(document, ruler, fitting)


def _split_text_and_tables(document: Document, ruler: Ruler, chunker: Chunker, start: int, end: int) -> Iterator[Span]:
    for (first, last), table in pieces_of(document.tables, ruler, start, end):
        if table is None:
            yield from _split_by_library(ruler, chunker, first, last)
        else:
            yield from split_table(table, ruler, first, last)


def _cut_to_limit(ruler: Ruler, start: int, end: int) -> Iterator[Span]:
    """Cut a span into the largest pieces within the limit, between words if possible."""
    start, end = ruler.trim(start, end)
    while start < end:
        cut = end if ruler.fits(start, end) else ruler.first_cut(start, end)
        yield ruler.trim(start, cut)
        start, end = ruler.trim(cut, end)


def _split_by_library(ruler: Ruler, chunker: Chunker, start: int, end: int) -> Iterator[Span]:
    """Cut a span at the highest suitable level: headings, blocks, paragraphs, sentences or words."""
    splitter = _library_splitter(chunker == "markdown", ruler.tokenizer, ruler.limit)
    for block_start, block_end in _blocks(ruler, start, end):
        chunks = splitter.chunk_indices(ruler.text[block_start:block_end])
        yield from pairwise([block_start, *(block_start + offset for offset, _ in chunks[1:]), block_end])


def _blocks(ruler: Ruler, start: int, end: int) -> Iterator[Span]:
    size = max(_BLOCK_CHARACTERS, 2 * CHARACTERS_PER_TOKEN * ruler.limit)
    while end - start > size:
        cuts = (ruler.text.rfind(separator, start + size // 2, start + size) for separator in _BLOCK_SEPARATORS)
        cut = next((cut for cut in cuts if cut >= 0), start + size)
        yield start, cut
        start = cut
    yield start, end


def _split_code(ruler: Ruler, boundaries: Sequence[tuple[int, int]], start: int, end: int) -> Iterator[Span]:
    """Cut code at the outermost depth, group neighbouring units that fit together, and cut larger units further."""
    if ruler.fits(*ruler.trim(start, end)):
        yield start, end
        return
    inside = boundaries[bisect_left(boundaries, (start + 1, 0)) : bisect_left(boundaries, (end, 0))]
    if not inside:
        yield from _split_by_library(ruler, "recursive", start, end)
        return
    outermost = min(depth for _, depth in inside)
    cuts = dict.fromkeys([start, *(offset for offset, depth in inside if depth == outermost), end])
    group, tokens = start, 0
    for unit, unit_end in pairwise(cuts):
        unit_tokens = ruler.size(unit, unit_end)
        if tokens and tokens + unit_tokens > ruler.limit:
            yield group, unit
            group, tokens = unit, 0
        tokens += unit_tokens
        if tokens > ruler.limit:
            yield from _split_code(ruler, inside, unit, unit_end)
            group, tokens = unit_end, 0
    yield group, end


def _cut_at_headings(headings: Sequence[Heading], ruler: Ruler, spans: Iterable[Span]) -> Iterator[Span]:
    """Cut a span that starts within one section and continues into the next."""
    for start, end in spans:
        index = bisect_right(headings, start, key=_START)
        inside = index < len(headings) and headings[index].start < end
        if index and inside and not _begins_with_heading(headings, ruler.text, start):
            yield ruler.trim(start, headings[index].start)
            yield ruler.trim(headings[index].start, end)
        else:
            yield start, end


def _begins_with_heading(headings: Sequence[Heading], text: str, start: int) -> bool:
    """Return whether a heading, indented by at most three spaces, starts at an offset."""
    index = bisect_right(headings, start, key=_START)
    return (
        index > 0
        and start - headings[index - 1].start <= len("   ")
        and not text[headings[index - 1].start : start].strip()
    )


def _keep_headings_with_text(headings: Sequence[Heading], ruler: Ruler, spans: Iterable[Span]) -> list[Span]:
    """Move headings from the end of a chunk to the start of the next one, which is shortened if necessary."""
    kept: list[Span] = []
    waiting = deque(spans)
    while waiting:
        start, end = waiting.popleft()
        heading = _trailing_headings(headings, ruler.text, start, end) if waiting else None
        if heading is None:
            kept.append((start, end))
            continue
        next_start, next_end = waiting.popleft()
        cut = next_end
        if not ruler.fits(heading, next_end):
            cuts = (ruler.first_cut(heading, next_end, sentence_after=after) for after in (next_start, None))
            enough = (cut for cut in cuts if not _is_headings_alone(headings, ruler, heading, max(cut, next_start)))
            cut = next(enough, next_start)
            if cut <= next_start:  # the heading leaves no room for text
                kept.append((start, end))
                waiting.appendleft((next_start, next_end))
                continue
            waiting.appendleft(ruler.trim(cut, next_end))
        waiting.appendleft(ruler.trim(heading, cut))
        if start < heading:
            kept.append(ruler.trim(start, heading))
    return kept


def _trailing_headings(headings: Sequence[Heading], text: str, start: int, end: int) -> int | None:
    """Return the start of the headings at the very end of a span, or None."""
    found = None
    for index in range(bisect_left(headings, end, key=_START), 0, -1):
        heading_start = max(start, headings[index - 1].start)
        indented_more_than_a_heading = heading_start - headings[index - 1].start > len("   ")
        if indented_more_than_a_heading or not _HEADING_ALONE.fullmatch(text[heading_start:end].strip()):
            break
        found = end = heading_start
    return found


def _is_headings_alone(headings: Sequence[Heading], ruler: Ruler, start: int, end: int) -> bool:
    return _trailing_headings(headings, ruler.text, *ruler.trim(start, end)) == start


def _join_tiny(document: Document, ruler: Ruler, spans: Iterable[Span]) -> list[Span]:
    """Join each tiny span with the previous one, else with the next one, if both fit into one chunk."""
    tiny = ruler.limit * _TINY
    joined: list[Span] = []
    for start, end in spans:
        small = joined and min(ruler.count(*joined[-1]), ruler.count(start, end)) < tiny
        if small and _fits(document, ruler, joined[-1][0], end):
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined


def _fits(document: Document, ruler: Ruler, start: int, end: int) -> bool:
    """Return whether a span fits into a chunk together with the header that it repeats."""
    header = ruler.tokens(_header_above(document, ruler, start))
    return ruler.fits(start, end) and ruler.count(start, end) + header <= ruler.limit


def _header_above(document: Document, ruler: Ruler, start: int) -> str:
    table = table_at(document.tables, start)
    return table_header(table, ruler, start) if table else ""


def _starts_with_overlap(
    document: Document, ruler: Ruler, spans: Sequence[Span], overlap: int, max_tokens: int
) -> Iterator[int]:
    """Move each chunk's start back into the previous chunk, to the start of a sentence or else of a word."""
    for (before, before_end), (start, end) in pairwise([(0, 0), *spans]):
        candidates: list[int] = []
        if overlap and before_end and not _begins_with_heading(document.headings, ruler.text, start):
            first = max(before + 1, before_end - overlap * CHARACTERS_PER_TOKEN)
            offsets = ruler.tokenizer.encode(ruler.text[first:before_end], add_special_tokens=False).offsets
            if len(offsets) > overlap:
                first += offsets[-overlap][0]
            # A part of a text can have more tokens than it had within the whole, so try some later starts too.
            for boundary in (SENTENCE_START, WORD_START):
                found = boundary.finditer(ruler.text, first - 1, before_end)
                candidates += [match.end() for match in islice(found, 8)]
        yield next(
            (
                candidate
                for candidate in candidates
                if ruler.count(candidate, before_end) <= overlap
                and ruler.count(candidate, end) + ruler.tokens(_header_above(document, ruler, candidate)) <= max_tokens
            ),
            start,
        )


def _outline(headings: Sequence[Heading]) -> list[tuple[Heading, ...]]:
    """Give each heading the path of headings that leads to it, itself included."""
    paths: list[tuple[Heading, ...]] = []
    path: tuple[Heading, ...] = ()
    for heading in headings:
        path = (*(above for above in path if above.level < heading.level), heading)
        paths.append(path)
    return paths


def _titles_above(document: Document, outline: Sequence[tuple[Heading, ...]], start: int, end: int) -> tuple[str, ...]:
    """Return the titles of the headings above a chunk, outermost first.

    None is an item that the chunk contains together with the next one.
    """
    index = bisect_right(document.headings, start, key=_START)
    path = outline[index - 1] if index else ()
    line = document.text.rfind("\n", 0, start) + 1
    path = tuple(
        above
        for above in path
        if above.end is None or (start < above.end and not (line <= above.start and above.end < end))
    )
    innermost = [heading.title for heading in reversed(path)][:_PATH_HEADINGS]
    kept = sum(length <= _PATH_CHARACTERS for length in accumulate(map(len, innermost)))
    return tuple(innermost[:kept][::-1])


@lru_cache(maxsize=8)
def _library_splitter(markdown: bool, tokenizer: "Tokenizer", limit: int) -> "MarkdownSplitter | TextSplitter":
    from semantic_text_splitter import MarkdownSplitter, TextSplitter

    return (MarkdownSplitter if markdown else TextSplitter).from_huggingface_tokenizer(tokenizer, limit)
