"""Check an answer against the passages: every number, date, unit and proper name must occur in what it quotes.

The worst errors of small models are numbers and names of a neighbouring document. Code finds these without asking a
model again. It cannot tell whether a sentence with the right numbers and names says the right thing about them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import pairwise, zip_longest
from operator import methodcaller
from typing import TypeVar

from local_rag.text.dates import MONTHS, Date, find_dates, find_times
from local_rag.text.quantities import CURRENCIES, SHARES, Quantity, find_numbers, scale_of, scaled_unit_of, unit_of
from local_rag.text.sentences import LIST_NUMBER
from local_rag.text.sheet_rows import ROW
from local_rag.text.tokens import keyword_tokens
from local_rag.text.words import WORD, blank, fold, plain, stem

_DOTTED = re.compile(r"\b(?:[A-Za-z]\.){2,}(?:[A-Za-z]\b)?")
_PART = re.compile(r"(\d?)([\u00bc-\u00be\u2150-\u215e])")
_POWER_OF_UNIT = re.compile("(?<=m)[\u00b2\u00b3](?![\u00b9\u00b2\u00b3\u2070-\u207f])")
_SQUARE = {"\u00b2": "2", "\u00b3": "3"}
_MINUS = re.compile(r"\u2212\s(?=[\d.])")
_NUMBERED = (
    "version release section subsection clause chapter paragraph article figure table step annex appendix item python "
    "abschnitt kapitel ziffer artikel punkt absatz nr. v. \u00a7"
)
_AFTER_LABEL = "|".join(f"(?<={re.escape(label)} )" for label in _NUMBERED.split())
# A telephone number, the number of a section or version, in which 2.10 is not 2.1, a ratio, or a word that contains
# digits, such as ST-4471, E04 or 1.2.3, but not 1.5E-3.
_CODE = re.compile(
    r"\(\d{2,5}\) ?\d+(?:[- ]\d+)+|(?<![\w:.,])(?!(?:[01]?\d|2[0-4]):[0-5]\d(?!\d))\d{1,4}:\d{1,4}(?![\w:])"
    rf"|(?=\d{{1,4}}\.\d)(?i:{_AFTER_LABEL})(?P<numbered>\d{{1,4}}\.\d{{1,4}})(?![\w.,]*\d)|"
    r"(?<![\w.,])(?=[\w./-]{0,60}\d)(?!\d[\d.,]*[eE][-+]\d{1,2}(?!\w))"
    r"(?:(?=[\w./-]{0,60}[^\W\d])[^\W_]+(?:[-_./][^\W_]+)*|\d+(?:\.\d+){2,}|\d+(?:-\d+){2,})"
)
# Looks like a code, but is a number.
_NOT_A_CODE = re.compile(
    r"\d[\d.,]*(?:[-/]\d[\d.,]*)?(?:-?(?:st|nd|rd|th|s|x|k|m|bn|mn)|[-/][a-z][a-z/-]+|[ap]\.?m\.?)?"
    r"|(?:pre|mid|post|late|early|non|sub|under|over|top|approx|circa|and|or)[-/]\d+s?",
    re.IGNORECASE,
)
_VERSION, _GROUPS = re.compile(r"\d+(?:\.\d+){2,}"), re.compile(r"\d{1,3}(?:\.\d{3})+")
_NUMBER_AND_UNIT = re.compile(
    r"[\d.,]*\d-?([^\W\d_]+[23]?(?:/[^\W\d_]+)?)|(?:NOK|SEK|DKK|EUR|USD|GBP|CHF|kr)-?[\d.,]+[km]?", re.I
)
_PIECE = re.compile(r"[^\W\d_]+|\d+")
# A sequence of capitalised words, which an acronym may abbreviate.
_RUN = re.compile(r"\b[^\W\d_a-z][^\W\d_]+(?:[ -](?:of |and |the |for )?[^\W\d_a-z][^\W\d_]+)+")
_MONTH = re.compile(rf"\b(?!may\b)(?:{'|'.join(MONTHS)})", re.IGNORECASE)
# The other days of "9, 10 and 12 May" and of "May 9 to 12".
_MORE_DAYS = r"(?:st|nd|rd|th)?\.?\s?(?:,|-|/|and|or|to|through|until)\s?"
_DAYS_BEFORE = re.compile(rf"(?:(?<![\d.,:])\d{{1,2}}{_MORE_DAYS})+\Z")
_DAYS_AFTER = re.compile(rf"(?:{_MORE_DAYS}\d{{1,2}}(?![\d:]|[.,]\d))+")
_NEAR = 30  # characters around a date in which its other days may stand
_LONGEST_CODE = 100
_TELEPHONE = 7  # digits of a number that is the same in any grouping
_FREE = re.compile(r"(?P<bracket>[(\[])?(?P<word>[^\W\d_]+[23]?(?:/[^\W\d_]+)?|[%‰€£¥₹$]\w{0,2})")
_EACH = re.compile(r"(?:\b(?:per|each|every)\s|/\s?)\Z", re.IGNORECASE)
_EACH_CHARACTERS = 7

_URL = re.compile(r"\]\([^)\s\]]*\)|\b(?:https?://|www\.)[^\s)\]]+")
_NAME = re.compile(r"[^\W\d_](?:[^\W\d_]|['&.](?=[^\W\d_])|\.(?=[A-Z]))*")
# A capital letter says nothing here: at the start, or after a mark that begins a sentence or a list item.
_START = re.compile(r"(?:^|[:;.!?\n#]|[\"(*\[|>\u2022]|(?:^|\s)-)[\s\"'(*_]*\Z")
_START_CHARACTERS = 9
_HOW_MANY = re.compile(r"\bhow many\b", re.IGNORECASE)
_ONLY_ONE = frozenset({"one", "single"})
_Found = TypeVar("_Found", Date, Quantity)


def normalize(text: str) -> str:
    """Normalize letters, dashes, quotation marks, spaces and fractions, and remove the full stops of abbreviations."""
    text = _MINUS.sub("-", text)
    text = _PART.sub(lambda found: " ".join(filter(None, found.groups())), text)
    text = plain(_POWER_OF_UNIT.sub(lambda found: _SQUARE[found[0]], text))
    return _DOTTED.sub(lambda found: found[0].replace(".", "").ljust(len(found[0])), text)


def find_codes(text: str) -> list[re.Match[str]]:
    """Return the words of a text that contain digits, except numbers with a unit."""
    return [code for code in _CODE.finditer(text) if code["numbered"] or not _is_number(code[0])]


def _is_number(code: str) -> bool:
    if unit_of(code):  # m2
        return True
    if _VERSION.fullmatch(code) and not _GROUPS.fullmatch(code):
        return False
    if _NOT_A_CODE.fullmatch(code):
        return True
    match = _NUMBER_AND_UNIT.fullmatch(code)
    return bool(match and (match[1] is None or scaled_unit_of(match[1])))


class Source:
    """A text in which facts are looked up."""

    def __init__(self, text: str) -> None:
        text = self._text = normalize(text)
        self._stems = frozenset(map(stem, WORD.findall(text)))
        self._months = {month[:3].lower() for month in _MONTH.findall(text)}
        self._folded = fold(text)
        self._dates = find_dates(text)
        codes = find_codes(text)
        self._codes = fold(" ".join(code[0] for code in codes))
        rows = list(ROW.finditer(text))  # whose numbers are no amounts
        dated = [(date.start, date.end) for date in self._dates]
        rest = blank(text, [*dated, *(code.span() for code in codes), *((row.start(), row.end() - 1) for row in rows)])
        numbers = find_numbers(rest)
        self._times = find_times(text)
        self._numbers = dict[Decimal, list[Quantity]]()
        for number in numbers:
            for value in number.values:
                self._numbers.setdefault(value, []).append(number)
        self._scales = _free_units(blank(rest, ((number.start, number.end) for number in numbers)))
        money = {number.unit for number in numbers if number.unit in CURRENCIES} | {*self._scales} & CURRENCIES
        if len(money) == 1:  # "income was 14.3 million kroner, a surplus of 2.2 million"
            (unit,) = money
            self._scales.setdefault(unit, frozenset({1}))
        self._dated = {Decimal(row["row"]) for row in rows}
        self._dated |= {Decimal(part) for date in self._dates for part in (date.year, date.day) if part is not None}
        runs = (run.split() for run in _RUN.findall(text))
        self._initials = [fold("".join(word[0] for word in run if word[0].isupper())) for run in runs]

    def has_number(self, wanted: Quantity) -> bool:
        """Return whether a number occurs with its sign and unit.

        A number without a unit also does if its unit stands apart, as in the header of a table, and a number whose unit
        is not wanted does with any, except a percentage.
        """
        is_whole = "." not in wanted.text and "," not in wanted.text  # as numbers of rows, days and years are written
        if wanted.unit is None and ((is_whole and self._dated & wanted.values) or _has_code(self._codes, wanted.text)):
            return True
        scales = self._scales.get(wanted.unit, frozenset())
        return any(
            _agrees(wanted, number, is_free=scale in scales)
            for scale in {1, *scales}
            for value in wanted.values
            for number in self._numbers.get(value / scale, ())
            if scale == 1 or number.unit is None or number.borrowed
        )

    def has_time(self, wanted: Quantity) -> bool:
        """Return whether a time of day occurs."""
        return any(wanted.values & time.values for time in self._times)

    def has_date(self, wanted: Date) -> bool:
        """Return whether a date occurs; the year, or the day of a range, may be apart from the month."""
        if wanted.year is not None and wanted.year not in self._dated and Decimal(wanted.year) not in self._numbers:
            return False
        for date in self._dates:
            same = date.month == wanted.month and (not wanted.year or date.year in (None, wanted.year))
            if same and (wanted.day in (None, date.day) or wanted.day in self._days_near(date)):
                return True
        return wanted.day is None and MONTHS[wanted.month - 1] in self._months

    def _days_near(self, date: Date) -> set[int]:
        before = _DAYS_BEFORE.search(self._text, max(date.start - _NEAR, 0), date.start)
        after = _DAYS_AFTER.match(self._text, date.end, date.end + _NEAR)
        return {int(day) for found in (before, after) if found for day in re.findall(r"\d+", found[0])}

    def has_code(self, code: str) -> bool:
        """Return whether a code occurs, however its parts are joined."""
        return _has_code(self._folded, code)

    def has_name(self, name: str) -> bool:
        """Return whether a name occurs in any of its forms, or spelled out if it is an acronym."""
        pieces = WORD.findall(name)
        if all(stem(piece) in self._stems for piece in pieces) or self.has_code(name):
            return True
        return name.isupper() and any(fold(name) in initials for initials in self._initials)


def _has_code(folded: str, code: str) -> bool:
    """Return whether a folded text has a code; a point between digits must be there, other marks may be others."""
    pieces = list(_PIECE.finditer(folded_code := fold(code[:_LONGEST_CODE])))
    if not pieces:
        return False
    is_telephone = sum(map(str.isdigit, folded_code)) >= _TELEPHONE
    pattern = pieces[0][0]
    for before, piece in pairwise(pieces):
        between = folded_code[before.end() : piece.start()]
        joined = before[0].isdigit() and piece[0].isdigit()
        fewest = 1 if joined and not is_telephone else 0
        pattern += (r"\." if joined and between == "." else rf"[\W_]{{{fewest},2}}") + piece[0]
    return re.search(rf"(?<![^\W_]){pattern}(?![^\W_])", folded) is not None


def _agrees(wanted: Quantity, number: Quantity, *, is_free: bool) -> bool:
    """Return whether a number of the source supports one of the same value, by their units."""
    if wanted.unit == number.unit:
        return True
    if wanted.unit is None:
        return number.unit not in SHARES or number.borrowed
    if number.unit is None:
        return wanted.borrowed or (is_free and number.counts)
    return number.borrowed and (is_free or wanted.borrowed)


def _free_units(rest: str) -> dict[str | None, frozenset[int]]:
    """Return the units that stand apart from the numbers of a text, with what numbers under them are multiplied by.

    "(kEUR)", "in thousands of euro" and "EUR million" multiply. None stands for numbers without a unit.
    """
    found, words = dict[str | None, set[int]](), list(_FREE.finditer(rest))
    scales = [scale_of(word["word"]) for word in words]
    for index, word in enumerate(words):
        is_short = len(word["word"]) == 1 and word["word"].isalpha() and not word["bracket"]
        unit = None if is_short else scaled_unit_of(word["word"])
        if unit and not _EACH.search(rest, max(0, word.start() - _EACH_CHARACTERS), word.start()):
            near = {scale for scale in scales[max(index - 2, 0) : index + 2] if scale > 1}
            found.setdefault(unit[0], set()).update({unit[1], *near})
    found[None] = {*scales, *(scale for every in found.values() for scale in every)}
    return {unit: frozenset(every) for unit, every in found.items()}


@dataclass(frozen=True, slots=True)
class Fact:
    """A checkable fact of a sentence: a date, code, time, number or name."""

    text: str
    start: int
    occurs_in: Callable[[Source], bool]


def missing_facts(question: str, sentence: str, sources: Sequence[Source]) -> list[Fact]:
    """Return the facts of a sentence that occur neither in the question nor in a source."""
    given, plain = [Source(question), *sources], normalize(_URL.sub(" ", sentence))
    found = find_facts(LIST_NUMBER.sub("", plain, count=1), counted=bool(_HOW_MANY.search(question)))
    return [fact for fact in found if not any(map(fact.occurs_in, given))]


def find_facts(text: str, *, counted: bool = False) -> list[Fact]:
    """Return the dates, codes, times, numbers and names of a plain text, in their order in the text.

    If something was `counted`, "one" says how many.
    """
    facts, rest = list[Fact](), text

    def take(found: Mapping[tuple[int, int], Callable[[Source], bool]]) -> None:
        nonlocal rest
        facts.extend(Fact(text[start:end].strip(), start, occurs_in) for (start, end), occurs_in in found.items())
        rest = blank(rest, found)

    take({span: partial(_has_any, Source.has_date, dates) for span, dates in _by_span(find_dates(text)).items()})
    take({code.span(): methodcaller("has_code", code[0]) for code in find_codes(rest)})
    take({(time.start, time.end): methodcaller("has_time", time) for time in find_times(rest)})
    numbers = (
        number for number in find_numbers(rest) if number.counts or (counted and number.text.lower() in _ONLY_ONE)
    )
    take({span: partial(_has_any, Source.has_number, readings) for span, readings in _by_span(numbers).items()})
    take({name.span(): methodcaller("has_name", name[0].removesuffix("'s")) for name in find_names(rest)})
    return sorted(facts, key=lambda fact: fact.start)


def find_names(text: str) -> Iterator[re.Match[str]]:
    """Yield the capitalised words; a single one in ordinary spelling at the start of a sentence may be any word."""
    words = [word for word in _NAME.finditer(text) if len(word[0]) > 1]
    for word, following in zip_longest(words, words[1:]):
        if word[0] != word[0].lower():
            start = word.start()
            begins = _START.search(text, max(start - _START_CHARACTERS, 0), start)
            name = following and following[0][0].isupper() and following.start() == word.end() + 1
            name = name and keyword_tokens(word[0])  # not "In Norway"
            if not begins or name or not word[0][1:].islower():
                yield word


def _by_span(found: Iterable[_Found]) -> dict[tuple[int, int], list[_Found]]:
    """Return the readings of each place of a text."""
    places = dict[int, list[_Found]]()
    for one in found:
        places.setdefault(one.start, []).append(one)
    return {(start, max(one.end for one in readings)): readings for start, readings in places.items()}


def _has_any(has: Callable[[Source, _Found], bool], readings: Sequence[_Found], source: Source) -> bool:
    return any(has(source, one) for one in readings)
