"""Keyword search by BM25, over words, stems, parts of identifiers and bigrams of scripts without spaces."""

import functools
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.store.postings import Inverted, Postings
from local_rag.store.ranking import best_rows, contenders
from local_rag.store.scoring import (
    KEYWORDS,
    KeywordTuning,
    Statistics,
    inverse_document_frequency,
    saturation,
    term_weights,
    token_number,
)

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
    unspaced = _UNSPACED.search(text) is not None
    for match in _word().finditer(text):
        word = match.group().replace("\u2019", "'").removesuffix("'s")
        if unspaced and (runs := _UNSPACED.findall(word)):
            for run in runs:
                yield from (run[index : index + 2] for index in range(max(1, len(run) - 1)))
            word = _UNSPACED.sub(" ", word).strip()
            if not word:
                continue
        lower = word.lower()
        yield lower
        plain = word.isalpha() and word[1:] == lower[1:]  # most words: of one part
        if not plain and word.isascii() and "'" not in word and (parts := _PART.findall(word)) != [word]:
            yield from (part.lower() for part in parts)


class KeywordIndex:
    """Search chunks by BM25, over any number of postings; an id is a chunk's place behind those of the parts before.

    A chunk scores for its own words, and a little less for those of its surroundings: some neighbouring chunks of the
    same document taken as one. A chunk from the midst of a document often lacks the very word that says what it is
    about, which stands a few chunks above it. Scores are the same however the chunks are cut into parts.
    """

    def __init__(
        self,
        parts: Sequence[tuple[Postings, np.ndarray | None]],
        tuning: KeywordTuning = KEYWORDS,
        order: np.ndarray | None = None,
    ) -> None:
        """Search the chunks of each part that are alive, or all; of equal ones that of the lowest `order` is first."""
        self._tuning, self._order = tuning, order
        self._parts, first = list[_Part](), 0
        self._statistics = Statistics()
        for postings, alive in parts:
            blocks = None if alive is None else postings.alive_blocks(alive)
            self._parts.append(_Part(postings, alive, blocks, first))
            self._statistics += postings.statistics(alive)
            first += len(postings.block_of)
        self._chunks = first

    @classmethod
    def build(
        cls, texts: Sequence[str], documents: Sequence[int] = (), tuning: KeywordTuning = KEYWORDS
    ) -> "KeywordIndex":
        """Build an index in memory.

        `documents` names the document of each text; those of one document follow each other. Without it each text
        stands alone.
        """
        tokens = [keyword_tokens(text) for text in texts]
        return cls([(Postings.build(tokens, documents or range(len(texts)), tuning), None)], tuning)

    def save(self, folder: Path) -> None:
        """Write an index of one part to a folder."""
        (part,) = self._parts
        part.postings.write(folder)

    @classmethod
    def load(cls, folder: Path, tuning: KeywordTuning = KEYWORDS) -> "KeywordIndex":
        """Open a saved index, memory-mapped."""
        return cls([(Postings.open(folder), None)], tuning)

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
        if not terms or (allowed is not None and not len(allowed)):
            return []
        scores = self._scores(term_weights(terms, weights))
        if allowed is None:
            rows = contenders(scores, top)
            scores = scores[rows]
        else:
            scores = scores[allowed]
            rows, scores = allowed[scores > 0], scores[scores > 0]
        return best_rows(rows, scores, top, self._order)

    def _scores(self, weight_of: Mapping[str, float]) -> np.ndarray:
        """Return the score of every chunk, float64; 0 of those that are not alive."""
        scores = np.zeros(self._chunks)
        around = {part.first: np.zeros(len(part.postings.around.lengths)) for part in self._parts}
        for term, weight in weight_of.items():
            number = token_number(term)
            places = [(part, place) for part in self._parts if (place := part.postings.place(number)) is not None]
            own = [(part, *_holders(part.postings.own, place, part.alive)) for part, place in places]
            blocks = [(part, *_holders(part.postings.around, place, part.blocks)) for part, place in places]
            total = self._statistics
            for lists, collection, share in ((own, total.own, 1.0), (blocks, total.around, self._tuning.around)):
                holding = sum(len(found) for _, found, _ in lists)
                idf = weight * share * inverse_document_frequency(collection.texts, holding)
                for part, found, counts in lists:
                    inverted = part.postings.own if lists is own else part.postings.around
                    frequency, length = counts.astype(np.float64), inverted.lengths[found].astype(np.float64)
                    values = idf * saturation(frequency, length, collection.average, self._tuning)
                    if lists is own:
                        scores[found + part.first] += values
                    else:
                        around[part.first][found] += values
        for part in self._parts:
            of_blocks = around[part.first]
            if of_blocks.any():
                scores[part.first : part.first + len(part.postings.block_of)] += of_blocks[part.postings.block_of]
        return scores


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Postings, which of their chunks and blocks are alive, and the id of the first chunk."""

    postings: Postings
    alive: np.ndarray | None
    blocks: np.ndarray | None
    first: int


def _holders(inverted: Inverted, place: int, alive: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the texts alive that hold a token, and how often each does."""
    span = slice(int(inverted.starts[place]), int(inverted.starts[place + 1]))
    found, counts = inverted.texts[span], inverted.counts[span]
    return (found, counts) if alive is None else (found[alive[found]], counts[alive[found]])
