"""Take from passages the lines that most likely carry the answer: reading is most of the time that an answer takes."""

import re
from collections.abc import Iterator, Sequence

from local_rag.models.reranker import Reranker
from local_rag.records import Passage, heading_path
from local_rag.verification.sentences import split_sentences

LINES, LINES_OF_SEVERAL = 5, 10
_LEFT_OUT = "\n\u2026\n"
_BEGINS = re.compile(r"[^\S\n]*(?:[-*\u2022>#|]|\d{1,3}[.)])")  # a line that continues no other one
_ALONE = re.compile(r"[^\S\n]*[#|]")  # a line that no other one continues
_ROW = "|"

Span = tuple[int, int]


def excerpts(
    question: str, passages: Sequence[Passage], *, reranker: Reranker, lines: int, of_each: bool = False
) -> list[tuple[Passage, str]]:
    """Return passages with their most likely sentences and lines and the neighbours of these; others are left out.

    `lines` are taken of all together, those that the cross-encoder scores highest; with `of_each` first the best of
    each passage. A row of a table brings the head of its table. A passage that stands for a whole document stays whole.
    """
    found = [[] if passage.kind == "document" else split_lines(passage.text) for passage in passages]
    places = [(number, place) for number, spans in enumerate(found) for place in range(len(spans))]
    texts = [_with_headings(passages[number], found[number][place]) for number, place in places]
    scores = reranker.score(question, texts) if texts else []
    best = [place for _, place in sorted(zip(scores, places, strict=True), key=lambda one: -one[0])]
    if of_each:
        firsts = dict(reversed(best))
        best.sort(key=lambda one: firsts[one[0]] != one[1])
    best = best[:lines]
    read = list[tuple[Passage, str]]()
    for number, (passage, spans) in enumerate(zip(passages, found, strict=True)):
        chosen = [place for other, place in best if other == number]
        if chosen:
            read.append((passage, _excerpt(passage.text, spans, chosen)))
        elif passage.kind == "document":
            read.append((passage, passage.text))
    return read


def split_lines(text: str) -> list[Span]:
    """Return where the sentences, rows of tables and items of lists of a text begin and end."""
    spans = list[Span]()
    for begun, end in _blocks(text):
        block = text[begun:end]
        # Lines that only the width of a page divides are one; a space is as long as a line break.
        whole = block.lstrip().startswith(_ROW)
        place = begun
        for part in [block] if whole else split_sentences(block.replace("\n", " ")):
            first, length = place + len(part) - len(part.lstrip()), len(part.strip())
            if length:
                spans.append((first, first + length))
            place += len(part)
    return spans


def _blocks(text: str) -> Iterator[Span]:
    """Yield where paragraphs, items, headings and rows begin and end."""
    begun = place = 0
    apart = False
    for line in text.splitlines(keepends=True):
        if (apart or not line.strip() or _BEGINS.match(line)) and place > begun:
            yield begun, place
            begun = place
        apart = bool(_ALONE.match(line))
        place += len(line)
    yield begun, place


def _with_headings(passage: Passage, span: Span) -> str:
    headings = heading_path(passage.title, tuple(dict.fromkeys(passage.headings)))
    return f"{headings}\n{' '.join(passage.text[slice(*span)].split())}"


def _excerpt(text: str, spans: Sequence[Span], chosen: Sequence[int]) -> str:
    kept = {near for place in chosen for near in (place - 1, place, place + 1) if 0 <= near < len(spans)}
    kept |= {_head(text, spans, place) for place in chosen}
    runs = list[Span]()
    last = -2
    for place in sorted(kept):
        begun, end = spans[place]
        if place == last + 1:
            runs[-1] = runs[-1][0], end
        else:
            runs.append((begun, end))
        last = place
    return _LEFT_OUT.join(text[slice(*run)] for run in runs)


def _head(text: str, spans: Sequence[Span], place: int) -> int:
    """Return the place of the first row of the table that a row stands in, of anything else its own."""
    while place and all(text[begun] == _ROW for begun, _ in spans[place - 1 : place + 1]):
        if "\n\n" in text[spans[place - 1][1] : spans[place][0]]:
            break
        place -= 1
    return place
