"""Look up facts in a source: its numbers, dates, codes and names, in any notation."""

import re
import unicodedata

from local_rag.verification.quantities import MONTHS, Date, Quantity, find_dates, find_numbers, find_times, unit_of
from local_rag.verification.words import WORD, fold, stem

_WRITTEN_AS = {
    "-": "\u2010\u2011\u2012\u2013\u2014\u2212",
    "'": "\u2018\u2019\u02bc",
    " ": "\u00a0\u2007\u2009\u202f\t",
    '"': "\u201c\u201d\u201e\u00ab\u00bb",
    "": "\u00ad\u200b",
}
_PLAIN = str.maketrans({mark: plain for plain, marks in _WRITTEN_AS.items() for mark in marks})
_DOTTED = re.compile(r"\b(?:[A-Za-z]\.){2,}(?:[A-Za-z]\b)?")
# A telephone number, or a word that contains digits, such as ST-4471, E04 or 1.2.3.
_CODE = re.compile(
    r"\(\d{2,5}\) ?\d+(?:[- ]\d+)+|(?<![\w.,])(?=[\w./-]*\d)"
    r"(?:(?=[\w./-]*[^\W\d])[^\W_]+(?:[-_./][^\W_]+)*|\d+(?:\.\d+){2,}|\d+(?:-\d+){2,})"
)
# Looks like a code, but is a number.
_NOT_A_CODE = re.compile(
    r"\d[\d.,]*(?:[-/]\d[\d.,]*)?(?:-?(?:st|nd|rd|th|s|x|k|m|bn|mn)|[-/][a-z][a-z/-]+|[ap]\.?m\.?)?"
    r"|(?:pre|mid|post|late|early|non|sub|under|over|top|approx|circa|and|or)[-/]\d+s?",
    re.IGNORECASE,
)
_NUMBER_AND_UNIT = re.compile(r"[\d.,]*\d-?([^\W\d_]+[23]?(?:/[^\W\d_]+)?)|(?:NOK|SEK|DKK|EUR|USD|GBP|CHF|kr)[\d.,]+")
_PIECE = re.compile(r"[^\W\d_]+|\d+")
# A sequence of capitalised words, which an acronym may abbreviate.
_RUN = re.compile(r"\b[^\W\d_a-z][^\W\d_]+(?:[ -](?:of |and |the |for )?[^\W\d_a-z][^\W\d_]+)+")
_MONTH = re.compile(rf"\b(?:{'|'.join(MONTHS)})[a-z]*")
_BEFORE_DATE, _AFTER_DATE = 30, 12  # characters around a date in which its day may stand


def normalize(text: str) -> str:
    """Normalize dashes, quotation marks and spaces, and remove the full stops of abbreviations."""
    text = unicodedata.normalize("NFC", text).translate(_PLAIN)
    return _DOTTED.sub(lambda found: found[0].replace(".", "").ljust(len(found[0])), text)


def blank(text: str, start: int, end: int) -> str:
    """Overwrite a part of a text, so that nothing in it is found a second time."""
    return f"{text[:start]}{chr(0) * (end - start)}{text[end:]}"


def find_codes(text: str) -> list[re.Match[str]]:
    """Return the words of a text that contain digits, except numbers with a unit."""
    return [code for code in _CODE.finditer(text) if not _is_number(code[0])]


def _is_number(code: str) -> bool:
    if _NOT_A_CODE.fullmatch(code):
        return True
    match = _NUMBER_AND_UNIT.fullmatch(code)
    return bool(match and (match[1] is None or unit_of(match[1])))


class Source:
    """A text in which facts are looked up."""

    def __init__(self, text: str) -> None:
        text = self._text = unicodedata.normalize("NFKC", normalize(text))
        words = WORD.findall(text)
        self._stems = frozenset(map(stem, words))
        self._months = _MONTH.findall(text.lower())
        self._folded = fold(text)
        self._dates = find_dates(text)
        rest = text
        for start, end in [(date.start, date.end) for date in self._dates] + [code.span() for code in find_codes(text)]:
            rest = blank(rest, start, end)
        self.numbers = find_numbers(rest, words=True)
        self._times = find_times(text)
        self._units = {*map(unit_of, words), *(number.unit for number in self.numbers)} - {None}
        self._dated = {part for date in self._dates for part in (date.year, date.day) if part is not None}
        runs = (run.split() for run in _RUN.findall(text))
        self._initials = [fold("".join(word[0] for word in run if word[0].isupper())) for run in runs]

    def has_number(self, wanted: Quantity) -> bool:
        """Return whether a number occurs with its unit, or without one if the unit occurs elsewhere in the text."""
        if wanted.unit is None and (self._dated & wanted.values or self.has_code(wanted.text)):
            return True
        return any(
            wanted.values & number.values
            and (
                wanted.unit in (None, number.unit)
                or (wanted.unit in self._units and (number.unit is None or number.borrowed))
            )
            for number in self.numbers
        )

    def has_time(self, wanted: Quantity) -> bool:
        """Return whether a time of day occurs."""
        return any(wanted.values & time.values for time in self._times)

    def has_date(self, wanted: Date) -> bool:
        """Return whether a date occurs; the year, or the day of a range, may be apart from the month."""
        years = self._dated.union(*(number.values for number in self.numbers))
        if wanted.year is not None and wanted.year not in years:
            return False
        for date in self._dates:
            if date.month == wanted.month and (not wanted.year or date.year in (None, wanted.year)):
                near = self._text[max(date.start - _BEFORE_DATE, 0) : date.end + _AFTER_DATE]
                if wanted.day in (None, date.day) or re.search(rf"(?<![\d.,:])0?{wanted.day}(?![\d:])", near):
                    return True
        return wanted.day is None and any(word[:3] == MONTHS[wanted.month - 1] for word in self._months)

    def has_code(self, code: str) -> bool:
        """Return whether a code occurs, however its parts are joined."""
        pieces = r"[\W_]{0,2}".join(_PIECE.findall(fold(code)))
        return bool(pieces and re.search(rf"(?<![^\W_]){pieces}(?![^\W_])", self._folded))

    def has_name(self, name: str) -> bool:
        """Return whether a name occurs in any of its forms, or spelled out if it is an acronym."""
        pieces = WORD.findall(name)
        if all(stem(piece) in self._stems for piece in pieces) or self.has_code(name):
            return True
        return name.isupper() and any(fold(name) in initials for initials in self._initials)
