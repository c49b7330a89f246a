"""Check the citations of an answer as it is written."""

import re
from collections.abc import Iterator, Sequence

from local_rag.records import Passage

_CITATION = re.compile(r"\s*\[\s*\d+(?:\s*,\s*\d+)*\s*\]")
_MAY_BECOME_CITATION = re.compile(r"\s*(?:\[[\d\s,]*)?$")
_WORD = re.compile(r"\w+")


class CitationCheck:
    """Pass on an answer's text piece by piece, without the numbers that name no source.

    `cited` holds the numbers that do, `removed` those that do not, in the order in which they came.
    """

    def __init__(self, sources: int) -> None:
        self._sources = sources
        self.cited: list[int] = []
        self.removed: list[int] = []

    def __call__(self, pieces: Iterator[str]) -> Iterator[str]:
        """Yield the checked pieces; the first one begins with a word."""
        begun = False
        for text, numbers in find_citations(pieces):
            valid = [number for number in numbers if 1 <= number <= self._sources]
            self.cited += valid
            self.removed += [number for number in numbers if number not in valid]
            checked = f" [{', '.join(map(str, dict.fromkeys(valid)))}]" if valid else "" if numbers else text
            checked = checked if begun else checked.lstrip()
            if checked:
                begun = True
                yield checked


def find_citations(pieces: Iterator[str]) -> Iterator[tuple[str, list[int]]]:
    """Yield an answer's text piece by piece, each citation as a piece of its own with its numbers.

    What might yet become a citation is held back until its bracket closes.
    """
    held = ""
    for piece in pieces:
        held += piece
        while match := _CITATION.search(held):
            if match.start():
                yield held[: match.start()], []
            yield match.group(), [int(number) for number in re.findall(r"\d+", match.group())]
            held = held[match.end() :]
        end = match.start() if (match := _MAY_BECOME_CITATION.search(held)) else len(held)
        if end:
            yield held[:end], []
        held = held[end:]
    if held.strip():
        yield held.rstrip(), []


def most_similar_source(text: str, passages: Sequence[Passage]) -> int | None:
    """Return the number of the source that shares most of an uncited answer's words, the first of equals, if any."""
    words = {word.lower() for word in _WORD.findall(text)}
    shared = [len(words & {word.lower() for word in _WORD.findall(passage.text)}) for passage in passages]
    return shared.index(max(shared)) + 1 if any(shared) else None
