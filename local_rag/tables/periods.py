"""Find the times that a question names: days, months, quarters, half years and years, and what bounds them."""

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta

from local_rag.text.dates import ENGLISH_MONTH, MONTHS, month_number

_MONTH = rf"(?:{ENGLISH_MONTH})\b\.?"
_YEAR = r"(?:19|20)\d\d"
_NTH = {"1": 1, "first": 1, "1st": 1, "2": 2, "second": 2, "2nd": 2, "3": 3, "third": 3, "3rd": 3, "4": 4, "fourth": 4}
_NTH |= {"4th": 4, "last": 4}
_POINT = re.compile(
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
_BEFORE = re.compile(
    r"(?:\b(?:(?:in|for|during) )?(?:the )?week (?:from|of|starting|beginning|commencing)(?: on)?(?: the)?"
    r"|\b(?P<range>between|from)|\b(?P<since>since|starting(?: in| from)?|from|as of|on or after)"
    r"|\b(?P<after>after|later than|following)|\b(?P<before>before|earlier than|prior to)"
    r"|\b(?P<until>(?:until|till|up to|through|by) the end of|by end of|until|till|up to|through|on or before"
    r"|no later than)"
    r"|\b(?:in|on|during|for|of|within|throughout)(?: (?:the )?(?:month|year|calendar year)(?: of)?)?"
    r"(?: the)?) \Z",
    re.IGNORECASE,
)
_AND = re.compile(r" (?:and|to|until|till|through) (?:the )?| ?[-\u2013] ?", re.IGNORECASE)
_LOOK_BACK = 40  # characters
_ONWARD = re.compile(r" (?:onwards?|and later|or later)\b", re.IGNORECASE)


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
    def only_day(self) -> date | None:
        """Return the day that it is, None for a longer time and for a day of any year."""
        return self.first if self.first and self.after == self.first + timedelta(1) else None

    @property
    def is_year(self) -> bool:
        """Return whether it is one whole year."""
        return self.year is not None and self.first == date(self.year, 1, 1) and self.after == date(self.year + 1, 1, 1)


def find_periods(question: str, *, apart: bool = False) -> list[Period]:
    """Return the times of a question in their order; two with "between" or "to" become one, unless they are `apart`."""
    points = [point for match in _POINT.finditer(question) if (point := _point(match, question))]
    points = [point for point in points if question[point.start : point.end] not in {"may", "march"}]  # verbs
    found, at = list[Period](), 0
    while at < len(points):
        point = points[at]
        head = _BEFORE.search(question, max(0, point.start - _LOOK_BACK), point.start)
        start = head.start() if head else point.start
        if apart:
            found += _bounded(point, None, point.start, question)
            at += 1
            continue
        if at + 1 < len(points) and (joined := _joined(point, points[at + 1], question, head)):
            found.append(joined)
            at += 2
            continue
        found += _bounded(point, head, start, question)
        at += 1
    return found


def _joined(one: Period, other: Period, question: str, head: re.Match[str] | None) -> Period | None:
    between = question[one.end : other.start]
    joint = _AND.fullmatch(between)
    is_range = joint is not None and ((head and head["range"]) or not re.search(r"\band\b", between, re.IGNORECASE))
    if not is_range:
        return None
    words = f"from {question[one.start : one.end]} to {question[other.start : other.end]}"
    whole = Period(head.start() if head else one.start, other.end, words)
    first = one.first
    if first is None and other.first is not None and one.months:  # from January to March 2024
        year = other.first.year - (one.months[0] > other.first.month)
        first = date(year, one.months[0], 1)
    if first is not None and other.after is not None:
        return replace(whole, first=first, after=other.after)
    if one.months and other.months:
        return replace(whole, months=tuple(range(one.months[0], other.months[-1] + 1)))
    return None


def _bounded(point: Period, head: re.Match[str] | None, start: int, question: str) -> Iterator[Period]:
    """Yield a time with what bounds it; none of a bounded one without a year, since nothing tells where it begins."""
    words = question[point.start : point.end]
    onward = _ONWARD.match(question, point.end)
    bound = (head.lastgroup if head else None) or ("since" if onward else "")
    bounded = replace(point, start=start, end=onward.end() if onward else point.end)
    is_day = bool(point.day or point.only_day)
    if onward or bound == "since":
        if point.first:
            yield replace(bounded, words=f"from {words} on", after=None, year=None, quarter=None)
    elif bound in {"", "range"}:
        yield replace(bounded, words=f"{'on' if is_day and not bound else 'in'} {words}")
    elif point.first and bound == "after":
        yield replace(bounded, words=f"after {words}", first=point.after, after=None, year=None, quarter=None)
    elif point.first:
        after = point.first if bound == "before" else point.after
        yield replace(bounded, words=f"{bound} {words}", first=None, after=after, year=None, quarter=None)


def _point(match: re.Match[str], question: str) -> Period | None:
    try:
        found = _span(match.groupdict())
    except ValueError:  # such as 31 February
        return None
    if found is None:
        return None
    first, after, months, year, quarter, day = found
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
