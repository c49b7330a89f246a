"""BM25 taken apart, so that a score does not depend on how an index is cut: what a chunk keeps, what a question brings.

A chunk keeps how often each token stands in it and in its surroundings, and how long both are. All that depends on the
other chunks, which are inverse document frequencies and average lengths, is applied when a question is asked. The score
is one inner product: over the tokens of the question, `saturation` of the chunk times `weight` of the question, for the
chunk's own tokens and for those of its surroundings, which are some neighbouring chunks of the same document taken as
one. All of a document's rows depend on that document alone.
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
    """How texts are scored: chosen by scripts/benchmarks/retrieval.py, see docs/results.md.

    `block_texts` neighbours of a document make up a text's surroundings, whose score weighs `around` when searching.
    """

    k1: float = 1.2
    b: float = 0.75
    block_texts: int = 8
    around: float = 0.75


KEYWORDS = KeywordTuning()


@dataclass(frozen=True, slots=True)
class TextCounts:
    """How many texts there are, and how many tokens in all; the surroundings of chunks are texts too, each once."""

    texts: int = 0
    tokens: int = 0

    @property
    def average(self) -> float:
        """Return the average length, 1 where there is nothing to divide."""
        return self.tokens / self.texts if self.tokens else 1.0

    def __add__(self, other: "TextCounts") -> "TextCounts":
        """Take two collections as one."""
        return TextCounts(self.texts + other.texts, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class Statistics:
    """What scores need to know of all chunks: of their own texts, and of their surroundings."""

    own: TextCounts = TextCounts()
    around: TextCounts = TextCounts()

    def __add__(self, other: "Statistics") -> "Statistics":
        """Take the chunks of two indexes as those of one."""
        return Statistics(self.own + other.own, self.around + other.around)


def even_blocks(texts: int, block_texts: int) -> list[int]:
    """Cut the texts of a document into blocks of about equal length; return the block of each, counted from 0."""
    count = -(-texts // block_texts)
    return [position * count // texts for position in range(texts)]


def damping(length: _Number, average: float, tuning: KeywordTuning) -> _Number:
    """Return what stands against the frequency of a token in a text of a length."""
    against: _Number = tuning.k1 * ((1 - tuning.b) + tuning.b * length / average)
    return against


def saturation(frequency: _Number, damping: _Number) -> _Number:
    """Return what a token that stands so often in a text adds to its score, before it is weighted."""
    part: _Number = frequency / (damping + frequency)
    return part


def inverse_document_frequency(texts: int, holding: int) -> float:
    """Return the weight of a token that so many of all texts hold (that of Lucene)."""
    return math.log(1 + (texts - holding + 0.5) / (holding + 0.5))


def term_weights(terms: Sequence[str], weights: Sequence[float] | None = None) -> dict[str, float]:
    """Return each term of a question once: a term weighs as often as it is named, times its weight where it has one."""
    summed: dict[str, float] = {}
    for term, weight in zip(terms, weights or [1.0] * len(terms), strict=True):
        summed[term] = summed.get(term, 0.0) + weight
    return summed


def token_number(token: str, bits: int = 64) -> int:
    """Return a number for a token, the same on every machine; of 64 bits no two tokens of a library share one."""
    return int.from_bytes(blake2b(token.encode(errors="surrogatepass"), digest_size=8).digest()) >> (64 - bits)
