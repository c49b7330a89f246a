"""BM25 as the inner product of sparse vectors, for a search engine that knows only inner products.

The scores are those of `index/scoring.py`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from local_rag.index.scoring import (
    KEYWORDS,
    KeywordTuning,
    Statistics,
    TextCounts,
    damping,
    even_blocks,
    inverse_document_frequency,
    saturation,
    term_weights,
    token_number,
)

_NUMBER_BITS = 30  # of the number of a token; the next bit marks tokens of the surroundings


@dataclass(frozen=True, slots=True)
class PostingRow:
    """What a chunk keeps: how often each token stands in it and in its surroundings, and how many tokens both have."""

    own: Mapping[str, int]
    own_length: int
    around: Mapping[str, int]
    around_length: int


def posting_rows(tokens: Sequence[Sequence[str]], tuning: KeywordTuning = KEYWORDS) -> list[PostingRow]:
    """Return what each chunk of one document keeps, from the `keyword_tokens` of all of them in reading order."""
    own = [Counter(part) for part in tokens]
    block_of = even_blocks(len(tokens), tuning.block_texts)
    around = [Counter[str]() for _ in range(block_of[-1] + 1)] if block_of else []
    for block, counts in zip(block_of, own, strict=True):
        around[block].update(counts)
    return [
        PostingRow(counts, counts.total(), around[block], around[block].total())
        for block, counts in zip(block_of, own, strict=True)
    ]


def statistics_of(documents: Iterable[Sequence[PostingRow]], tuning: KeywordTuning = KEYWORDS) -> Statistics:
    """Add up what scores need to know of the chunks of some documents."""
    total = Statistics()
    for rows in documents:
        blocks = dict(zip(even_blocks(len(rows), tuning.block_texts), rows, strict=True))
        own = TextCounts(len(rows), sum(row.own_length for row in rows))
        total += Statistics(own, TextCounts(len(blocks), sum(row.around_length for row in blocks.values())))
    return total


def chunk_vector(row: PostingRow, statistics: Statistics, tuning: KeywordTuning = KEYWORDS) -> dict[int, float]:
    """Return a chunk as a sparse vector under given average lengths, for an engine that knows inner products only."""
    vector: dict[int, float] = {}
    for counts, length, collection, offset in (
        (row.own, row.own_length, statistics.own, 0),
        (row.around, row.around_length, statistics.around, 1 << _NUMBER_BITS),
    ):
        for token, frequency in counts.items():
            number = token_number(token, _NUMBER_BITS) + offset
            part = saturation(float(frequency), damping(float(length), collection.average, tuning))
            vector[number] = vector.get(number, 0.0) + part
    return vector


def question_vector(
    terms: Sequence[str],
    weights: Sequence[float] | None,
    statistics: Statistics,
    holding: Callable[[str], tuple[int, int]],
    tuning: KeywordTuning = KEYWORDS,
) -> dict[int, float]:
    """Return a question as the sparse vector whose inner product with `chunk_vector` is the score.

    `holding` says of a token how many chunks hold it, and how many surroundings.
    """
    vector: dict[int, float] = {}
    for term, weight in term_weights(terms, weights).items():
        own, around = holding(term)
        number = token_number(term, _NUMBER_BITS)
        for holders, collection, offset, share in (
            (own, statistics.own, 0, 1.0),
            (around, statistics.around, 1 << _NUMBER_BITS, tuning.around),
        ):
            if holders:
                part = weight * share * inverse_document_frequency(collection.texts, holders)
                vector[number + offset] = vector.get(number + offset, 0.0) + part
    return vector
