"""Find the times that a question names: days, weeks, months, quarters, half years and years."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise

from local_rag.text.dates import MONTH_NAME, MONTHS, month_number

_MONTH = rf"(?:{MONTH_NAME})\b\.?"
_YEAR = r"(?:19|20)\d\d"
_DAY_END = r"(?:st|nd|rd|th|er|\.)?"
_DAY = re.compile(rf"\d{{1,2}}{_DAY_END}")
_OF_WEEK = r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day,? (?:the )?"
_WEEKDAY = re.compile(_OF_WEEK, re.IGNORECASE)
_DAY_FIRST = re.compile(rf"(?:{_OF_WEEK})?\d{{1,2}}(?!\d)", re.IGNORECASE)
_LETTER = re.compile(r"[^\W\d_]")
_CENTURY = 2000
_NTH = {"1": 1, "first": 1, "1st": 1, "2": 2, "second": 2, "2nd": 2, "3": 3, "third": 3, "3rd": 3, "4": 4, "fourth": 4}
_NTH |= {"4th": 4, "last": 4}
_POINT = re.compile(
    r"(?P<week>\bweek of )?"
    rf"(?:{_OF_WEEK})?(?:"
    rf"(?P<iso>\b{_YEAR}-\d\d-\d\d\b)|(?P<isomonth>\b{_YEAR}-(?:0\d|1[0-2])\b(?!-))"
    rf"|(?P<dotted>\b\d{{1,2}}[./]\d{{1,2}}[./](?:{_YEAR}|\d\d)\b(?![./]\d))"
    r"|(?<![\w./])(?P<anyyear>\d{1,2}\.\d{1,2}\.)(?=[\s?])"
    rf"|\b(?P<day>\d{{1,2}}){_DAY_END}(?: of| de)? (?P<daymonth>{_MONTH})(?:,?(?: of| de)? (?P<dayyear>{_YEAR}))?"
    rf"|\b(?P<monthday>{_MONTH}) (?P<dayafter>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<dayafteryear>{_YEAR}))?"
    rf")|\b(?P<month>{_MONTH})(?:,? (?:of |de )?(?P<monthyear>{_YEAR}))?"
    rf"|\bq(?P<quarter>[1-4])\b(?: ?(?:of |/|-)? ?(?P<quarteryear>{_YEAR}))?"
    rf"|\b(?P<yearfirst>{_YEAR})[ -]?q(?P<quarterafter>[1-4])\b"
    rf"|\b(?P<nth>first|second|third|fourth|last|1st|2nd|3rd|4th) quarter(?: (?:of |in )?(?P<nthyear>{_YEAR}))?"
    rf"|\b(?:(?P<half>first|second|1st|2nd) half|h(?P<halfnumber>[12])\b)(?: (?:of )?(?P<halfyear>{_YEAR}))?"
    rf"|(?<![\w-])(?P<year>{_YEAR})(?![\w-])",
    re.IGNORECASE,
)
# What joins two times, in the languages whose months are known.
_WORDS_BETWEEN = r"(?:and|or|to|till|until|through|und|oder|bis|et|ou|au|y|o|a|al)\s(?:(?:the|zum|den|le|el)\s)?"
_JOINED = rf"(?:\s?[-\u2013\u2014]\s?|\s{_WORDS_BETWEEN})"
_BETWEEN = re.compile(_JOINED, re.IGNORECASE)
_DAY_BEFORE = re.compile(rf"(?<![\w.,/:-])(?P<day>\d{{1,2}}){_DAY_END}{_JOINED}$", re.IGNORECASE)
_DAY_LISTED = re.compile(rf"(?<![\w.,/:-])(?P<day>\d{{1,2}}){_DAY_END}, ?$", re.IGNORECASE)
_DAY_AFTER = re.compile(
    rf"{_JOINED}(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<year>{_YEAR}))?(?=\s*(?:[?!,;)]|\.?$))", re.IGNORECASE
)
_LONGEST_DAY = 24  # characters of a day and of what joins it to the next one


@dataclass(frozen=True, slots=True)
class Period:
    """A time in a question: from its first day to the day after its last; or months or a day of any year.

    `start` and `end` are its place in the question. `months` are those of any year, if no year is given, `day` that of
    the only month.
    """

    start: int
    end: int
    words: str
    first: date | None = None
    after: date | None = None
    months: tuple[int, ...] = ()
    day: int | None = None

    @property
    def is_day(self) -> bool:
        """Return whether it is one day, of a year or of any."""
        return self.day is not None or (self.first is not None and self.after == self.first + timedelta(1))

    @property
    def months_of_year(self) -> tuple[int, ...]:
        """Return the months of one year that it is, whole ones."""
        if self.first is None or self.after is None or self.first.day > 1 or self.after.day > 1:
            return ()
        last = (self.after - timedelta(1)).month
        return tuple(range(self.first.month, last + 1)) if self.after.year - self.first.year <= 1 else ()

    @property
    def year(self) -> int | None:
        """Return the year that it is, a whole one."""
        return self.first.year if self.first and len(self.months_of_year) == len(MONTHS) else None


def find_periods(question: str) -> list[Period]:
    """Return the times that a question names, in their order."""
    points = list[Period]()
    for match in _POINT.finditer(question):
        point = _point(match)
        end = points[-1].end if points else 0
        if point is None or point.start < end or match[0] in {"may", "march"}:  # the year of a day; verbs
            continue
        points += [*_days_before(question, point, end), point, *_day_after(question, point)]
    return [_with_year(question, one, other) for one, other in pairwise(points)] + points[-1:]


def _days_before(question: str, point: Period, after: int) -> Iterator[Period]:
    """Yield the days that share the month of the next one: 3 and 4 in "3, 4 and 5 May"."""
    found, start, pattern = list[re.Match[str]](), point.start, _DAY_BEFORE
    while point.is_day and (match := pattern.search(question, max(after, start - _LONGEST_DAY), start)):
        found, start, pattern = [match, *found], match.start("day"), _DAY_LISTED
    if _DAY_FIRST.match(point.words):
        for match in found:
            yield from _of_its_month(point, match, point.first.year if point.first else None)


def _day_after(question: str, point: Period) -> Iterator[Period]:
    """Yield the day that shares the month of the one before it: 17 in "Oct 13 to 17"."""
    match = _DAY_AFTER.match(question, point.end)
    known = point.first.year if point.first else None
    if match and point.is_day and not point.words[0].isdigit():
        yield from _of_its_month(point, match, int(match["year"]) if match["year"] else known)


def _of_its_month(point: Period, match: re.Match[str], year: int | None) -> Iterator[Period]:
    month = point.first.month if point.first else point.months[0]
    with suppress(ValueError):  # such as 31 February
        span = _day(date(year, month, int(match["day"]))) if year else _day_of_any_year(month, int(match["day"]))
        words = _DAY.sub(match["day"], _WEEKDAY.sub("", point.words, count=1), count=1)
        yield Period(match.start("day"), match.end(), words, *span)


def _with_year(question: str, one: Period, other: Period) -> Period:
    """Return a time without a year with that of the next one, if they are joined: "1 Feb to 30 April 2025"."""
    if one.first or other.first is None or not _BETWEEN.fullmatch(question, one.end, other.start):
        return one
    year = other.first.year
    with suppress(ValueError):  # such as 29 February 2025
        first, after, *_ = (
            _day(date(year, one.months[0], one.day)) if one.day else _months(str(year), one.months[0], one.months[-1])
        )
        if first and first < other.first:
            return replace(one, words=f"{one.words} {year}", first=first, after=after, months=(), day=None)
    return one


def month_of(text: str) -> int | None:
    """Return the month that a text names, such as the name of a sheet; None if it names none or more.

    Of numbers alone, a name says the number of a section: 3.2. Budget.
    """
    named = [one for one in find_periods(text.replace("_", " ")) if not one.months or _LETTER.search(one.words)]
    found = {month for one in named for month in one.months or one.months_of_year}
    return found.pop() if len(found) == 1 else None


def _point(match: re.Match[str]) -> Period | None:
    try:
        first, after, months, day = _span(match)
    except ValueError:  # such as 31 February
        return None
    if match["week"] and first and after == first + timedelta(1):
        after = first + timedelta(7)
    return Period(*match.span(), match[0], first, after, months, day)


_Span = tuple[date | None, date | None, tuple[int, ...], int | None]


def _span(part: re.Match[str]) -> _Span:  # noqa: PLR0911  a table, in fact
    """Return the first day, the day after the last, months of any year, and the day of any year."""
    if part["iso"]:
        return _day(date.fromisoformat(part["iso"]))
    if part["isomonth"]:
        written, _, month_written = part["isomonth"].partition("-")
        return _months(written, int(month_written), int(month_written))
    if part["dotted"]:
        day, month, year = map(int, re.split(r"[./]", part["dotted"]))
        year += _CENTURY if year < _CENTURY else 0
        return _day(date(year, month, day) if month <= len(MONTHS) else date(year, day, month))
    if part["anyyear"]:
        day_written, month_written = part["anyyear"][:-1].split(".")
        return _day_of_any_year(int(month_written), int(day_written))
    if name := part["daymonth"] or part["monthday"]:
        day, given = int(part["day"] or part["dayafter"]), part["dayyear"] or part["dayafteryear"]
        month = month_number(name)
        return _day(date(int(given), month, day)) if given else _day_of_any_year(month, day)
    if part["month"]:
        month = month_number(part["month"])
        return _months(part["monthyear"], month, month)
    if number := part["quarter"] or part["quarterafter"] or part["nth"]:
        quarter, given = _NTH[number.casefold()], part["quarteryear"] or part["yearfirst"] or part["nthyear"]
        return _months(given, 3 * quarter - 2, 3 * quarter)
    if number := part["half"] or part["halfnumber"]:
        first = 6 * _NTH[number.casefold()] - 5
        return _months(part["halfyear"], first, first + 5)
    return _months(part["year"], 1, len(MONTHS))


def _day(day: date) -> _Span:
    return day, day + timedelta(1), (), None


def _day_of_any_year(month: int, day: int) -> _Span:
    date(2024, month, day)  # a leap year; raises ValueError for a day that no year has
    return None, None, (month,), day


def _months(given: str | None, first: int, last: int) -> _Span:
    """Return months of a year, or of any year."""
    if given is None:
        return None, None, tuple(range(first, last + 1)), None
    year, years = int(given), last // len(MONTHS)
    return date(year, first, 1), date(year + years, last % len(MONTHS) + 1, 1), (), None
