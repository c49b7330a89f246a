"""Find the times that a question names: days, weeks, months, quarters, half years and years."""

import calendar
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
    """A time in a question: from its first day to the day after its last, either open; or a month or day of any year.

    `start` and `end` are its place in the question. `months` are those of any year, if no year is given, `day` that of
    the only month.
    """

    start: int
    end: int
    words: str
    first: date | None = None
    after: date | None = None
    months: tuple[int, ...] = ()
    year: int | None = None
    quarter: int | None = None
    day: int | None = None

    @property
    def months_of_year(self) -> tuple[int, ...]:
        """Return the months of one year that it is, whole ones."""
        if self.first is None or self.after is None or self.first.day > 1 or self.after.day > 1:
            return ()
        last = (self.after - timedelta(1)).month
        return tuple(range(self.first.month, last + 1)) if self.after.year - self.first.year <= 1 else ()

    @property
    def only_day(self) -> date | None:
        """Return the day that it is, None for a longer time and for a day of any year."""
        return self.first if self.first and self.after == self.first + timedelta(1) else None

    @property
    def is_year(self) -> bool:
        """Return whether it is one whole year."""
        return self.year is not None and self.first == date(self.year, 1, 1) and self.after == date(self.year + 1, 1, 1)


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
        found = _span(match.groupdict())
    except ValueError:  # such as 31 February
        return None
    if found is None:
        return None
    first, after, months, year, quarter, day = found
    if match["week"] and first and after == first + timedelta(1):
        after = first + timedelta(7)
    return Period(*match.span(), match[0], first, after, months, year, quarter, day)


_Span = tuple[date | None, date | None, tuple[int, ...], int | None, int | None, int | None]


def _span(part: dict[str, str | None]) -> _Span | None:  # noqa: PLR0911  a table, in fact
    """Return the first day, the day after the last, months of any year, the year, the quarter, the day of any year."""
    if part["iso"]:
        return _day(date.fromisoformat(part["iso"]))
    if part["isomonth"]:
        written, _, month_written = part["isomonth"].partition("-")
        return _months(written, int(month_written), int(month_written))
    if part["dotted"]:
        day, month, year = map(int, re.split(r"[./]", part["dotted"]))
        return _day(date(year, month, day) if month <= len(MONTHS) else date(year, day, month))
    if name := part["daymonth"] or part["monthday"]:
        day, given = int(part["day"] or part["dayafter"] or 0), part["dayyear"] or part["dayafteryear"]
        if given:
            return _day(date(int(given), month_number(name), day))
        in_leap_year = date(2024, month_number(name), day)
        return None, None, (in_leap_year.month,), None, None, in_leap_year.day
    if part["month"]:
        month = month_number(part["month"])
        return _months(part["monthyear"], month, month)
    if number := part["quarter"] or part["quarterafter"] or part["nth"]:
        quarter, given = _NTH[number.lower()], part["quarteryear"] or part["yearfirst"] or part["nthyear"]
        whole = _months(given, 3 * quarter - 2, 3 * quarter)
        return (*whole[:3], int(given) if given else None, quarter, None)
    if number := part["half"] or part["halfnumber"]:
        first = 6 * _NTH[number.lower()] - 5
        return _months(part["halfyear"], first, first + 5)
    year = int(part["year"] or 0)
    return date(year, 1, 1), date(year + 1, 1, 1), (), year, None, None


def _day(day: date) -> _Span:
    return day, day + timedelta(1), (), None, None, None


def _months(given: str | None, first: int, last: int) -> _Span:
    """Return months of a year, or of any year."""
    if given is None:
        return None, None, tuple(range(first, last + 1)), None, None, None
    year = int(given)
    end = date(year, last, calendar.monthrange(year, last)[1])
    return date(year, first, 1), end + timedelta(1), (), None, None, None
