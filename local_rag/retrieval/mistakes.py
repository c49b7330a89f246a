"""Find the words that somebody may have meant who typed another: by weighted edit distance.

People double a letter or forget to, swap two, miss one, take a vowel for another, write what they hear, or hit a
neighbouring key; they seldom get the first letter wrong. Such mistakes cost less than others, because two words of
which one letter differs in another way are mostly two words: Iceland and Ireland, shilling and shipping.
"""

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np

from local_rag.text.tokens import folded

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
