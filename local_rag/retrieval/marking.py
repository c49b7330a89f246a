"""Mark in a passage the sentence that fits best and the words of the question; no model takes part."""

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from local_rag.index.keyword_index import keyword_tokens

_WORD = re.compile(r"\w+(?:['\u2019-]\w+)*")
_SENTENCE = re.compile(r"[^\n.!?]+(?:[.!?](?!\s|\Z)[^\n.!?]*)*[.!?]*")
_MOST_SENTENCES = 2000
_LEAST_SHARED = 2  # words that the best sentence has in common with the question


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a passage, and whether it belongs to the `best` sentence or is a word (`term`) of the question."""

    text: str
    best: bool = False
    term: bool = False


def mark(text: str, question: str, quoted: Sequence[tuple[int, int]] = ()) -> tuple[Piece, ...]:
    """Cut a passage into pieces; the best are the `quoted` spans, or else the sentence that fits the question."""
    asked = frozenset(keyword_tokens(question))
    best = list(quoted) or [best_sentence(text, asked)]
    terms = [word.span() for word in _WORD.finditer(text) if asked & _tokens(word[0])]
    edges = sorted({0, len(text), *(edge for span in (*best, *terms) for edge in span)})
    inside = {left for left, _ in terms}
    pieces = []
    for left, right in itertools.pairwise(edges):
        is_best = any(start <= left < end for start, end in best)
        pieces.append(Piece(text[left:right], best=is_best, term=left in inside))
    return tuple(pieces)


def best_sentence(text: str, wanted: frozenset[str]) -> tuple[int, int]:
    """Return the span of the sentence that shares the most of the wanted tokens; (0, 0) if none shares enough."""
    best, most = (0, 0), 0
    for start, end in sentences(text):
        shared = len(wanted & frozenset(keyword_tokens(text[start:end])))
        if shared > most:
            best, most = (start, end), shared
    return best if most >= min(_LEAST_SHARED, len(wanted)) else (0, 0)


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the sentences and lines of a text, as many as are examined."""
    for number, found in enumerate(_SENTENCE.finditer(text)):
        if number == _MOST_SENTENCES:
            return
        kept = found[0].strip()
        if kept:
            start = found.start() + found[0].index(kept)
            yield start, start + len(kept)


@functools.lru_cache(maxsize=20_000)
def _tokens(word: str) -> frozenset[str]:
    return frozenset(keyword_tokens(word))
