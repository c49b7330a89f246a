"""The postings of some chunks, and of their surroundings, in two indexes of bm25s that never change.

Scores must depend neither on how chunks are divided into segments nor on chunks that somebody may not see. bm25s takes
lengths against the average of its texts, and multiplies the saturated frequency of a token by its rarity among them. So
k1 and b are chosen such that lengths count against a fixed pivot, and the rarity is divided out before an index is
saved. What is left depends on the document alone: segments are merged by joining their columns, and `KeywordIndex` puts
the rarity among the visible chunks on when a question is asked.
"""

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from local_rag.errors import DamagedLibraryError
from local_rag.index.arrays import REMEDY, open_array, write_array
from local_rag.index.scoring import KEYWORDS, KeywordTuning, even_blocks, token_number

_MOST_NARROW = 1 << 16  # texts whose numbers fit into two bytes


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """An index of bm25s: token `i` adds `parts[starts[i]:starts[i + 1]]`, times its weight, to the scores of `texts`.

    `texts` are numbers of texts, of which those of a token stand beside their parts, ascending.
    """

    starts: np.ndarray
    texts: np.ndarray
    parts: np.ndarray

    @classmethod
    def build(cls, texts: Sequence[Sequence[int]], words: int, pivot: int, tuning: KeywordTuning) -> "Columns":
        """Score texts, given as the positions of their tokens among the words."""
        if not words:
            return cls(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
        rise = tuning.k1 * tuning.b * np.mean([len(text) for text in texts]) / pivot
        k1 = tuning.k1 * (1 - tuning.b) + rise
        index = _bm25(k1=k1, b=rise / k1, dtype="float64")
        index.index((texts, {str(word): word for word in range(words)}), create_empty_token=False, show_progress=False)
        starts, holding = index.scores["indptr"], np.diff(index.scores["indptr"])
        rarities = np.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        parts = (index.scores["data"] / np.repeat(rarities, holding)).astype(np.float32)
        return cls(starts, index.scores["indices"], parts)

    def save(self, folder: Path, texts: int, vocabulary: Mapping[str, int]) -> None:
        """Save an index over so many texts as bm25s does, the numbers of few texts in two bytes."""
        index = _bm25(k1=KEYWORDS.k1, b=KEYWORDS.b)
        numbers = self.texts.astype(np.uint16 if texts <= _MOST_NARROW else np.int32)
        index.scores = {"data": self.parts, "indices": numbers, "indptr": self.starts, "num_docs": texts}
        index.vocab_dict, index.nonoccurrence_array = dict(vocabulary), None
        index.save(folder, show_progress=False)

    @classmethod
    def open(cls, folder: Path) -> "Columns":
        """Open a saved index, memory-mapped, as bm25s does; no question waits for bm25s to be imported."""
        starts, texts, parts = (open_array(folder / f"{name}.csc.index.npy") for name in ("indptr", "indices", "data"))
        if not len(texts) == len(parts) == starts[-1]:
            raise DamagedLibraryError(f"{folder / 'indptr.csc.index.npy'} is damaged", REMEDY)
        return cls(starts, texts, parts)

    def of(self, word: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the texts that contain a token, ascending, and its part of the score of each; none for None."""
        column = slice(0, 0) if word is None else slice(*self.starts[word : word + 2].tolist())
        return self.texts[column], self.parts[column]


def _bm25(**settings: Any) -> Any:
    os.environ.setdefault("DISABLE_TQDM", "1")  # or bm25s starts a thread for progress bars that nobody sees
    import bm25s

    return bm25s.BM25(method="lucene", **settings)


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """The postings of chunks and of their surroundings; `words` are the numbers of their tokens, ascending.

    `vocabulary` returns the words that stand in the chunks, in lower case, each with the position of one of its tokens.
    """

    words: np.ndarray
    own: Columns
    around: Columns
    block_of: np.ndarray
    vocabulary: Callable[[], Mapping[str, int]]

    @classmethod
    def build(
        cls,
        tokens: Sequence[Sequence[str]],
        documents: Sequence[int],
        tuning: KeywordTuning = KEYWORDS,
        spellings: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> "Postings":
        """Make the postings of chunks from their tokens; chunks of one document are consecutive."""
        numbers = sorted((token_number(token), token) for token in set(chain.from_iterable(tokens)))
        position_of = {token: position for position, (_, token) in enumerate(numbers)}
        texts, block_of, blocks = [[position_of[token] for token in text] for text in tokens], list[int](), list[Any]()
        for _, group in groupby(documents):
            parts = even_blocks(len(list(group)), tuning.block_texts)
            block_of += [len(blocks) + part for part in parts]
            blocks += [[] for _ in set(parts)]
        for block, text in zip(block_of, texts, strict=True):
            blocks[block] += text
        vocabulary = {word: position_of[token] for token in sorted(spellings) for word in sorted(spellings[token])}
        return cls(
            np.array([number for number, _ in numbers], dtype=np.uint64),
            Columns.build(texts, len(numbers), tuning.pivot, tuning),
            Columns.build(blocks, len(numbers), tuning.around_pivot, tuning),
            np.array(block_of, dtype=np.int32),
            lambda: vocabulary,
        )

    def write(self, folder: Path) -> None:
        """Write the postings to a folder."""
        self.own.save(folder / "own", len(self.block_of), self.vocabulary())
        self.around.save(folder / "around", self.blocks, {})
        write_array(folder / "words.npy", self.words)
        write_array(folder / "blocks.npy", self.block_of)

    @classmethod
    def open(cls, folder: Path) -> "Postings":
        """Open written postings, memory-mapped; raise DamagedLibraryError if they are not whole."""
        if (folder / "own_counts.npy").exists():
            return _of_counts(folder)
        words, block_of = open_array(folder / "words.npy"), open_array(folder / "blocks.npy")
        own, around = Columns.open(folder / "own"), Columns.open(folder / "around")
        if not len(words) + 1 == len(own.starts) == len(around.starts):
            raise DamagedLibraryError(f"{folder / 'words.npy'} is damaged", REMEDY)
        return cls(words, own, around, block_of, lambda: json.loads((folder / "own/vocab.index.json").read_bytes()))

    @property
    def blocks(self) -> int:
        """Return the number of surroundings."""
        return int(self.block_of[-1]) + 1 if len(self.block_of) else 0

    def position(self, token: str) -> int | None:
        """Return the position of a token among `words`, None if no chunk contains it."""
        number = np.uint64(token_number(token))
        position = int(np.searchsorted(self.words, number))
        return position if position < len(self.words) and self.words[position] == number else None

    def alive_blocks(self, alive: np.ndarray) -> np.ndarray:
        """Return a mask of the surroundings that have chunks that are `alive`."""
        blocks = np.zeros(self.blocks, dtype=bool)
        blocks[self.block_of[alive]] = True
        return blocks


def merge_postings(sources: Sequence[tuple[Postings, np.ndarray]]) -> Postings:
    """Return the postings of the chunks that are alive in each source, source after source."""
    some, alive = [postings for postings, _ in sources], [mask for _, mask in sources]
    words, places = np.unique(np.concatenate([one.words for one in some]), return_inverse=True)
    positions = np.split(places, np.cumsum([len(one.words) for one in some])[:-1])
    blocks = [one.alive_blocks(mask) for one, mask in sources]
    own = _joined([one.own for one in some], positions, alive, len(words))
    around = _joined([one.around for one in some], positions, blocks, len(words))
    block_of = [number[one.block_of[mask]] for one, mask, number in zip(some, alive, _renumbered(blocks), strict=True)]
    kept = np.diff(own.starts) > 0  # the others were only in removed chunks, on both sides
    own, around = (Columns(side.starts[np.append(kept, True)], side.texts, side.parts) for side in (own, around))
    new = np.where(kept, np.cumsum(kept) - 1, -1)
    vocabulary = {
        word: int(new[held[position]])
        for one, held in zip(some, positions, strict=True)
        for word, position in one.vocabulary().items()
        if kept[held[position]]
    }
    return Postings(words[kept], own, around, np.concatenate(block_of), lambda: vocabulary)


def _joined(
    sides: Sequence[Columns], positions: Sequence[np.ndarray], alive: Sequence[np.ndarray], words: int
) -> Columns:
    """Join the columns of each token, without the texts that are gone."""
    found = []
    for side, held, mask, number in zip(sides, positions, alive, _renumbered(alive), strict=True):
        kept = mask[side.texts]
        of_word = np.repeat(held.astype(np.int32), np.diff(side.starts))
        found.append((of_word[kept], number[side.texts[kept]], side.parts[kept]))
    of_word, texts, parts = (np.concatenate(columns) for columns in zip(*found, strict=True))
    order = np.argsort(of_word, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(of_word, minlength=words)))
    return Columns(starts, texts[order], parts[order])


def _renumbered(masks: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the new number of each text that is kept."""
    numbers = np.cumsum(np.concatenate(masks), dtype=np.int32) - 1
    return np.split(numbers, np.cumsum([len(mask) for mask in masks])[:-1])


def _of_counts(folder: Path) -> Postings:
    """Open postings of an earlier version, which kept counts; they can be searched until `index` writes them again."""
    words, block_of, spelled = (open_array(folder / f"{name}.npy") for name in ("words", "blocks", "spelled"))
    sides = []
    for side, pivot in (("own", KEYWORDS.pivot), ("around", KEYWORDS.around_pivot)):
        names = ("starts", "texts", "counts", "lengths")
        starts, texts, counts, lengths = (open_array(folder / f"{side}_{name}.npy") for name in names)
        against = KEYWORDS.k1 * (1 - KEYWORDS.b + KEYWORDS.b * lengths / pivot)
        sides.append(Columns(starts, texts, (counts / (against[texts] + counts)).astype(np.float32)))
    lines = spelled.tobytes().decode().split("\n")
    vocabulary = {word: position for position, line in enumerate(lines) for word in line.split()}
    own, around = sides
    return Postings(words, own, around, block_of, lambda: vocabulary)
