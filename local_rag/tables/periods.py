"""Find the times that a question names: days, weeks, months, quarters, half years and years."""

import re
from dataclasses import dataclass
from datetime import date, timedelta

from local_rag.text.dates import MONTH_NAME, MONTHS, month_number

_MONTH = rf"(?:{MONTH_NAME})\b\.?"
_YEAR = r"(?:19|20)\d\d"
_NTH = {"1": 1, "first": 1, "1st": 1, "2": 2, "second": 2, "2nd": 2, "3": 3, "third": 3, "3rd": 3, "4": 4, "fourth": 4}
_NTH |= {"4th": 4, "last": 4}
_POINT = re.compile(
    r"(?P<week>\bweek of )?"
    r"(?:\b(?:mon|tues|wednes|thurs|fri|satur|sun)day,? (?:the )?)?(?:"
    rf"(?P<iso>\b{_YEAR}-\d\d-\d\d\b)|(?P<isomonth>\b{_YEAR}-(?:0\d|1[0-2])\b(?!-))"
    rf"|(?P<dotted>\b\d{{1,2}}[./]\d{{1,2}}[./]{_YEAR}\b)"
    rf"|\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<daymonth>{_MONTH})(?:,? (?P<dayyear>{_YEAR}))?"
    rf"|\b(?P<monthday>{_MONTH}) (?P<dayafter>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<dayafteryear>{_YEAR}))?"
    rf")|\b(?P<month>{_MONTH})(?:,? (?:of )?(?P<monthyear>{_YEAR}))?"
    rf"|\bq(?P<quarter>[1-4])\b(?: ?(?:of |/|-)? ?(?P<quarteryear>{_YEAR}))?"
    rf"|\b(?P<yearfirst>{_YEAR})[ -]?q(?P<quarterafter>[1-4])\b"
    rf"|\b(?P<nth>first|second|third|fourth|last|1st|2nd|3rd|4th) quarter(?: (?:of |in )?(?P<nthyear>{_YEAR}))?"
    rf"|\b(?:(?P<half>first|second|1st|2nd) half|h(?P<halfnumber>[12])\b)(?: (?:of )?(?P<halfyear>{_YEAR}))?"
    rf"|(?<![\w-])(?P<year>{_YEAR})(?![\w-])",
    re.IGNORECASE,
)


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
    points = [point for match in _POINT.finditer(question) if (point := _point(match))]
    return [point for point in points if question[point.start : point.end] not in {"may", "march"}]  # verbs


def month_of(text: str) -> int | None:
    """Return the month that a text names, such as the name of a sheet; None if it names none or more."""
    found = {month for one in find_periods(text.replace("_", " ")) for month in one.months or one.months_of_year}
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
        return _day(date(year, month, day) if month <= len(MONTHS) else date(year, day, month))
    if name := part["daymonth"] or part["monthday"]:
        day, given = int(part["day"] or part["dayafter"]), part["dayyear"] or part["dayafteryear"]
        if given:
            return _day(date(int(given), month_number(name), day))
        in_leap_year = date(2024, month_number(name), day)
        return None, None, (in_leap_year.month,), in_leap_year.day
    if part["month"]:
        month = month_number(part["month"])
        return _months(part["monthyear"], month, month)
    if number := part["quarter"] or part["quarterafter"] or part["nth"]:
        quarter, given = _NTH[number.lower()], part["quarteryear"] or part["yearfirst"] or part["nthyear"]
        return _months(given, 3 * quarter - 2, 3 * quarter)
    if number := part["half"] or part["halfnumber"]:
        first = 6 * _NTH[number.lower()] - 5
        return _months(part["halfyear"], first, first + 5)
    return _months(part["year"], 1, len(MONTHS))


def _day(day: date) -> _Span:
    return day, day + timedelta(1), (), None


def _months(given: str | None, first: int, last: int) -> _Span:
    """Return months of a year, or of any year."""
    if given is None:
        return None, None, tuple(range(first, last + 1)), None
    year, years = int(given), last // len(MONTHS)
    return date(year, first, 1), date(year + years, last % len(MONTHS) + 1, 1), (), None
