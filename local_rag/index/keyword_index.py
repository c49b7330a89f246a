"""Keyword search by BM25, over words, stems, parts of identifiers and bigrams of scripts without spaces."""

import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from local_rag.index.languages import ENGLISH, FUNCTION_WORDS, language_of
from local_rag.index.normal_form import normalize
from local_rag.index.postings import Inverted, Postings
from local_rag.index.ranking import best_rows, contenders
from local_rag.index.scoring import (
    KEYWORDS,
    KeywordTuning,
    Statistics,
    TextCounts,
    damping,
    inverse_document_frequency,
    saturation,
    term_weights,
    token_number,
)
from local_rag.index.words import caseless, is_unspaced, runs_of, words_of

# Part of the key of every index: raise it when the code below makes other tokens of the same text.
TOKENS_VERSION = 7
_SHORT = 40  # the length of a word whose tokens are remembered
_FEWEST_LETTERS = 3  # of a word that is kept as it is spelt
_FEWEST_OF_PIECE = 2  # letters
_MARK = re.compile("['_]+")

# `getUserName` -> get User Name, `HTTPServer2` -> HTTP Server 2, `snake_case` -> snake case
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
STOP_WORDS = frozenset(
    """a an and are as at be but by do does for from had has have he her his how i if in into is it its me my no not of
    on or our s she so such that the their then there these they this to was we were what when where which who will
    with would you your""".split()  # noqa: SIM905  a list of that many quoted words is no easier to read
)


@functools.cache
def _stemmer(language: str) -> Any:
    import Stemmer

    return Stemmer.Stemmer(language if language in Stemmer.algorithms() else ENGLISH)


def keyword_tokens(text: str, language: str = ENGLISH) -> list[str]:
    """Return the tokens by which texts are compared: stems, identifiers and their parts, and bigrams without spaces.

    An index also holds the English stems of other languages; see `document_tokens`.
    """
    # The stems of short words are kept, because they occur again and again.
    stems = [(_remembered if len(word) <= _SHORT else _stems_of)(word, language, language) for word in words_of(text)]
    return list(chain.from_iterable(stems))


def _stems_of(word: str, language: str, stemmer: str) -> tuple[str, ...]:
    """Return the stems of a word of a language, by the stemmer of the same or another, without its stop words."""
    stop_words = STOP_WORDS if language == ENGLISH else FUNCTION_WORDS.get(language, frozenset())
    parts = [part for part in _parts(word) if part not in stop_words]
    return tuple(_stemmer(stemmer).stemWords([folded(part) for part in parts] if stemmer == ENGLISH else parts))


_remembered = functools.lru_cache(maxsize=1 << 16)(_stems_of)


def folded(word: str) -> str:
    """Return a word in lower case with its Latin letters as they are typed without accents: Schließfach, schliessfach.

    An accent tells words apart in some languages. Those have stemmers, which are given the word as it is.
    """
    return word.lower() if word.isascii() else caseless(word).translate(_plain_letters())


@functools.cache
def _plain_letters() -> dict[int, str]:
    """Return what to write for each Latin letter with a mark, and nothing for a mark that follows a letter."""
    letters = [chr(code) for code in (*range(0x80, 0x250), *range(0x1E00, 0x1F00)) if chr(code).isalpha()]
    plain = {ord(one): normalize("NFKD", one.casefold()) for one in letters}
    plain |= dict(zip(map(ord, "øłđæœðþı"), ("o", "l", "d", "ae", "oe", "d", "th", "i"), strict=True))
    marks = dict.fromkeys(range(0x300, 0x370), "")
    return {code: text.translate(marks) for code, text in plain.items()} | marks


def document_tokens(texts: Sequence[str], words: dict[str, set[str]] | None = None) -> list[list[str]]:
    """Return the tokens of each text of a document, stemmed in the language of all of them and in English.

    Questions are stemmed in English too, so in whatever language one is asked, it finds the words that it names. The
    words are added to those of their language in `words`, if given.
    """
    language = language_of("\n".join(texts))
    found = [words_of(text) for text in texts]
    if words is not None:
        words.setdefault(language, set()).update(*found)
    return [list(chain.from_iterable(_terms_of(word, language) for word in some)) for some in found]


def _terms_of(word: str, language: str) -> tuple[str, ...]:
    """Return the stems of a word in its language, then those in English and of its pieces that differ."""
    stems_of = _remembered if len(word) <= _SHORT else _stems_of
    own = stems_of(word, language, language)
    also = list(stems_of(word, language, ENGLISH)) if language != ENGLISH else []
    also += [term for piece in _pieces(word) for term in _terms_of(piece, language)]
    return own + tuple(term for term in dict.fromkeys(also) if term not in own)


def spellings(words: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
    """Return for each token the words in lower case that it stands for, from the words of each language.

    They are the words that a person may type: no identifiers, no numbers, and nothing of a script without spaces.
    """
    found: dict[str, set[str]] = {}
    for language, some in words.items():
        for word in some:
            form, *parts = [""] if len(word) > _SHORT or is_unspaced(word) else _parts(word)
            if not parts and form.isalpha() and len(form) >= _FEWEST_LETTERS:
                for token in _terms_of(word, language):
                    found.setdefault(token, set()).add(form)
    return found


def question_terms(question: str, language: str = "") -> list[str]:
    """Return the tokens of a question; one in another language than English is also stemmed as English.

    So it finds documents of its language, and names in all others. Without a `language`, the question tells it.
    """
    language = language or language_of(question)
    terms = keyword_tokens(question, language)
    if language == ENGLISH:
        return terms
    also = dict.fromkeys(term for word in words_of(question) for term in _stems_of(word, language, ENGLISH))
    return terms + [term for term in also if term not in set(terms)]


def _parts(word: str) -> Iterator[str]:
    """Yield a word without case and the parts of an identifier, or the bigrams of a script without spaces."""
    word = word.removesuffix("'s")
    for run in runs_of(word):
        if not run.isascii() and is_unspaced(run):
            yield from _bigrams(run)
            continue
        lower = caseless(run)
        yield lower
        plain = run.isalpha() and run[1:] == lower[1:]  # most words have one part
        if not plain and run.isascii() and "'" not in run and (parts := _PART.findall(run)) != [run]:
            yield from (part.lower() for part in parts)


def _bigrams(run: str) -> Iterator[str]:
    return (run[index : index + 2] for index in range(max(1, len(run) - 1)))


def _pieces(word: str) -> list[str]:
    """Return what apostrophes and underscores part a word into, as in "l'eau" and "_eau_"; nothing without them."""
    return [piece for piece in _MARK.split(word) if len(piece) >= _FEWEST_OF_PIECE] if _MARK.search(word) else []


def tokens_of_holders(word: str) -> list[str]:
    """Return tokens that every text with a word has, whatever its language: all of them.

    There are none for what an index may leave out: words without meaning in some language, single letters.
    """
    runs = [run for one in words_of(word) for piece in _MARK.split(one) for run in runs_of(piece)]
    tokens = list[str]()
    for run in runs:
        if len(run) < _FEWEST_OF_PIECE:
            continue
        if is_unspaced(run):
            tokens += _bigrams(run)
        elif folded(run) not in _left_out():
            tokens.append(english_stem(run))
    return tokens


def english_stem(word: str) -> str:
    """Return the token that an index has of a word in whatever language, unless it leaves the word out."""
    return str(_stemmer(ENGLISH).stemWord(folded(word)))


@functools.cache
def _left_out() -> frozenset[str]:
    """Return the words that an index leaves out in some language."""
    return frozenset(folded(word) for words in (STOP_WORDS, *FUNCTION_WORDS.values()) for word in words)


class KeywordIndex:
    """Search chunks by BM25 in any number of parts; the id of a chunk is its position in all parts together.

    A chunk scores for its own words, and with less weight for those of its surroundings: neighbouring chunks of the
    same document taken as one text. A chunk from the middle of a document often lacks the word for its subject, which
    occurs a few chunks earlier. Scores do not depend on how the chunks are divided into parts.
    """

    def __init__(
        self,
        parts: Sequence[tuple[Postings, np.ndarray | None]],
        tuning: KeywordTuning = KEYWORDS,
        order: np.ndarray | None = None,
    ) -> None:
        """Search the chunks of each part that are alive (None: all); equal scores rank by `order`, lowest first."""
        self._tuning, self._order = tuning, order
        self._parts = list[_Part]()
        self._statistics = Statistics()
        for postings, alive in parts:
            blocks = None if alive is None else postings.alive_blocks(alive)
            self._parts.append(_Part(_Side(postings.own, alive), _Side(postings.around, blocks), postings))
            self._statistics += postings.statistics(alive)

    def spellings(self) -> set[str]:
        """Return the words that stand in any part, in lower case."""
        return {form for part in self._parts for forms in part.postings.spellings() for form in forms.split()}

    def search(
        self,
        terms: Sequence[str],
        top: int,
        allowed: np.ndarray | None = None,
        weights: Sequence[float] | None = None,
        hidden: np.ndarray | None = None,
    ) -> list[tuple[int, float]]:
        """Return ids with scores for `keyword_tokens` of a question, best first; only `allowed` ids, int64, if given.

        Otherwise all but the `hidden` ones.

        A term counts as often as it occurs, times its weight if there are `weights`. Texts whose surroundings share no
        token with the question are not returned.
        """
        if not terms or (allowed is not None and not len(allowed)):
            return []
        scores = self._scores(term_weights(terms, weights))
        if allowed is None:
            if hidden is not None:
                scores[hidden] = 0
            rows = contenders(scores, top)
            scores = scores[rows]
        else:
            scores = scores[allowed]
            rows, scores = allowed[scores > 0], scores[scores > 0]
        return best_rows(rows, scores, top, self._order)

    def _scores(self, weight_of: Mapping[str, float]) -> np.ndarray:
        """Return the score of every chunk, float64, 0 for those that are not alive."""
        numbers, total = [token_number(term) for term in weight_of], self._statistics
        positions = [[part.postings.position(number) for number in numbers] for part in self._parts]
        own = self._side_scores([part.own for part in self._parts], positions, weight_of, total.own, 1.0)
        around = self._side_scores(
            [part.around for part in self._parts], positions, weight_of, total.around, self._tuning.around
        )
        for number, part in enumerate(self._parts):
            own[number] += around[number][part.postings.block_of]
            if part.own.alive is not None:
                own[number][~part.own.alive] = 0
        return np.concatenate([np.zeros(0), *own])

    def _side_scores(
        self,
        sides: "Sequence[_Side]",
        positions: Sequence[Sequence[int | None]],
        weight_of: Mapping[str, float],
        collection: TextCounts,
        share: float,
    ) -> list[np.ndarray]:
        """Return the scores of the texts, or of the surroundings, of each part, including texts that are not alive."""
        lists = [side.holders(of_part) for side, of_part in zip(sides, positions, strict=True)]
        weights = [
            weight * share * inverse_document_frequency(collection.texts, sum(one[term].alive for one in lists))
            for term, weight in enumerate(weight_of.values())
        ]
        return [
            side.scores(of_part, weights, collection, self._tuning) for side, of_part in zip(sides, lists, strict=True)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class _Holders:
    """The texts that contain a token, ascending, its frequency in each, and the number of those that are alive."""

    texts: np.ndarray
    counts: np.ndarray
    alive: int


@dataclass(slots=True, eq=False)
class _Side:
    """The texts, or the surroundings, of a part, and which of them are alive, None for all."""

    inverted: Inverted
    alive: np.ndarray | None
    _damping: np.ndarray | None = None

    def holders(self, positions: Sequence[int | None]) -> list[_Holders]:
        """Return the texts that contain each token, given as its position among the words, None if it is not there."""
        found = []
        for position in positions:
            first, end = (0, 0) if position is None else map(int, self.inverted.starts[position : position + 2])
            texts = self.inverted.texts[first:end]
            alive = len(texts) if self.alive is None else int(np.count_nonzero(self.alive[texts]))
            found.append(_Holders(texts, self.inverted.counts[first:end], alive))
        return found

    def scores(
        self, lists: Sequence[_Holders], weights: Sequence[float], collection: TextCounts, tuning: KeywordTuning
    ) -> np.ndarray:
        """Add up the scores of the tokens of a question for each text, in their order."""
        if self._damping is None:  # the same for every question
            self._damping = damping(self.inverted.lengths.astype(np.float64), collection.average, tuning)
        scores = np.zeros(len(self._damping))
        for one, weight in zip(lists, weights, strict=True):  # one token at a time: a long question has many long lists
            scores[one.texts] += weight * saturation(one.counts.astype(np.float64), self._damping[one.texts])
        return scores


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The postings of a part, and both sides of them."""

    own: _Side
    around: _Side
    postings: Postings
