"""Replace the words of a question that no document has by the words of the documents that were meant.

Only words that stand in no document that may be found are replaced, so a question without mistakes is searched as it
is. Which words somebody may have meant tells a weighted edit distance, or a missing space.

People double a letter or forget to, swap two, miss one, take a vowel for another, write what they hear, or hit a
neighbouring key; they seldom get the first letter wrong. Such mistakes cost less than others, because two words of
which one letter differs in another way are mostly two words: Iceland and Ireland, shilling and shipping.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from math import log10

import numpy as np

from local_rag.answer_records import Correction
from local_rag.index.protocol import Allowed, Index, PassageStore
from local_rag.text.languages import ENGLISH, FUNCTION_WORDS, language_of
from local_rag.text.tokens import SMALL_WORDS, folded, question_terms
from local_rag.text.words import is_unspaced

MOST_LETTERS = 32  # of a word that is looked for

# Costs of mistakes; see `most_mistakes` for what they may add up to.
_DOUBLED = _SWAPPED = 3
_OTHER_VOWEL = _VOWEL_MISSED = _SAME_SOUND = 4
_MISSED = _KEY_BESIDE = LIKELY = 5
_FIRST_MISSED = 8
_FAR = 50

_LIMITS = ((10, 2 * _MISSED), (7, _DOUBLED + _OTHER_VOWEL), (5, _MISSED), (0, _DOUBLED))

_VOWELS = "aeiouy"
_SOUNDS = ("cksqxz", "fv", "gj")
_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def most_mistakes(word: str, *, is_name: bool = False) -> int:
    """Return how much the mistakes in a word may cost: the longer it is, the fewer other words are near it.

    In 4 letters that is one likely mistake, in up to 6 and in a name any one, from 10 on two.
    """
    most = next(most for letters, most in _LIMITS if len(word) >= letters)
    return min(most, _MISSED) if is_name else most


class Speller:
    """Words, found by what is typed for them."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = {folded(word): word for word in sorted(words) if len(word) <= MOST_LETTERS}
        self._folded = list(self._words)
        self._lengths = np.fromiter(map(len, self._folded), dtype=np.int8, count=len(self._folded))
        self._letters = _letters(self._folded)
        self._beginnings = _codes(self._folded, letters=2)

    def __contains__(self, word: str) -> bool:
        """Return whether a word, in lower case and without accents, is one of them."""
        return word in self._words

    def near(self, word: str, most: int) -> list[tuple[int, str]]:
        """Return the words whose mistakes cost at most so much, each with the cost, lowest first.

        `word` is in lower case and without accents.
        """
        edits = max(1, most // _OTHER_VOWEL)  # that change which letters a word has, each at most two
        different = np.bitwise_count(self._letters ^ _letters([word])[0])
        near = (np.abs(self._lengths - len(word)) <= edits) & (different <= 2 * edits)
        (first, second), (begins, goes_on) = self._beginnings.T, _codes([word])[0, :2]
        # The first letter is right, swapped with the second, missing or needless.
        near &= (first == begins) | (first == goes_on) | (second == begins)
        rows = np.flatnonzero(near).tolist()
        costs = edit_costs(word, [self._folded[row] for row in rows]).tolist()
        found = ((cost, self._folded[row]) for cost, row in zip(costs, rows, strict=True) if cost <= most)
        return sorted((cost, self._words[one]) for cost, one in found)


def _letters(words: Sequence[str]) -> np.ndarray:
    """Return which letters stand in each word, as bits; letters of one number modulo 64 share a bit."""
    found = np.zeros(len(words), dtype=np.uint64)
    for column in _codes(words).T:
        found |= np.where(column, np.uint64(1) << (column.astype(np.uint64) % np.uint64(64)), np.uint64(0))
    return found


def _codes(words: Sequence[str], letters: int = 0) -> np.ndarray:
    """Return the first letters of words as numbers, by default all, shape (words, letters); 0 follows their ends."""
    letters = letters or max(1, *map(len, words), 1)
    return np.array(words, dtype=f"U{letters}").view(np.uint32).reshape(len(words), letters)


def edit_costs(word: str, others: Sequence[str]) -> np.ndarray:
    """Return the cost of typing `word` for each of the others, shape (others,); more than any limit if it is unlikely.

    It is the distance of Damerau and Levenshtein, in which no letter takes part in two swaps, with costs.
    """
    typed, codes = _codes([word])[0], _codes(others)
    longest = codes.shape[1]
    known, missed = np.minimum(codes, _OTHER), _missed(codes)
    extra = _missed(typed[None])[0]
    costs = np.full((len(word) + 1, longest + 1, len(others)), _FAR, dtype=np.int16)
    costs[0] = np.concatenate([np.zeros((1, len(others)), np.int16), missed.T.cumsum(axis=0)])
    for i in range(1, len(word) + 1):
        costs[i, 0] = costs[i - 1, 0] + extra[i - 1]
        other = _substitutions()[min(typed[i - 1], _OTHER)]
        for j in range(max(1, i - _BAND), min(longest, i + _BAND) + 1):
            same = codes[:, j - 1] == typed[i - 1]
            replaced = np.where(same, 0, _FAR if i == j == 1 else other[known[:, j - 1]])
            cost = np.minimum(costs[i - 1, j - 1] + replaced, costs[i - 1, j] + extra[i - 1])
            cost = np.minimum(cost, costs[i, j - 1] + missed[:, j - 1])
            if i > 1 and j > 1:
                swapped = (codes[:, j - 1] == typed[i - 2]) & (codes[:, j - 2] == typed[i - 1])
                cost = np.where(swapped, np.minimum(cost, costs[i - 2, j - 2] + _SWAPPED), cost)
            costs[i, j] = np.minimum(cost, _FAR)
    found: np.ndarray = costs[len(word), list(map(len, others)), np.arange(len(others))]
    return found


_OTHER = ord("z") + 1  # stands for all letters of other alphabets
_BAND = 3  # places by which two words may be shifted


def _missed(codes: np.ndarray) -> np.ndarray:
    """Return what it costs to miss each letter, or to type it needlessly, shape as `codes`."""
    cost = np.where(np.isin(codes, [ord(vowel) for vowel in _VOWELS]), _VOWEL_MISSED, _MISSED)
    cost[:, 1:][codes[:, 1:] == codes[:, :-1]] = _DOUBLED
    cost[:, 0] = _FIRST_MISSED
    return cost.astype(np.int16)


@cache
def _substitutions() -> np.ndarray:
    """Return what it costs to type one letter for another, by their numbers."""
    costs = np.full((_OTHER + 1, _OTHER + 1), _FAR, dtype=np.int16)

    def allow(letters: Iterable[str], cost: int) -> None:
        numbers = [ord(letter) for letter in letters]
        rows = np.ix_(numbers, numbers)
        costs[rows] = np.minimum(costs[rows], cost)

    for row, below in zip(_KEYS, (*_KEYS[1:], ""), strict=True):
        for place, key in enumerate(row):
            for beside in (row[place + 1 : place + 2], below[max(0, place - 1) : place], below[place : place + 1]):
                allow(key + beside, _KEY_BESIDE)
    for letters in _SOUNDS:
        allow(letters, _SAME_SOUND)
    allow(_VOWELS, _OTHER_VOWEL)
    return costs


_FEWEST_LETTERS = 4  # of a word that is corrected
_FEWEST_OF_PART = 3  # letters of each word, if a space is missing
_MOST_WORDS, _MOST_CHARACTERS = 8, 1000  # words without a document, and all: a text with more was not typed
_CONTENDERS = 12  # the nearest words, whose frequencies are compared
_COUNTED = 100  # rows that are counted for a frequency
_LOOKED_AT = 16  # passages in which two words are looked for side by side
_CAPITALISED = "german"  # the language in which a capital letter is no sign of a name

_PLAIN = re.compile(r"[^\W\d_]++(?:-[^\W\d_]++)*+(?=(?:['\u2019]s?)?$)")
_AROUND = ".,;:!?()[]{}<>*\"'\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2026\u00bf\u00a1"
_QUOTED = re.compile(
    r"\"[^\"]*\"|[\u201c\u201e][^\u201c-\u201e]{0,200}[\u201c\u201d]|\u00ab[^\u00ab\u00bb]{0,200}\u00bb"
)


@cache
def _function_words(language: str) -> Speller:
    return Speller(FUNCTION_WORDS.get(language, ()))


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a question that may have been mistyped: where it stands, and whether it looks like a name."""

    start: int
    end: int
    typed: str
    is_name: bool


class Spelling:
    """Correct questions to one index. `is_word` says whether a word in lower case is known to be spelt right.

    Such a word is not corrected even if no document has it: who asks about Iceland does not mean Ireland. The words of
    an index that shows a part of itself are those of the whole, so each is looked for in what is shown.
    """

    def __init__(
        self, index: Index, passages: PassageStore, is_word: Callable[[str], bool], *, of_part: bool = False
    ) -> None:
        self.index, self.passages, self._is_word, self.of_part = index, passages, is_word, of_part

    @cached_property
    def words(self) -> Speller:
        """The words of the documents, read when a question has a word that none of them has."""
        return Speller(self.index.vocabulary())

    def correct(self, question: str, allowed: Allowed = None) -> tuple[str, tuple[Correction, ...]]:
        """Return a question as it is to be searched, and what was replaced; only words in what is `allowed` count."""
        if len(question) > _MOST_CHARACTERS:
            return question, ()
        visible = _Visible(self, allowed, language_of(question))
        parts, done, corrections = list[str](), 0, list[Correction]()
        for word in self._unknown(question, visible):
            if searched := visible.meant(word):
                corrections.append(Correction(word.typed, searched))
                parts += [question[done : word.start], searched]
                done = word.end
        return "".join([*parts, question[done:]]), tuple(dict.fromkeys(corrections))

    def _unknown(self, question: str, visible: "_Visible") -> list[_Word]:
        """Return the words that stand in no document and are not known either; none if they are too many.

        If a question in another language than English has more of them than others, its documents are in English.
        """
        words = [word for word in _typed_words(question, visible.language) if word.typed.lower() not in SMALL_WORDS]
        unread = (one for one in words if not self._is_word(one.typed.lower()) and not visible.frequency(one.typed, 1))
        unknown = list(islice(unread, _MOST_WORDS + 1))
        most = _MOST_WORDS if visible.language == ENGLISH else min(_MOST_WORDS, len(words) // 2)
        return unknown if len(unknown) <= most else []


@dataclass(frozen=True, slots=True)
class _Visible:
    """The documents that may be found, and the language of a question to them."""

    spelling: Spelling
    allowed: Allowed
    language: str

    def rows(self, words: str, most: int) -> list[int]:
        """Return the rows that have words, at most so many."""
        terms = question_terms(words, self.language)
        return [row for row, _ in self.spelling.index.keywords(terms, most, self.allowed, documents=True)]

    def frequency(self, word: str, most: int = _COUNTED) -> int:
        """Return how many rows have a word, at most so many."""
        return len(self.rows(word, most))

    def meant(self, word: _Word) -> str:
        """Return what is searched instead of a word, empty if nothing is near enough."""
        typed = folded(word.typed)
        most = most_mistakes(typed, is_name=word.is_name)
        found = self._two_words(typed) or self._one_word(typed, most) or self._two_words(typed, mistaken=True)
        return found[:1].upper() + found[1:] if word.typed[0].isupper() else found

    def _one_word(self, typed: str, most: int) -> str:
        """Return the word of the language or the documents that was most likely meant: near and frequent."""
        words = [(cost, word, _COUNTED) for cost, word in _function_words(self.language).near(typed, max(most, LIKELY))]
        near = ((cost, spelt) for cost, word in self.spelling.words.near(typed, most) if (spelt := self._spelt(word)))
        for cost, word in islice(near, _CONTENDERS):
            if rows := self.frequency(word):
                words.append((cost, word, rows))
        return min(words, key=lambda one: (one[0] - log10(one[2]), one[1]), default=(0, "", 0))[1]

    def _two_words(self, typed: str, *, mistaken: bool = False) -> str:
        """Return the two words of the documents that were typed as one, the second perhaps with a mistake."""
        words = self.spelling.words
        for cut in range(_FEWEST_OF_PART, len(typed) - _FEWEST_OF_PART + 1):
            first, second = typed[:cut], typed[cut:]
            if first not in words or not self._spelt(first):
                continue
            if mistaken:
                second = self._one_word(second, most_mistakes(second)) if len(second) >= _FEWEST_LETTERS else ""
            elif second not in words or not self._spelt(second):
                continue
            if second and self._side_by_side(first, second):
                return f"{first} {second}"
        return ""

    def _spelt(self, word: str) -> str:
        """Return how a word of the index is spelt in the first rows that may be found and have it, empty if in none."""
        if not self.spelling.of_part:
            return word
        found, wanted = self.spelling.passages.chunks_by_id(self.rows(word, _COUNTED)), folded(word)
        texts = ("\n".join((one.title, *one.chunk.headings, one.chunk.text)).lower() for one in found.values())
        return max((one for text in texts for one in re.findall(r"\w+", text) if folded(one) == wanted), default="")

    def _side_by_side(self, first: str, second: str) -> bool:
        found = self.spelling.passages.chunks_by_id(self.rows(f"{first} {second}", _LOOKED_AT))
        beside = re.compile(rf"(?<!\w){re.escape(first)}[\s-]{{1,3}}{re.escape(second)}")
        return any(beside.search(folded(one.chunk.text)) for one in found.values())


def _typed_words(question: str, language: str) -> Iterator[_Word]:
    """Yield the words of a question that may have been mistyped.

    Numbers, codes, identifiers, addresses and abbreviations are not among them, nor is what stands in quotation marks.
    """
    quoted = [found.span() for found in _QUOTED.finditer(question)]
    first = True
    for found in re.finditer(r"\S+", question):
        core = found.group().lstrip(_AROUND)
        start = found.end() - len(core)
        plain = _PLAIN.match(core.rstrip(_AROUND))
        for part in re.finditer(r"[^-]+", plain.group()) if plain else ():
            span, typed = (start + part.start(), start + part.end()), part.group()
            is_one = typed.islower() or typed.istitle()
            is_long = _FEWEST_LETTERS <= len(typed) <= MOST_LETTERS
            if is_one and is_long and not is_unspaced(typed) and not any(a <= span[0] < b for a, b in quoted):
                yield _Word(*span, typed, typed[0].isupper() and not first and language != _CAPITALISED)
        first = False
