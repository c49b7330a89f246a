"""The postings of some chunks: the chunks that contain each token and how often; the same for surroundings."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress, groupby, pairwise
from pathlib import Path
from types import MappingProxyType

import numpy as np

from local_rag.errors import DamagedLibraryError
from local_rag.index.arrays import REMEDY, ArrayWriter, open_array, write_array, write_pieces
from local_rag.index.scoring import KEYWORDS, KeywordTuning, Statistics, TextCounts, even_blocks, token_number

_MOST_FREQUENT = np.iinfo(np.uint16).max
_PIECE = 2_000_000  # postings merged at a time


@dataclass(frozen=True, slots=True)
class Inverted:
    """Inverted texts: token `i` occurs in `texts[starts[i]:starts[i + 1]]`, with the frequencies in `counts`."""

    starts: np.ndarray
    texts: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray

    def write(self, folder: Path, name: str) -> None:
        """Write the arrays to files."""
        for part in _PARTS:
            write_array(folder / f"{name}_{part}.npy", getattr(self, part))

    @classmethod
    def open(cls, folder: Path, name: str) -> "Inverted":
        """Open written arrays, memory-mapped."""
        inverted = cls(*(open_array(folder / f"{name}_{part}.npy") for part in _PARTS))
        if len(inverted.texts) != len(inverted.counts) or int(inverted.starts[-1]) != len(inverted.texts):
            raise DamagedLibraryError(f"{folder / name}_starts.npy is damaged", REMEDY)
        return inverted

    def collection(self, alive: np.ndarray | None) -> TextCounts:
        """Count the texts that are `alive` (None: all) and their tokens."""
        lengths = self.lengths if alive is None else self.lengths[alive]
        return TextCounts(len(lengths), int(lengths.sum(dtype=np.int64)))


_PARTS = ("starts", "texts", "counts", "lengths")


@dataclass(frozen=True, slots=True)
class Postings:
    """The postings of chunks and of their surroundings; `words` are the numbers of their tokens, ascending.

    `spelled` is text in UTF-8, with a line for each token: the words that it stands for, in lower case.
    """

    words: np.ndarray
    own: Inverted
    around: Inverted
    block_of: np.ndarray
    spelled: np.ndarray

    @classmethod
    def build(
        cls,
        tokens: Sequence[Sequence[str]],
        documents: Sequence[int],
        tuning: KeywordTuning = KEYWORDS,
        spellings: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> "Postings":
        """Make the postings of chunks from their tokens; chunks of one document are consecutive."""
        numbers = {token: token_number(token) for token in {token for part in tokens for token in part}}
        words = np.unique(np.fromiter(numbers.values(), dtype=np.uint64, count=len(numbers)))
        positions = np.searchsorted(words, np.fromiter(numbers.values(), dtype=np.uint64, count=len(numbers)))
        position_of = dict(zip(numbers, positions.tolist(), strict=True))
        own = _invert([[position_of[token] for token in part] for part in tokens], len(words))
        block_of = _blocks(documents, tuning.block_texts)
        forms = [""] * len(words)
        for token, some in spellings.items():
            forms[position_of[token]] = " ".join(sorted(some))
        return cls(words, own, _surroundings(own, block_of), block_of, _as_lines(forms))

    def write(self, folder: Path) -> None:
        """Write the postings to a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        write_array(folder / "words.npy", self.words)
        write_array(folder / "blocks.npy", self.block_of)
        write_array(folder / "spelled.npy", self.spelled)
        self.own.write(folder, "own")
        self.around.write(folder, "around")

    @classmethod
    def open(cls, folder: Path) -> "Postings":
        """Open written postings, memory-mapped; raise DamagedLibraryError if they are not whole."""
        own, around = (Inverted.open(folder, name) for name in ("own", "around"))
        words, block_of = open_array(folder / "words.npy"), open_array(folder / "blocks.npy")
        if len(block_of) != len(own.lengths) or not len(words) + 1 == len(own.starts) == len(around.starts):
            raise DamagedLibraryError(f"{folder / 'words.npy'} is damaged", REMEDY)
        # An earlier version of local-rag wrote no spellings; it can be searched until it is published again.
        written = folder / "spelled.npy"
        spelled = open_array(written) if written.exists() else _as_lines([""] * len(words))
        return cls(words, own, around, block_of, spelled)

    def spellings(self) -> list[str]:
        """Return for each token, in the order of `words`, the words that it stands for, between spaces."""
        return self.spelled.tobytes().decode().split("\n")[: len(self.words)]

    def position(self, word: int) -> int | None:
        """Return the position of a token's number among `words`, None if no chunk contains it."""
        position = int(np.searchsorted(self.words, np.uint64(word)))
        return position if position < len(self.words) and int(self.words[position]) == word else None

    def alive_blocks(self, alive: np.ndarray) -> np.ndarray:
        """Return a mask of the surroundings that have chunks that are `alive`."""
        blocks = np.zeros(len(self.around.lengths), dtype=bool)
        blocks[self.block_of[alive]] = True
        return blocks

    def statistics(self, alive: np.ndarray | None) -> Statistics:
        """Return the statistics of the chunks that are `alive` (None: all)."""
        blocks = None if alive is None else self.alive_blocks(alive)
        return Statistics(self.own.collection(alive), self.around.collection(blocks))


def _as_lines(forms: Sequence[str]) -> np.ndarray:
    return np.frombuffer("\n".join(forms).encode(errors="replace"), dtype=np.uint8)


def _invert(texts: Sequence[Sequence[int]], words: int) -> Inverted:
    """Invert texts, given as positions of their tokens."""
    lengths = np.fromiter(map(len, texts), dtype=np.int32, count=len(texts))
    tokens = np.fromiter(chain.from_iterable(texts), dtype=np.int64, count=int(lengths.sum(dtype=np.int64)))
    held, counts = np.unique(tokens * len(texts) + np.repeat(np.arange(len(texts)), lengths), return_counts=True)
    starts = np.searchsorted(held, np.arange(words + 1) * len(texts))
    counts = np.minimum(counts, _MOST_FREQUENT).astype(np.uint16)
    return Inverted(starts.astype(np.int64), (held % max(1, len(texts))).astype(np.int32), counts, lengths)


def _blocks(documents: Sequence[int], block_texts: int) -> np.ndarray:
    """Return the number of the block of each text, through all documents."""
    blocks: list[int] = []
    for _, group in groupby(documents):
        first = blocks[-1] + 1 if blocks else 0
        blocks += [first + block for block in even_blocks(len(list(group)), block_texts)]
    return np.asarray(blocks, dtype=np.int32)


def _surroundings(own: Inverted, block_of: np.ndarray) -> Inverted:
    """Join the postings of the texts of each block."""
    lengths = np.zeros(int(block_of[-1]) + 1 if len(block_of) else 0, dtype=np.int32)
    np.add.at(lengths, block_of, own.lengths)
    words = len(own.starts) - 1
    if not len(own.texts):
        return Inverted(own.starts, own.texts, own.counts, lengths)
    of_word, blocks = np.repeat(np.arange(words), np.diff(own.starts)), block_of[own.texts]
    firsts = np.flatnonzero(np.r_[True, (of_word[1:] != of_word[:-1]) | (blocks[1:] != blocks[:-1])])
    counts = np.minimum(np.add.reduceat(own.counts, firsts, dtype=np.int64), _MOST_FREQUENT)
    starts = np.r_[0, np.cumsum(np.bincount(of_word[firsts], minlength=words))]
    return Inverted(starts.astype(np.int64), blocks[firsts], counts.astype(np.uint16), lengths)


def merge_postings(sources: Sequence[tuple[Postings, np.ndarray]], folder: Path) -> None:
    """Write the postings of the chunks that are alive in each source, source after source.

    Tokens are merged in ranges, so memory is bounded by the number of different tokens and of chunks.
    """
    folder.mkdir(parents=True)
    blocks = [(postings, postings.alive_blocks(alive)) for postings, alive in sources]
    numbered = [_renumber([alive for _, alive in some]) for some in (sources, blocks)]
    write_pieces(
        folder / "blocks.npy",
        np.int32,
        (numbers[one.block_of[alive]] for (one, alive), numbers in zip(sources, numbered[1], strict=True)),
    )
    words = np.unique(np.concatenate([np.asarray(postings.words) for postings, _ in sources]))
    with ArrayWriter(folder / "words.npy", np.uint64) as kept_words:
        for name, some, numbers in (("own", sources, numbered[0]), ("around", blocks, numbered[1])):
            parts = [getattr(postings, name) for postings, _ in some]
            held = [postings.words for postings, _ in some]
            lengths = (part.lengths[alive] for part, (_, alive) in zip(parts, some, strict=True))
            write_pieces(folder / f"{name}_lengths.npy", np.int32, lengths)
            with (
                ArrayWriter(folder / f"{name}_starts.npy", np.int64) as starts,
                ArrayWriter(folder / f"{name}_texts.npy", np.int32) as texts,
                ArrayWriter(folder / f"{name}_counts.npy", np.uint16) as counts,
            ):
                starts.append(np.zeros(1))
                for first, last in _ranges(words, parts, held):
                    of_word, found, often = _gather(words[first:last], parts, held, numbers)
                    holders = np.bincount(of_word, minlength=last - first)
                    kept = holders > 0  # the others were only in removed chunks, on both sides
                    starts.append(texts.rows + np.cumsum(holders[kept]))
                    texts.append(found)
                    counts.append(often)
                    if name == "own":
                        kept_words.append(words[first:last][kept])
    kept_postings = [postings for postings, _ in sources]
    write_array(folder / "spelled.npy", _merge_spellings(open_array(folder / "words.npy"), kept_postings))


def _merge_spellings(words: np.ndarray, sources: Sequence[Postings]) -> np.ndarray:
    """Return the spellings of some tokens in any of the sources."""
    forms = [""] * len(words)
    for postings in sources:
        places = np.searchsorted(words, postings.words)
        held = places < len(words)
        held[held] = words[places[held]] == postings.words[held]
        for place, some in zip(places[held].tolist(), compress(postings.spellings(), held.tolist()), strict=True):
            forms[place] = " ".join(sorted({*forms[place].split(), *some.split()}))
    return _as_lines(forms)


def _renumber(masks: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the new number of each text that is kept, -1 for the others."""
    numbers, first = [], 0
    for mask in masks:
        numbers.append(np.where(mask, first + np.cumsum(mask) - 1, -1).astype(np.int32))
        first += int(mask.sum())
    return numbers


def _ranges(words: np.ndarray, parts: Sequence[Inverted], held: Sequence[np.ndarray]) -> Iterator[tuple[int, int]]:
    """Divide the tokens into ranges with about the number of postings that are merged at a time."""
    totals = np.zeros(len(words), dtype=np.int64)
    for part, own_words in zip(parts, held, strict=True):
        totals[np.searchsorted(words, own_words)] += np.diff(part.starts)
    pieces = np.cumsum(totals) // _PIECE
    cuts = [0, *(np.flatnonzero(np.diff(pieces)) + 1).tolist(), len(words)]
    return ((first, last) for first, last in pairwise(cuts) if first < last)


def _gather(
    words: np.ndarray, parts: Sequence[Inverted], held: Sequence[np.ndarray], numbers: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the postings of some tokens, sorted by token: its position, the new number of the text, the frequency."""
    found = []
    for part, own_words, number in zip(parts, held, numbers, strict=True):
        low = int(np.searchsorted(own_words, words[0]))
        high = int(np.searchsorted(own_words, words[-1], side="right"))
        starts = np.asarray(part.starts[low : high + 1])
        of_word = np.repeat(np.searchsorted(words, own_words[low:high]), np.diff(starts))
        span = slice(int(starts[0]), int(starts[-1]))
        texts = number[part.texts[span]]
        kept = texts >= 0
        found.append((of_word[kept], texts[kept], part.counts[span][kept]))
    of_word, texts, counts = (np.concatenate(columns) for columns in zip(*found, strict=True))
    order = np.argsort(of_word, kind="stable")
    return of_word[order], texts[order], counts[order]
