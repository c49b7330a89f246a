"""Keyword search by BM25, over words, stems, parts of identifiers and bigrams of scripts without spaces."""

import functools
import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.store.scoring import KEYWORDS, KeywordTuning

# Part of every index's recipe: raise it whenever the code below would make other tokens of the same text.
TOKENS_VERSION = 4

# `getUserName` -> get User Name, `HTTPServer2` -> HTTP Server 2, `snake_case` -> snake case
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
# Scripts written without spaces: Thai to Myanmar, Khmer, kana, Han.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_STOP_WORDS = frozenset(
    """a an and are as at be but by do does for from had has have he her his how i if in into is it its me my no not of
    on or our s she so such that the their then there these they this to was we were what when where which who will
    with would you your""".split()  # noqa: SIM905  a list of that many quoted words is no easier to read
)


@functools.cache
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")


def keyword_tokens(text: str) -> list[str]:
    """Return the tokens of a text: stems, whole identifiers beside their parts, and bigrams."""
    # Joiners and non-joiners change how a word looks, not which it is.
    text = unicodedata.normalize("NFKC", text).replace("\u200c", "").replace("\u200d", "")
    words = [token for token in _words(text) if token not in _STOP_WORDS]
    stems: list[str] = _stemmer().stemWords(words)
    return stems


@functools.cache
def _word() -> re.Pattern[str]:
    """Match a word with its combining marks, such as vowel signs, which `re` does not take for parts of words.

    Marks beyond U+FFFF are left out: with them in the class every text would take several times as long.
    """
    marks = "".join(
        character
        for character in map(chr, range(0x300, 0x10000))
        if unicodedata.category(character) in {"Mn", "Mc"}
        and not unicodedata.name(character, "").startswith("VARIATION SELECTOR")
    )
    word = rf"\w+(?:[{marks}]\w*)*"
    return re.compile(rf"{word}(?:['\u2019]{word})?")


def _words(text: str) -> Iterator[str]:
    for match in _word().finditer(text):
        word = match.group().replace("\u2019", "'").removesuffix("'s")
        runs = _UNSPACED.findall(word)
        if runs:
            for run in runs:
                yield from (run[index : index + 2] for index in range(max(1, len(run) - 1)))
            word = _UNSPACED.sub(" ", word).strip()
            if not word:
                continue
        yield word.lower()
        parts = _PART.findall(word)
        if parts != [word] and word.isascii() and "'" not in word:
            yield from (part.lower() for part in parts)


class KeywordIndex:
    """Search texts by BM25; an id is a text's position in the list the index was built from.

    A text scores for its own words, and a little less for those of its surroundings: some neighbouring texts of the
    same document taken as one. A chunk from the midst of a document often lacks the very word that says what it is
    about, which stands a few chunks above it.
    """

    def __init__(self, own: Any, around: Any, block_of: np.ndarray, tuning: KeywordTuning) -> None:
        self._own, self._around, self._block_of, self._tuning = own, around, block_of, tuning

    @classmethod
    def build(
        cls, texts: Sequence[str], documents: Sequence[int] = (), tuning: KeywordTuning = KEYWORDS
    ) -> "KeywordIndex":
        """Build an index in memory; bm25s cannot be updated in place, and building is cheap.

        `documents` names the document of each text; those of one document follow each other. Without it each text
        stands alone.
        """
        tokens = [keyword_tokens(text) for text in texts]
        block_of = _blocks(documents or range(len(texts)), tuning.block_texts)
        blocks: list[list[str]] = [[] for _ in range(int(block_of[-1]) + 1 if len(block_of) else 0)]
        for block, part in zip(block_of, tokens, strict=True):
            blocks[block] += part
        return cls(_build(tokens, tuning), _build(blocks, tuning), block_of, tuning)

    def save(self, folder: Path) -> None:
        """Write the index to a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / "blocks.npy", self._block_of)
        for name, retriever in (("own", self._own), ("around", self._around)):
            if retriever is not None:
                retriever.save(str(folder / name))

    @classmethod
    def load(cls, folder: Path, tuning: KeywordTuning = KEYWORDS) -> "KeywordIndex":
        """Open a saved index, memory-mapped."""
        import bm25s

        own, around = (
            bm25s.BM25.load(str(folder / name), mmap=True) if (folder / name).is_dir() else None
            for name in ("own", "around")
        )
        return cls(own, around, np.load(folder / "blocks.npy"), tuning)

    def search(
        self,
        terms: Sequence[str],
        top: int,
        allowed: np.ndarray | None = None,
        weights: Sequence[float] | None = None,
    ) -> list[tuple[int, float]]:
        """Return ids with scores for `keyword_tokens` of a question, best first; only `allowed` ids, int64, if given.

        A term scores as often as it is named, times its weight where `weights` has one for each. Texts whose
        surroundings share no token with the question are left out.
        """
        if self._own is None or (allowed is not None and not len(allowed)):
            return []
        known: dict[float, list[str]] = {}
        for term, weight in zip(terms, weights or [1.0] * len(terms), strict=True):
            if term in self._own.vocab_dict:
                known.setdefault(weight, []).append(term)
        if not known:
            return []
        scores = np.zeros(len(self._block_of), dtype=np.float32)
        for weight, tokens in known.items():
            scores += weight * self._own.get_scores(tokens)
            scores += weight * self._tuning.around * self._around.get_scores(tokens)[self._block_of]
        scores = scores if allowed is None else scores[allowed]
        # All that equal the last one are compared, so that the first rows win wherever the list ends.
        last = np.partition(scores, -min(top, len(scores)))[-min(top, len(scores))]
        best = np.flatnonzero((scores >= last) & (scores > 0))
        best = best[np.lexsort((best, -scores[best]))][:top]
        rows = best if allowed is None else allowed[best]
        return [(int(row), float(scores[one])) for row, one in zip(rows, best, strict=True)]


def _build(tokens: Sequence[list[str]], tuning: KeywordTuning) -> Any:
    """Index tokens; bm25s has no empty vocabulary, so that an index of nothing is None."""
    if not any(tokens):
        return None
    import bm25s

    retriever = bm25s.BM25(k1=tuning.k1, b=tuning.b)
    retriever.index(tokens, show_progress=False)
    return retriever


def _blocks(documents: Sequence[int], block_texts: int) -> np.ndarray:
    """Cut the texts of each document into blocks of about equal length; return the block of each text, int32."""
    lengths = [len(list(group)) for _, group in itertools.groupby(documents)]
    blocks: list[int] = []
    for length in lengths:
        count = -(-length // block_texts)
        first = blocks[-1] + 1 if blocks else 0
        blocks += [first + position * count // length for position in range(length)]
    return np.asarray(blocks, dtype=np.int32)
