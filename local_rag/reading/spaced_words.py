"""Join the letters of a word that is set apart within a line, as in `I m p o r t a n t`."""

import re
import unicodedata
from collections.abc import Sequence
from itertools import groupby, pairwise

FEWEST_LETTERS, _FEWEST_CAPITALS = 5, 6  # of a word that is set apart
_SPACED = re.compile(r"(?<!\S)[^\W\d_](?: [^\W\d_]){4,60}(?!\S)")
_VOWELS = frozenset(
    "aeiou\u00e6\u00f8\u03b1\u03b5\u03b7\u03b9\u03bf\u03c5\u03c9\u0430\u0435\u0438\u043e\u0443\u044b\u044d\u044e\u044f\u0456"
)
_FEWEST_DIFFERENT, _MOST_CONSONANTS = 3, 3  # letters of a word, and in sequence
_LEAST_VOWELS = 0.25  # a larger part of a word


def is_spaced_word(letters: Sequence[str]) -> bool:
    """Return whether single letters are those of one word.

    It is written as words are and has vowels between other letters, as lists of months, marks or choices do not, and
    neither counts up nor repeats few letters.
    """
    word = "".join(letters)
    plain = "".join(filter(str.isalpha, unicodedata.normalize("NFD", word.casefold())))
    vowels = [letter in _VOWELS for letter in plain]
    steps = [ord(after) - ord(before) for before, after in pairwise(plain)]
    return (
        len(letters) >= (_FEWEST_CAPITALS if word.isupper() else FEWEST_LETTERS)
        and (word.isupper() or word[1:].islower())
        and _LEAST_VOWELS * len(plain) < sum(vowels) < len(plain)
        and all(len(list(some)) <= _MOST_CONSONANTS for is_vowel, some in groupby(vowels) if not is_vowel)
        and len(set(plain)) >= _FEWEST_DIFFERENT + word.isupper()
        and 2 * steps.count(1) <= len(steps)
    )


def join_spaced_words(text: str) -> str:
    """Join the letters of words that are set apart by single spaces; the lines stay the same."""
    return _SPACED.sub(lambda one: "".join(said) if is_spaced_word(said := one[0].split(" ")) else one[0], text)
