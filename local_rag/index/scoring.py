"""BM25 in two parts, one stored per chunk and one computed per question, so scores do not depend on the segments.

For each chunk the index stores the frequencies of its tokens and its length, and the same for its surroundings: a few
neighbouring chunks of the same document taken as one text. These rows depend on their document alone. Inverse document
frequencies and average lengths depend on all chunks and are applied during search. The score is an inner product over
the tokens of the question: `saturation` in the chunk times the weight in the question, for the tokens of the chunk
itself and for those of its surroundings.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

import numpy as np

_Number = TypeVar("_Number", float, np.ndarray)


@dataclass(frozen=True, slots=True)
class KeywordTuning:
    """The parameters of BM25, chosen by scripts/benchmarks/retrieval.py; see docs/results.md.

    The surroundings of a text are `block_texts` neighbours in its document; their score has the weight `around`.
    """

    k1: float = 1.2
    b: float = 0.75
    block_texts: int = 8
    around: float = 0.75


KEYWORDS = KeywordTuning()


@dataclass(frozen=True, slots=True)
class TextCounts:
    """The number of texts and of all their tokens; surroundings count as texts too, each once."""

    texts: int = 0
    tokens: int = 0

    @property
    def average(self) -> float:
        """Return the average length of a text, 1 if there are no tokens."""
        return self.tokens / self.texts if self.tokens else 1.0

    def __add__(self, other: "TextCounts") -> "TextCounts":
        """Add two counts."""
        return TextCounts(self.texts + other.texts, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class Statistics:
    """What scores depend on beside the chunk itself: the counts of all chunks and of all surroundings."""

    own: TextCounts = TextCounts()
    around: TextCounts = TextCounts()

    def __add__(self, other: "Statistics") -> "Statistics":
        """Add the statistics of two sets of chunks."""
        return Statistics(self.own + other.own, self.around + other.around)


def even_blocks(texts: int, block_texts: int) -> list[int]:
    """Cut the texts of a document into blocks of about equal length; return the block of each, counted from 0."""
    count = -(-texts // block_texts)
    return [position * count // texts for position in range(texts)]


def damping(length: _Number, average: float, tuning: KeywordTuning) -> _Number:
    """Return the length-dependent term in the denominator of BM25 for a text of this length."""
    against: _Number = tuning.k1 * ((1 - tuning.b) + tuning.b * length / average)
    return against


def saturation(frequency: _Number, damping: _Number) -> _Number:
    """Return what a token of this frequency adds to the score of a text, before its weight."""
    part: _Number = frequency / (damping + frequency)
    return part


def inverse_document_frequency(texts: int, holding: int) -> float:
    """Return the inverse document frequency, as in Lucene, of a token that `holding` of `texts` texts contain."""
    return math.log(1 + (texts - holding + 0.5) / (holding + 0.5))


def term_weights(terms: Sequence[str], weights: Sequence[float] | None = None) -> dict[str, float]:
    """Return the weight of each different term: the sum of the weights of its occurrences, 1 each without `weights`."""
    summed: dict[str, float] = {}
    for term, weight in zip(terms, weights or [1.0] * len(terms), strict=True):
        summed[term] = summed.get(term, 0.0) + weight
    return summed


def token_number(token: str, bits: int = 64) -> int:
    """Return a number for a token, the same on every machine; with 64 bits, collisions in a library are negligible."""
    return int.from_bytes(blake2b(token.encode(errors="surrogatepass"), digest_size=8).digest()) >> (64 - bits)
