"""Compare words: fold case and accents, cut endings, know the common ones."""

import functools
import re
import unicodedata
from pathlib import Path

WORD = re.compile(r"[^\W\d_]+")
_LETTERS = str.maketrans({"ø": "o", "æ": "ae", "œ": "oe", "ð": "d", "đ": "d", "ł": "l", "þ": "th"})
_SUFFIX = re.compile(r"(?<=\w{4})(?:ians|ian|ans|ish|ese|ics|ic|ies|ing|ed|ly|es|an|ia|s|a|e|n|o|y)\Z")
# Names of one place whose stems differ; the first of a row stands for all.
_SAME = """
    norway norwegian|ireland irish|denmark danish dane|france french|spain spanish
    netherlands dutch holland wales welsh|switzerland swiss|greece greek|turkey turkish turk|poland polish pole
    portugal portuguese britain british uk|usa us american america|china chinese|finland finnish finn
    scotland scottish scot scots england english|peru peruvian|monday mon|tuesday tue|wednesday wed|thursday thu
    friday fri saturday sat|sunday sun|january jan|february feb|march mar|april apr|june jun|july jul|august aug
    september sep sept|october oct november nov|december dec"""


_LITTLE = """
    a an the of in to and or for at on by from with is are was were be been has have had it its this that these
    those as not no than then you your he she they their we our i my do does did can may must will how what when
    where which who many much long often if per"""


def fold(word: str) -> str:
    """Return a word without case, accents and ligatures, so that two ways to write it are equal."""
    plain = unicodedata.normalize("NFKD", word.casefold().translate(_LETTERS))
    return "".join(character for character in plain if not unicodedata.combining(character))


@functools.lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return what the forms of a word have in common; demonyms count as forms of their country."""
    word = fold(word)
    while word not in _same():
        shorter = _SUFFIX.sub("", word)
        if shorter == word:
            return word
        word = shorter
    return _same()[word]


@functools.cache
def _same() -> dict[str, str]:
    rows = [row.split() for row in _SAME.replace("\n", "|").split("|")]
    return {word: row[0] for row in rows for word in row}


@functools.cache
def common_words() -> frozenset[str]:
    """Return the stems of words that are no names, wherever a capital letter may have been put."""
    text = (Path(__file__).parent / "common_words.txt").read_text(encoding="utf-8")
    return frozenset(map(stem, text.split()))


@functools.cache
def _little() -> frozenset[str]:
    return frozenset(map(stem, _LITTLE.split()))


def stems(text: str) -> frozenset[str]:
    """Return the stems of a text's words, but for the little ones."""
    return frozenset(map(stem, WORD.findall(text))) - _little()
