"""What the keyword index of a folder and the vectors of a search engine share: tuning, blocks, weights and numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b


@dataclass(frozen=True, slots=True)
class KeywordTuning:
    """The parameters of BM25, chosen by scripts/benchmarks/retrieval.py; see docs/results.md.

    A text of `pivot` tokens is neither short nor long. The surroundings of a text are `block_texts` neighbours in its
    document. Their score has the weight `around`, and their pivot is `around_pivot`.
    """

    k1: float = 1.2
    b: float = 0.75
    pivot: int = 80
    block_texts: int = 8
    around: float = 0.75
    around_pivot: int = 240


KEYWORDS = KeywordTuning()


def even_blocks(texts: int, block_texts: int) -> list[int]:
    """Cut the texts of a document into blocks of about equal length; return the block of each, counted from 0."""
    count = -(-texts // block_texts)
    return [position * count // texts for position in range(texts)]


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
