"""Choose the lines of passages that most likely contain the answer, because reading takes most of an answer's time."""

import re
from collections.abc import Iterator, Sequence

from local_rag.models.reranker import Reranker
from local_rag.records import Passage, heading_path
from local_rag.verification.sentences import split_sentences

LINES, LINES_OF_SEVERAL = 5, 10
_LEFT_OUT = "\n\u2026\n"
_BEGINS = re.compile(r"[^\S\n]*(?:[-*\u2022>#|]|\d{1,3}[.)])")  # a line that does not continue the one before it
_ALONE = re.compile(r"[^\S\n]*[#|]")  # a line that the one after it does not continue
_ROW = "|"

TextSpan = tuple[int, int]  # start and end in a text


def excerpts(
    question: str, passages: Sequence[Passage], *, reranker: Reranker, lines: int, of_each: bool = False
) -> list[tuple[Passage, str]]:
    """Return passages with their most likely sentences and lines and the neighbours of these, without the others.

    The `lines` with the highest cross-encoder scores are chosen from all passages, with `of_each` at first the best one
    of each passage. A table row includes the header of its table. A passage that represents a whole document stays
    whole.
    """
    found = [[] if passage.kind == "document" else split_lines(passage.text) for passage in passages]
    positions = [(number, index) for number, spans in enumerate(found) for index in range(len(spans))]
    texts = [_with_headings(passages[number], found[number][index]) for number, index in positions]
    scores = reranker.score(question, texts) if texts else []
    best = [position for _, position in sorted(zip(scores, positions, strict=True), key=lambda one: -one[0])]
    if of_each:
        firsts = dict(reversed(best))
        best.sort(key=lambda one: firsts[one[0]] != one[1])
    best = best[:lines]
    read = list[tuple[Passage, str]]()
    for number, (passage, spans) in enumerate(zip(passages, found, strict=True)):
        chosen = [index for other, index in best if other == number]
        if chosen:
            read.append((passage, _excerpt(passage.text, spans, chosen)))
        elif passage.kind == "document":
            read.append((passage, passage.text))
    return read


def split_lines(text: str) -> list[TextSpan]:
    """Return the spans of the sentences, table rows and list items of a text."""
    spans = list[TextSpan]()
    for start, end in _blocks(text):
        block = text[start:end]
        # Lines that are only wrapped belong together; a space is as long as a line break.
        whole = block.lstrip().startswith(_ROW)
        position = start
        for part in [block] if whole else split_sentences(block.replace("\n", " ")):
            first, length = position + len(part) - len(part.lstrip()), len(part.strip())
            if length:
                spans.append((first, first + length))
            position += len(part)
    return spans


def _blocks(text: str) -> Iterator[TextSpan]:
    """Yield the spans of paragraphs, list items, headings and table rows."""
    start = position = 0
    alone = False
    for line in text.splitlines(keepends=True):
        if (alone or not line.strip() or _BEGINS.match(line)) and position > start:
            yield start, position
            start = position
        alone = bool(_ALONE.match(line))
        position += len(line)
    yield start, position


def _with_headings(passage: Passage, span: TextSpan) -> str:
    headings = heading_path(passage.title, tuple(dict.fromkeys(passage.headings)))
    return f"{headings}\n{' '.join(passage.text[slice(*span)].split())}"


def _excerpt(text: str, spans: Sequence[TextSpan], chosen: Sequence[int]) -> str:
    kept = {near for index in chosen for near in (index - 1, index, index + 1) if 0 <= near < len(spans)}
    kept |= {_header_row(text, spans, index) for index in chosen}
    runs = list[TextSpan]()
    last = -2
    for index in sorted(kept):
        start, end = spans[index]
        if index == last + 1:
            runs[-1] = runs[-1][0], end
        else:
            runs.append((start, end))
        last = index
    return _LEFT_OUT.join(text[slice(*run)] for run in runs)


def _header_row(text: str, spans: Sequence[TextSpan], index: int) -> int:
    """Return the index of the first row of the table that contains a row; for other lines return `index`."""
    while index and all(text[start] == _ROW for start, _ in spans[index - 1 : index + 1]):
        if "\n\n" in text[spans[index - 1][1] : spans[index][0]]:
            break
        index -= 1
    return index
