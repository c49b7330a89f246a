"""Compare words: fold case and accents, and stem them."""

import functools
import re
import unicodedata

WORD = re.compile(r"[^\W\d_]+")
_LETTERS = str.maketrans({"ø": "o", "æ": "ae", "œ": "oe", "ð": "d", "đ": "d", "ł": "l", "þ": "th"})
_SUFFIX = re.compile(r"(?<=\w{4})(?:ians|ian|ans|ish|ese|ics|ic|ies|ing|ed|ly|es|an|ia|s|a|e|n|o|y)\Z")


def fold(word: str) -> str:
    """Return a word without case, accents and ligatures, so that its spellings are equal."""
    plain = unicodedata.normalize("NFKD", word.casefold().translate(_LETTERS))
    return "".join(character for character in plain if not unicodedata.combining(character))


@functools.lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a word, equal for most of its forms."""
    word = fold(word)
    while (shorter := _SUFFIX.sub("", word)) != word:
        word = shorter
    return word
