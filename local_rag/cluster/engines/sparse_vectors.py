"""BM25 as the inner product of sparse vectors, for a search engine that knows only inner products.

A chunk's vector holds the saturated frequencies of its tokens, which depend on the average length of all texts. It is
written under the averages that its collection began with, and stays. While the averages differ from those, the engine's
scores only choose candidates: frequencies and lengths of these give the scores of `index/scoring.py` under the averages
of today, and `drift` says by how much any other chunk can have been underestimated.
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

NUMBER_BITS = 31  # of the number of a token, of the engine's 32; the next bit marks tokens of the surroundings


def number_of(token: str) -> int:
    """Return the number of a token. At a million different tokens some 230 pairs share one, and count as one token."""
    return token_number(token, NUMBER_BITS)


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
        (row.around, row.around_length, statistics.around, 1 << NUMBER_BITS),
    ):
        for token, frequency in counts.items():
            number = number_of(token) + offset
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
        number = number_of(term)
        for holders, collection, offset, share in (
            (own, statistics.own, 0, 1.0),
            (around, statistics.around, 1 << NUMBER_BITS, tuning.around),
        ):
            if holders:
                part = weight * share * inverse_document_frequency(collection.texts, holders)
                vector[number + offset] = vector.get(number + offset, 0.0) + part
    return vector


def exact_score(
    question: Mapping[int, float],
    chunk: Mapping[int, float],
    lengths: Sequence[int],
    written: Statistics,
    now: Statistics,
) -> float:
    """Return the score under the averages of `now` of a chunk whose vector was `written` under others.

    `lengths` are those of the chunk and of its surroundings, in tokens.
    """
    score = 0.0
    for number, weight in question.items():
        part = chunk.get(number, 0.0)
        if 0 < part < 1:
            around = number >> NUMBER_BITS
            before, after = (counts.around if around else counts.own for counts in (written, now))
            against = damping(float(lengths[around]), before.average, KEYWORDS)
            frequency = float(round(part * against / (1 - part)))
            part = saturation(frequency, damping(float(lengths[around]), after.average, KEYWORDS))
        score += weight * part
    return score


def drift(written: Statistics, now: Statistics) -> float:
    """Return the largest factor by which a score can be higher under the averages of `now`; at least 1."""
    pairs = ((written.own, now.own), (written.around, now.around))
    return max(1.0, *(after.average / before.average for before, after in pairs))


def differs(written: Statistics, now: Statistics) -> bool:
    """Return whether the averages differ at all."""
    return (written.own.average, written.around.average) != (now.own.average, now.around.average)
