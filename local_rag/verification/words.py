"""Compare words: fold case and accents, stem them, and recognize common ones."""

import functools
import re
import unicodedata
from pathlib import Path

WORD = re.compile(r"[^\W\d_]+")
_LETTERS = str.maketrans({"ø": "o", "æ": "ae", "œ": "oe", "ð": "d", "đ": "d", "ł": "l", "þ": "th"})
_SUFFIX = re.compile(r"(?<=\w{4})(?:ians|ian|ans|ish|ese|ics|ic|ies|ing|ed|ly|es|an|ia|s|a|e|n|o|y)\Z")
# Names of one country, day or month whose stems differ; the first in a row is used for all.
_SYNONYMS = """
    norway norwegian|ireland irish|denmark danish dane|france french|spain spanish
    netherlands dutch holland wales welsh|switzerland swiss|greece greek|turkey turkish turk|poland polish pole
    portugal portuguese britain british uk|usa us american america|china chinese|finland finnish finn
    scotland scottish scot scots england english|peru peruvian|monday mon|tuesday tue|wednesday wed|thursday thu
    friday fri saturday sat|sunday sun|january jan|february feb|march mar|april apr|june jun|july jul|august aug
    september sep sept|october oct november nov|december dec"""
_STOP_WORDS = """
    a an the of in to and or for at on by from with is are was were be been has have had it its this that these
    those as not no than then you your he she they their we our i my do does did can may must will how what when
    where which who many much long often if per"""


def fold(word: str) -> str:
    """Return a word without case, accents and ligatures, so that its spellings are equal."""
    plain = unicodedata.normalize("NFKD", word.casefold().translate(_LETTERS))
    return "".join(character for character in plain if not unicodedata.combining(character))


@functools.lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a word, equal for all its forms; demonyms count as forms of their country."""
    word = fold(word)
    while word not in _synonyms():
        shorter = _SUFFIX.sub("", word)
        if shorter == word:
            return word
        word = shorter
    return _synonyms()[word]


@functools.cache
def _synonyms() -> dict[str, str]:
    rows = [row.split() for row in _SYNONYMS.replace("\n", "|").split("|")]
    return {word: row[0] for row in rows for word in row}


@functools.cache
def common_words() -> frozenset[str]:
    """Return the stems of words that are not names even if they are capitalised."""
    text = (Path(__file__).parent / "common_words.txt").read_text(encoding="utf-8")
    return frozenset(map(stem, text.split()))


@functools.cache
def _stop_words() -> frozenset[str]:
    return frozenset(map(stem, _STOP_WORDS.split()))


def stems(text: str) -> frozenset[str]:
    """Return the stems of a text's words without the stop words."""
    return frozenset(map(stem, WORD.findall(text))) - _stop_words()
