"""BM25 as the inner product of sparse vectors, for a search engine that knows only inner products.

A chunk's vector holds what bm25s makes of its tokens, as in the index of a folder (index/postings.py). That depends on
its document alone. The vector of a question holds the weights of tokens.

How many chunks and surroundings hold each token is counted in bounded memory, and kept in the engine as a sum: a table
of all counts, in buckets of neighbouring numbers, and a difference for each publish since. A publish writes its
difference and adds a few earlier ones to some buckets in turn, so neither is ever written whole. A bucket says up to
which generation it holds the differences; a reader adds those of its own generation and before.
"""

import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from local_rag.index.postings import Postings
from local_rag.index.scoring import KEYWORDS, KeywordTuning, inverse_document_frequency, term_weights, token_number

NUMBER_BITS = 31  # of the number of a token, of the engine's 32; the next bit marks tokens of the surroundings


def number_of(token: str) -> int:
    """Return the number of a token. At a million different tokens some 230 pairs share one, and count as one token."""
    return token_number(token, NUMBER_BITS)


@dataclass(frozen=True, slots=True)
class ChunkVector:
    """A chunk as a sparse vector; the first chunk of a block stands for the surroundings of all of its chunks."""

    values: Mapping[int, float]
    is_first: bool


def chunk_vectors(tokens: Sequence[Sequence[str]], tuning: KeywordTuning = KEYWORDS) -> list[ChunkVector]:
    """Return the vectors of the chunks of one document, from the `keyword_tokens` of all of them in reading order."""
    postings = Postings.build(tokens, [0] * len(tokens), tuning)
    numbers = (postings.words >> np.uint64(64 - NUMBER_BITS)).tolist()
    sides: list[list[dict[int, float]]] = []
    for columns, texts, offset in (
        (postings.own, len(tokens), 0),
        (postings.around, postings.blocks, 1 << NUMBER_BITS),
    ):
        sides.append([{} for _ in range(texts)])
        for position, number in enumerate(numbers):
            for text, part in zip(*(one.tolist() for one in columns.of(position)), strict=True):
                sides[-1][text][number + offset] = sides[-1][text].get(number + offset, 0.0) + part
    block_of = postings.block_of.tolist()
    pairs = zip(sides[0], block_of, [-1, *block_of], strict=False)
    return [ChunkVector(own | sides[1][block], block != before) for own, block, before in pairs]


def question_vector(
    terms: Sequence[str],
    weights: Sequence[float] | None,
    texts: tuple[int, int],
    holding: Callable[[str], tuple[int, int]],
    tuning: KeywordTuning = KEYWORDS,
) -> dict[int, float]:
    """Return a question as the sparse vector whose inner product with that of a chunk is the score.

    `texts` says how many chunks and surroundings there are, `holding` how many of them hold a token.
    """
    vector: dict[int, float] = {}
    for term, weight in term_weights(terms, weights).items():
        for side, (holders, total) in enumerate(zip(holding(term), texts, strict=True)):
            if holders:
                number = number_of(term) + (side << NUMBER_BITS)
                part = weight * (tuning.around if side else 1.0) * inverse_document_frequency(total, holders)
                vector[number] = vector.get(number, 0.0) + part
    return vector


_TOGETHER = 1 << 18  # tokens counted in memory
_PARTS = 64
PER_BUCKET = 256
_ROW = struct.Struct("<Qii")
_FIELDS = np.dtype([("number", "<u8"), ("own", "<i4"), ("around", "<i4")])


@dataclass(slots=True)
class Tally:
    """What rows add to the counts of an index, or take from them; files hold the tokens that would fill the memory."""

    rows: int = 0
    blocks: int = 0
    _counts: dict[int, list[int]] = field(default_factory=dict)
    _files: list[IO[bytes]] = field(default_factory=list)
    together: int = _TOGETHER

    @property
    def texts(self) -> tuple[int, int]:
        """Return by how many the chunks and the surroundings become more."""
        return self.rows, self.blocks

    def add(self, is_first: bool, tokens: Iterable[int], change: int = 1) -> None:
        """Add a row with the entries of its sparse vector, or take it away with -1."""
        self.rows += change
        self.blocks += change * is_first
        for number in tokens:
            column = number >> NUMBER_BITS
            if is_first or not column:
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
