"""BM25 as the inner product of sparse vectors, for a search engine that knows only inner products.

A chunk's vector holds the saturated frequencies of its tokens, which depend on the average length of all texts. It is
written under the averages that its collection began with, and stays. While the averages differ from those, the engine's
scores only choose candidates: frequencies and lengths of these give the scores of `index/scoring.py` under the averages
of today, and `drift` says by how much any other chunk can have been underestimated.

How many chunks and surroundings hold each token is counted in bounded memory, and kept in the engine as a sum: a table
of all counts, in buckets of neighbouring numbers, and a difference for each publish since. A publish writes its
difference and adds a few earlier ones to some buckets in turn, so neither is ever written whole. A bucket says up to
which generation it holds the differences; a reader adds those of its own generation and before.
"""

import struct
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

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


_TOGETHER = 1 << 18  # tokens counted in memory
_PARTS = 64
PER_BUCKET = 256
_ROW = struct.Struct("<Qii")
_FIELDS = np.dtype([("number", "<u8"), ("own", "<i4"), ("around", "<i4")])


@dataclass(slots=True)
class Tally:
    """What rows add to the counts of an index, or take from them; files hold the tokens that would fill the memory."""

    statistics: Statistics = field(default_factory=Statistics)
    rows: int = 0
    _counts: dict[int, list[int]] = field(default_factory=dict)
    _files: list[IO[bytes]] = field(default_factory=list)
    together: int = _TOGETHER

    def add(self, lengths: Sequence[int], tokens: Iterable[int], change: int = 1) -> None:
        """Add a row with the entries of its sparse vector, or take it away with -1.

        `lengths` are those of the row and of its surroundings; the third number is 1 if the row stands for these.
        """
        own, around, first = lengths
        self.rows += change
        self.statistics += Statistics(
            TextCounts(change, change * own), TextCounts(change * first, change * first * around)
        )
        for number in tokens:
            column = number >> NUMBER_BITS
            if first or not column:
                self._counts.setdefault(number & ((1 << NUMBER_BITS) - 1), [0, 0])[column] += change
        if len(self._counts) > self.together:
            self._spill()

    def _spill(self) -> None:
        self._files = self._files or [tempfile.TemporaryFile() for _ in range(_PARTS)]  # noqa: SIM115  see close
        for number, counts in self._counts.items():
            self._files[number * _PARTS >> NUMBER_BITS].write(_ROW.pack(number, *counts))
        self._counts.clear()

    def sums(self) -> Iterator[np.ndarray]:
        """Yield arrays of number, own and around, ascending by number, without those that are zero."""
        if not self._files:
            rows = [(number, *counts) for number, counts in self._counts.items()]
            yield summed(np.array(rows, dtype=_FIELDS))
            return
        self._spill()
        for file in self._files:
            file.seek(0)
            yield summed(np.frombuffer(file.read(), dtype=_FIELDS))

    def close(self) -> None:
        """Delete the files."""
        for file in self._files:
            file.close()

    def different(self) -> int:
        """Return how many tokens have a count."""
        return sum(map(len, self.sums()))


def summed(rows: np.ndarray) -> np.ndarray:
    """Return rows ascending by number, those of one number added up, without those that are zero."""
    numbers, first = np.unique(rows["number"], return_inverse=True)
    found = np.zeros(len(numbers), dtype=_FIELDS)
    found["number"] = numbers
    for column in ("own", "around"):
        np.add.at(found[column], first, rows[column])
    left: np.ndarray = found[(found["own"] != 0) | (found["around"] != 0)]
    return left


def bucket_of(number: int, buckets: int) -> int:
    """Return the bucket of a token."""
    return number * buckets >> NUMBER_BITS


def payload_of_counts(rows: np.ndarray) -> dict[str, list[int]]:
    """Return counts as they stand in a point."""
    return {name: rows[name].tolist() for name in ("number", "own", "around")}


def counts_in(payload: Mapping[str, Any]) -> np.ndarray:
    """Return the counts of a point."""
    rows = np.zeros(len(payload["number"]), dtype=_FIELDS)
    for name in ("number", "own", "around"):
        rows[name] = payload[name]
    return rows


def in_buckets(sums: Iterable[np.ndarray], buckets: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield each bucket with its counts, from counts that ascend; a bucket may hold none."""
    waiting, bucket = np.zeros(0, dtype=_FIELDS), 0
    for rows in sums:
        waiting = np.concatenate([waiting, rows])
        places = (waiting["number"] * np.uint64(buckets)) >> np.uint64(NUMBER_BITS)
        complete = int(places[-1]) if len(places) else bucket
        for one in range(bucket, complete):
            yield one, waiting[places == one]
        waiting, bucket = waiting[places >= complete], complete
    for one in range(bucket, buckets):
        yield one, waiting if one == bucket else waiting[:0]
