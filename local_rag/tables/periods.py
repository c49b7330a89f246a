"""Find the times that a question names: days, months, quarters, half years and years, and what bounds them."""

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from local_rag.text.dates import MONTHS

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_YEAR = r"(?:19|20)\d\d"
_NTH = {"1": 1, "first": 1, "1st": 1, "2": 2, "second": 2, "2nd": 2, "3": 3, "third": 3, "3rd": 3, "4": 4, "fourth": 4}
_NTH |= {"4th": 4, "last": 4}
_POINT = re.compile(
    rf"(?P<iso>\b{_YEAR}-\d\d-\d\d\b)|(?P<isomonth>\b{_YEAR}-(?:0\d|1[0-2])\b(?!-))"
    rf"|(?P<dotted>\b\d{{1,2}}[./]\d{{1,2}}[./]{_YEAR}\b)"
    rf"|\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<daymonth>{_MONTH})(?:,? (?P<dayyear>{_YEAR}))?"
    rf"|\b(?P<monthday>{_MONTH}) (?P<dayafter>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<dayafteryear>{_YEAR}))?"
    rf"|\b(?P<month>{_MONTH})(?:,? (?:of )?(?P<monthyear>{_YEAR}))?"
    rf"|\bq(?P<quarter>[1-4])\b(?: ?(?:of |/|-)? ?(?P<quarteryear>{_YEAR}))?"
    rf"|\b(?P<yearfirst>{_YEAR})[ -]?q(?P<quarterafter>[1-4])\b"
    rf"|\b(?P<nth>first|second|third|fourth|last|1st|2nd|3rd|4th) quarter(?: (?:of |in )?(?P<nthyear>{_YEAR}))?"
    rf"|\b(?:(?P<half>first|second|1st|2nd) half|h(?P<halfnumber>[12])\b)(?: (?:of )?(?P<halfyear>{_YEAR}))?"
    rf"|(?<![\w-])(?P<year>{_YEAR})(?![\w-])",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"(?:\b(?P<range>between|from)|\b(?P<since>since|starting(?: in| from)?|from|as of|on or after)"
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
    """A time in a question: from its first day to the day after its last, either open; or a month of any year.

    `start` and `end` are its place in the question. `months` are those of any year, if no year is given.
    """

    start: int
    end: int
    words: str
    first: date | None = None
    after: date | None = None
    months: tuple[int, ...] = ()
    year: int | None = None
    quarter: int | None = None

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
            found.append(_bounded(point, None, point.start, question))
            at += 1
            continue
        if at + 1 < len(points) and (joined := _joined(point, points[at + 1], question, head)):
            found.append(joined)
            at += 2
            continue
        found.append(_bounded(point, head, start, question))
        at += 1
    return found


def _joined(one: Period, other: Period, question: str, head: re.Match[str] | None) -> Period | None:
    between = question[one.end : other.start]
    joint = _AND.fullmatch(between)
    is_range = joint is not None and ((head and head["range"]) or not re.search(r"\band\b", between, re.IGNORECASE))
    if not is_range:
        return None
    if one.first is None and other.first is not None and one.months:  # from January to March 2024
        first = date(_year_before(one, other), one.months[0], 1)
        one = Period(one.start, one.end, one.words, first, first, year=first.year)
    if one.first is None or other.after is None:
        if one.months and other.months:
            months = tuple(range(one.months[0], other.months[-1] + 1))
            return _period(one, other, question, head, None, None, months)
        return None
    return _period(one, other, question, head, one.first, other.after, ())


def _year_before(one: Period, other: Period) -> int:
    assert other.first is not None
    return other.first.year if one.months[0] <= other.first.month else other.first.year - 1


def _period(
    one: Period,
    other: Period,
    question: str,
    head: re.Match[str] | None,
    first: date | None,
    after: date | None,
    months: tuple[int, ...],
) -> Period:
    start = head.start() if head else one.start
    return Period(
        start,
        other.end,
        f"from {question[one.start : one.end]} to {question[other.start : other.end]}",
        first,
        after,
        months,
    )


def _bounded(point: Period, head: re.Match[str] | None, start: int, question: str) -> Period:  # noqa: PLR0911
    words = question[point.start : point.end]
    onward = _ONWARD.match(question, point.end)
    end = onward.end() if onward else point.end
    if point.first is None:
        return Period(start, end, f"in {words}", months=point.months, quarter=point.quarter)
    if head and head["after"]:
        return Period(start, end, f"after {words}", point.after, None)
    if onward or (head and head["since"]):
        return Period(start, end, f"from {words} on", point.first, None)
    if head and head["before"]:
        return Period(start, end, f"before {words}", None, point.first)
    if head and head["until"]:
        return Period(start, end, f"until {words}", None, point.after)
    if head and head["range"] and head["range"].lower() == "from":
        return Period(start, end, f"in {words}", point.first, point.after, year=point.year, quarter=point.quarter)
    on = "on" if point.after and point.first and point.after - point.first == timedelta(1) else "in"
    return Period(start, end, f"{on} {words}", point.first, point.after, (), point.year, point.quarter)


def _point(match: re.Match[str], question: str) -> Period | None:
    part = match.groupdict()
    start, end = match.span()
    try:
        for first, after, months, year, quarter in _spans(part):
            return Period(start, end, question[start:end], first, after, months, year, quarter)
    except ValueError:
        return None
    return None


_Span = tuple[date | None, date | None, tuple[int, ...], int | None, int | None]


def _spans(part: dict[str, str | None]) -> Iterator[_Span]:
    if part["iso"]:
        yield _day(date.fromisoformat(part["iso"]))
    elif part["isomonth"]:
        year, month = map(int, part["isomonth"].split("-"))
        yield _months(year, month, month)
    elif part["dotted"]:
        day, month, year = map(int, re.split(r"[./]", part["dotted"]))
        yield _day(date(year, month, day) if month <= len(MONTHS) else date(year, day, month))
    elif part["daymonth"] or part["monthday"]:
        month = _month(part["daymonth"] or part["monthday"] or "")
        day, given = int(part["day"] or part["dayafter"] or 0), part["dayyear"] or part["dayafteryear"]
        if given:
            yield _day(date(int(given), month, day))
    elif part["month"]:
        month = _month(part["month"])
        yield _months(int(part["monthyear"]), month, month) if part["monthyear"] else (None, None, (month,), None, None)
    elif number := part["quarter"] or part["quarterafter"] or part["nth"]:
        quarter, given = _NTH[number.lower()], part["quarteryear"] or part["yearfirst"] or part["nthyear"]
        first = 3 * quarter - 2
        whole = (
            _months(int(given), first, first + 2) if given else (None, None, (first, first + 1, first + 2), None, None)
        )
        yield (*whole[:3], int(given) if given else None, quarter)
    elif number := part["half"] or part["halfnumber"]:
        first, given = 6 * _NTH[number.lower()] - 5, part["halfyear"]
        yield (
            _months(int(given), first, first + 5) if given else (None, None, tuple(range(first, first + 6)), None, None)
        )
    elif part["year"]:
        year = int(part["year"])
        yield date(year, 1, 1), date(year + 1, 1, 1), (), year, None


def _month(name: str) -> int:
    return MONTHS.index(name[:3].lower()) + 1


def _day(day: date) -> _Span:
    return day, day + timedelta(1), (), None, None


def _months(year: int, first: int, last: int) -> _Span:
    end = date(year, last, calendar.monthrange(year, last)[1])
    return date(year, first, 1), end + timedelta(1), (), None, None
