"""Normalize text and cut it into words: the same for the index, questions, counts and the check of answers.

What looks the same is the same: letters in any Unicode form, all dashes, quotation marks and spaces. What cannot be
seen is removed: soft hyphens, characters without width, joiners, marks of direction, and so are the vowel points that
Hebrew and Arabic mostly leave out. Digits of all scripts are those of ASCII. A superscript stays apart from what it
stands at: 10\u2076 becomes 10^6, not 106.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Literal

_WRITTEN_AS = {
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043\u05be\u058a",
    "'": "\u2018\u2019\u201a\u201b\u02bc\u2039\u203a",
    " ": "\u00a0\u2007\u2009\u202f\t",
    '"': "\u201c\u201d\u201e\u201f\u00ab\u00bb",
    "/": "\u2044",
    ".": "\u066b",
    ",": "\u066c",
    "%": "\u066a",
}
_PLAIN = str.maketrans({mark: plain for plain, marks in _WRITTEN_AS.items() for mark in marks})
# Among them are variation selectors and the stroke that lengthens Arabic words.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u0640\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff]+"
)
# Vowels and accents of Hebrew and Arabic, which most texts leave out; the marks that make other letters stay.
_POINTS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u08ca-\u08e1\u08e3-\u08ff]+"
)
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_RAISED = re.compile(
    "[\u00aa\u00b2\u00b3\u00b9\u00ba\u02b0-\u02b8\u02e0-\u02e4\u1d2c-\u1d2e\u1d30-\u1d3a\u1d3c-\u1d4d\u1d4f-\u1d61\u1d78"
    "\u1d9b-\u1dbf\u2070\u2071\u2074-\u207f\u2120\u2122\u2c7d]+"
)
_LOWERED_AFTER_DIGIT = re.compile("(?<=[0-9])[\u1d62-\u1d6a\u2080-\u208e\u2090-\u209c\u2c7c]+")
_DOTTED_I = re.compile("i\u0307")

# Scripts written without spaces: Thai to Myanmar, Khmer, kana, Han.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
# Words of these scripts may stand directly beside letters and digits of others, as in "\u05d4GPS" and "12\uac1c".
_OTHER_SCRIPTS = (
    "\u0590-\u05ff",  # Hebrew
    "\u0600-\u06ff\u0750-\u077f\u0870-\u08ff",  # Arabic
    *(f"{chr(first)}-{chr(first + 0x7F)}" for first in range(0x900, 0xE00, 0x80)),  # of India
    "\u1200-\u139f",  # Ethiopic
    _HANGUL,
)
_ALL_OTHERS = _UNSPACED + "".join(_OTHER_SCRIPTS)
_RUN = re.compile("|".join(f"[{one}]+" for one in (_UNSPACED, *_OTHER_SCRIPTS)) + f"|[^{_ALL_OTHERS}]+")
_UNSPACED_RUN, _HANGUL_RUN = re.compile(f"[{_UNSPACED}]+"), re.compile(f"[{_HANGUL}]+")
LINE_END = r"[^\S\n]{0,9}\n[^\S\n]{0,9}(?:>[^\S\n]{0,9}){0,9}"  # with the spaces and signs of a quotation around it
_LINE_END_WITHIN = re.compile(f"(?<=[{_UNSPACED}]){LINE_END}(?=[{_UNSPACED}])")
_BETWEEN_UNSPACED = re.compile(f"(?<=[{_UNSPACED}])(?=[{_UNSPACED}])")
_ASCII_WORD = re.compile(r"\w+(?:'\w+)?")
_MARKS_OF_LETTERS = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f"
# Marks on letters, among other signs. They are sorted by insertion, so many on one letter take quadratic time; people
# write a few, and Unicode's stream-safe format allows 30.
_MANY_MARKS = re.compile(r"(?:[^\w\x00-\x7f]|[\uff9e\uff9f]){64}")
WORD = re.compile(r"[^\W\d_]+")
_LETTERS = str.maketrans({"ø": "o", "æ": "ae", "œ": "oe", "ð": "d", "đ": "d", "ł": "l", "þ": "th"})
_SUFFIX = re.compile(r"(?<=\w{4})(?:ians|ian|ans|ish|ese|ics|ic|ies|ing|ed|ly|es|an|ia|s|a|e|n|o|y)\Z")
_LONGEST_WORD = 60  # a longer one is its own stem


def normalize(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """Return a text in a normal form; a row of marks longer than any letter has is normalized in pieces."""
    if text.isascii():
        return text
    cuts = [0, *(found.end() for found in _MANY_MARKS.finditer(text)), len(text)]
    pieces = (text[start:end] for start, end in pairwise(cuts))
    return "".join(unicodedata.normalize(form, piece) for piece in pieces)


def plain(text: str) -> str:
    """Return a text in the form in which texts are compared; case and the ends of lines stay."""
    if text.isascii():
        return text.replace("\t", " ")
    text = _UNSEEN.sub("", text)
    text = _LOWERED_AFTER_DIGIT.sub(r"_\g<0>", _RAISED.sub(r"^\g<0>", text))
    # Some marks are written as others only by the composition, and the other way round.
    text = _POINTS.sub("", normalize("NFKC", text.translate(_PLAIN)).translate(_PLAIN))
    return _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)


def caseless(text: str) -> str:
    """Return a plain text without case: all its spellings are equal, also those of the letters i and \u0451."""
    if text.isascii():
        return text.lower()
    return normalize("NFKC", _DOTTED_I.sub("i", text.casefold())).replace("\u0451", "\u0435")


def words_of(text: str) -> list[str]:
    """Return the words of a text in its plain form, as they are written.

    In scripts without spaces, words go on in the next line.
    """
    text = plain(text)
    if not text.isascii() and is_unspaced(text):
        text = _LINE_END_WITHIN.sub("", text)
    # The pattern that knows marks takes longer to make than an index of a few thousand chunks to search.
    return (_ASCII_WORD if text.isascii() else _word()).findall(text)


@functools.cache
def _word() -> re.Pattern[str]:
    """Match a word with its combining marks, such as vowel signs; `re` alone does not treat them as parts of words.

    Marks above U+FFFF are excluded, because including them makes matching several times slower for every text.
    """
    marks = "".join(mark for mark in map(chr, range(0x300, 0x10000)) if unicodedata.category(mark) in {"Mn", "Mc"})
    word = rf"\w+(?:[{marks}]\w*)*"
    return re.compile(rf"{word}(?:'{word})?")


def runs_of(word: str) -> list[str]:
    """Cut a word where it goes on in a script whose words may stand directly beside those of another."""
    return [word] if word.isascii() else _RUN.findall(word)


def is_unspaced(text: str) -> bool:
    """Return whether a text has letters of a script that is written without spaces."""
    return _UNSPACED_RUN.search(text) is not None


def pieces_of_unspaced(word: str) -> list[str]:
    """Cut a word between the letters of scripts without spaces: there a line may end."""
    return _BETWEEN_UNSPACED.split(word)


def joins_lines(before: str, after: str) -> bool:
    """Return whether a line goes on in the next one without a space, as in scripts without spaces."""
    return is_unspaced(before[-1:]) and is_unspaced(after[:1])


def join_lines(lines: Iterable[str]) -> str:
    """Join the lines of a paragraph by a space, or by nothing where the script is written without spaces."""
    text = ""
    for line in lines:
        text += line if not text or joins_lines(text, line) else f" {line}"
    return text


def is_hangul(text: str) -> bool:
    """Return whether a word is of the Korean script, whose particles follow without a space."""
    return _HANGUL_RUN.fullmatch(text) is not None


def boundaries(first: str, last: str) -> tuple[str, str]:
    """Return patterns for what may stand before the first and after the last character of a word.

    A word of a script without spaces may stand anywhere; others stand beside no letter, digit or mark of their own
    script. An underscore belongs to a word between letters and digits only: elsewhere it is markup.
    """
    before, after = _own_letters(first), _own_letters(last)
    return (
        f"(?<!{before})(?<!{before}_)(?<!{before}__)" if before else "",
        f"(?!_{{0,9}}{after})" if after else "",
    )


@functools.lru_cache(maxsize=64)
def _own_letters(character: str) -> str:
    """Return a character class of the letters, digits and marks that continue a word; empty if nothing does."""
    if not (character.isalnum() or unicodedata.category(character).startswith("M")):
        return ""
    if is_unspaced(character):
        return ""
    own = next((script for script in _OTHER_SCRIPTS if re.match(f"[{script}]", character)), None)
    if own is None:
        return rf"(?:[^\W_{_ALL_OTHERS}]|[{_MARKS_OF_LETTERS}])"
    return f"[{_letters_within(own)}]"


@functools.cache
def _letters_within(script: str) -> str:
    ranges = (range(ord(one[0]), ord(one[2]) + 1) for one in re.findall(".-.", script))
    return "".join(chr(code) for one in ranges for code in one if unicodedata.category(chr(code))[0] in "LMN")


def parts_of_line(line: str) -> Iterator[tuple[str, str]]:
    """Yield the characters of a line, each with the marks that belong to it, and their plain form without case."""
    for found in _cluster().finditer(line):
        yield found[0], caseless(plain(found[0]))


@functools.cache
def _cluster() -> re.Pattern[str]:
    follow = "".join(
        character
        for character in map(chr, range(0x300, 0x10000))
        if unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff"
    )
    unseen, raised = (pattern.pattern.removesuffix("+") for pattern in (_UNSEEN, _RAISED))
    return re.compile(f"{raised}+|.(?:[{follow}]|{unseen})*", re.DOTALL)


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
