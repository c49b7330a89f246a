"""Compare words: fold case and accents, and stem them."""

import functools
import re
import unicodedata
from collections.abc import Iterable

from local_rag.text.normal_form import normalize

WORD = re.compile(r"[^\W\d_]+")
_LETTERS = str.maketrans({"ø": "o", "æ": "ae", "œ": "oe", "ð": "d", "đ": "d", "ł": "l", "þ": "th"})
_SUFFIX = re.compile(r"(?<=\w{4})(?:ians|ian|ans|ish|ese|ics|ic|ies|ing|ed|ly|es|an|ia|s|a|e|n|o|y)\Z")
_LONGEST_WORD = 60  # a longer one is its own stem


def fold(word: str) -> str:
    """Return a word without case, accents and ligatures, so that its spellings are equal."""
    plain = normalize("NFKD", word.casefold().translate(_LETTERS))
    return "".join(character for character in plain if not unicodedata.combining(character))


@functools.lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a word, equal for most of its forms."""
    word = fold(word)
    if len(word) > _LONGEST_WORD:
        return word
    while (shorter := _SUFFIX.sub("", word)) != word:
        word = shorter
    return word


def blank(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Overwrite parts of a text that do not overlap, so that nothing in them is found a second time."""
    parts, done = list[str](), 0
    for start, end in sorted(spans):
        if start >= done:
            parts += [text[done:start], "\0" * (end - start)]
            done = end
    return "".join([*parts, text[done:]])
