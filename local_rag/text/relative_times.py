"""Find the times that a question counts from the day on which it is asked: "last month", "next week", "3 days ago"."""

import calendar
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta

from local_rag.text.dates import DAY_NAMES, MONTH_NAME, MONTH_NAMES, find_dates, month_number

_UNITS = r"(?P<{}>day|week|month|quarter|year)"
_COUNT = r"(?P<{}>\d{{1,3}}|two|three|four|five|six|seven|eight|nine|ten|twelve)"
_NUMBERS = dict(zip("two three four five six seven eight nine ten twelve".split(), [*range(2, 11), 12], strict=True))  # noqa: SIM905
_BEFORE = (  # what the time follows, so that it needs no "in", and an article, which counts from now only behind these
    r"(?:(?P<preposition>\b(?:about|after|before|between|by|during|for|from|in|of|on|over|since|through|to|until|till"
    r"|within|with|than|and|or|as of|at) )?(?P<article>the )?)?"
)
_TIME = re.compile(
    rf"{_BEFORE}(?:"
    r"\b(?P<day>today|yesterday|tomorrow|tonight)"
    rf"|\b(?P<which>last|past|this|current|next|coming) (?:{_UNITS.format('unit')}|(?P<weekday>{'|'.join(DAY_NAMES)}))"
    rf"|\b(?P<span>last|past|next|coming) {_COUNT.format('many')} {_UNITS.format('units')}s"
    rf"|\b{_COUNT.format('ago')} {_UNITS.format('agounit')}s? ago"
    rf"|\b(?P<single>an?|one) {_UNITS.format('singleunit')} ago"
    r")\b(?!-)",
    re.IGNORECASE,
)
# "the last quarter of 2024", and with an article "the last month in which", are counted from something else.
_OF_YEAR = re.compile(r"(?: of| in)? \d{4}\b")
_OF_ANOTHER = re.compile(r",? (?:of|in which|when|that|where|before|after)\b", re.IGNORECASE)
_FROM_NOW = {"in", "over", "during", "within", "for"}
_QUOTED = re.compile(
    r"\u201c[^\u201c\u201d]*+\u201d|\u201e[^\u201e\u201c]*+\u201c|\u00ab[^\u00ab\u00bb]*+\u00bb|\"[^\"]*+\""
)
_QUARTERS = ("first", "second", "third", "fourth")
_WORD, _NUMBER = re.compile(r"[^\W\d_]+"), re.compile(r"\d+")
_MONTH = re.compile(rf"\b(?:{MONTH_NAME})\b", re.IGNORECASE)
_DAYS = {"yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1}
_STEPS = {"last": -1, "past": -1, "next": 1, "coming": 1}
_WEEK, _LONGEST_MONTH, _MONTHS = 7, 31, 12


@dataclass(frozen=True, slots=True)
class AskedTime:
    """A time that a question counts from today: its place, what is `said` there, and the time in full.

    `first` is its first day, `after` the day after its last; `is_now` says whether today is in it, and `link` is what
    the full time needs before it in the question.
    """

    start: int
    end: int
    said: str
    full: str
    first: date
    after: date
    is_now: bool
    link: str = ""

    def is_of(self, written: str) -> bool:
        """Return whether a date that is written as YYYY-MM-DD, or without its day or month, lies in it or overlaps."""
        with suppress(ValueError):
            year, month, day = (*map(int, written.split("-")), None, None)[:3]
            return _overlaps(self, year, month, day) if month else self.first.year <= (year or 0) <= self._last.year
        return False

    @property
    def _last(self) -> date:
        return self.after - timedelta(1)

    def is_said(self, text: str) -> bool:
        """Return whether a text says it in the words of the question."""
        return self.said.casefold() in text.casefold()

    def is_named(self, text: str) -> bool:
        """Return whether a text names it by a date in it, by its month, weekday or year."""
        days, last = (self.after - self.first).days, self._last
        dates = [one for one in find_dates(text) if one.year or days <= _LONGEST_MONTH]
        if any(_overlaps(self, one.year, one.month, one.day) for one in dates):
            return True
        if (self.first.year, self.first.month) == (last.year, last.month) and any(
            month_number(one[0]) == last.month for one in _MONTH.finditer(text)
        ):
            return True
        if days <= _WEEK:
            names = {DAY_NAMES[(self.first + timedelta(step)).weekday()] for step in range(days)}
            return not names.isdisjoint(_WORD.findall(text))
        return days > _LONGEST_MONTH and str(last.year) in _NUMBER.findall(text)


def asked_times(question: str, today: date) -> tuple[AskedTime, ...]:
    """Return the times that a question counts from today, in their order; none of what stands in quotation marks."""
    quoted = [one.span() for one in _QUOTED.finditer(question)]
    found = (_asked(one, question, today) for one in _TIME.finditer(question))
    return tuple(one for one in found if one and not any(start <= one.start < end for start, end in quoted))


def with_times(question: str, times: Sequence[AskedTime]) -> str:
    """Return a question with each time in full behind it: what happened last month (October 2026)."""
    ends = [one.end + 2 * _is_owner(question, one.end) for one in times]
    return _rewritten(question, ((end, end, f" ({one.full})") for end, one in zip(ends, times, strict=True)))


def in_full(question: str, times: Sequence[AskedTime]) -> str:
    """Return a question with each time in full in its place: what happened in October 2026."""
    return _rewritten(question, ((one.start, one.end, f"{one.link}{one.full}") for one in times))


def _rewritten(text: str, changes: Iterator[tuple[int, int, str]]) -> str:
    pieces, done = list[str](), 0
    for start, end, written in changes:
        pieces += [text[done:start], written]
        done = end
    return "".join([*pieces, text[done:]])


def _is_owner(question: str, end: int) -> bool:
    return question[end : end + 2].lower() in {"'s", "\u2019s"}


def _asked(match: re.Match[str], question: str, today: date) -> AskedTime | None:
    part = {name: (value or "").lower() for name, value in match.groupdict().items()}
    if part["which"] in _STEPS and not part["weekday"]:
        end, article = match.end(), bool(part["article"])
        if _OF_YEAR.match(question, end) or (article and _OF_ANOTHER.match(question, end)):
            return None
        if article and part["preposition"].strip() not in _FROM_NOW:
            return None
    resolved = _resolved(part, today)
    if resolved is None:
        return None
    full, first, after, link = resolved
    start, said = match.start(), match[0].removeprefix(match["preposition"] or "").removeprefix(match["article"] or "")
    if link:
        if _is_owner(question, match.end()):
            link = ""
        elif match["preposition"]:
            start, link = match.end("preposition"), link.partition(" ")[2]
    is_now = first <= today < after
    return AskedTime(start, match.end(), said, full, first, after, is_now, link if start else link.capitalize())


_Resolved = tuple[str, date, date, str]


def _resolved(part: dict[str, str], today: date) -> _Resolved | None:
    """Return a time in full, its first day, the day after its last, and the words before it, if they are not in it."""
    if part["day"]:
        return _of_day(today + timedelta(_DAYS[part["day"]]))
    step = _STEPS.get(part["which"] or part["span"], 0)
    if part["weekday"]:
        ahead = (DAY_NAMES.index(part["weekday"].capitalize()) - today.weekday()) % _WEEK
        return _of_day(today + timedelta(ahead - _WEEK if step < 0 else ahead or _WEEK * step))
    if part["which"]:
        return _of_unit(part["unit"], step, today)
    if part["span"]:
        other = _shifted(part["units"], step * _number(part["many"]), today)
        if step < 0:
            return f"since {_written(other)}", other, today + timedelta(1), ""
        return f"from {_written(today)} to {_written(other)}", today, other + timedelta(1), ""
    many, unit = (1, part["singleunit"]) if part["single"] else (_number(part["ago"]), part["agounit"])
    return _of_day(today - timedelta(many)) if unit == "day" else _of_unit(unit, -many, today)


def _of_day(day: date) -> _Resolved:
    # What is open on Mondays is asked for tomorrow, too.
    return f"{DAY_NAMES[day.weekday()]}, {_written(day)}", day, day + timedelta(1), "on "


def _of_unit(unit: str, step: int, today: date) -> _Resolved | None:
    """Return the week, month, quarter or year that is so many before or after that of today."""
    if unit == "week":
        first = today - timedelta(today.weekday() - _WEEK * step)
        return f"week of {_written(first)}", first, first + timedelta(_WEEK), "in the "
    if unit == "day":
        return None
    if unit == "year":
        year = today.year + step
        return str(year), date(year, 1, 1), date(year + 1, 1, 1), "in "
    size = 3 if unit == "quarter" else 1
    first = _month_from(date(today.year, (today.month - 1) // size * size + 1, 1), step * size)
    full = f"{MONTH_NAMES[first.month - 1]} {first.year}"
    if unit == "quarter":
        full = f"{_QUARTERS[(first.month - 1) // 3]} quarter of {first.year}"
    return full, first, _month_from(first, size), "in the " if unit == "quarter" else "in "


def _month_from(first: date, months: int) -> date:
    at = first.year * _MONTHS + first.month - 1 + months
    return date(at // _MONTHS, at % _MONTHS + 1, 1)


def _shifted(unit: str, many: int, today: date) -> date:
    if unit in {"day", "week"}:
        return today + timedelta(many * (_WEEK if unit == "week" else 1))
    month = _month_from(today.replace(day=1), many * {"month": 1, "quarter": 3, "year": _MONTHS}[unit])
    return month.replace(day=min(today.day, calendar.monthrange(month.year, month.month)[1]))


def _number(text: str) -> int:
    return _NUMBERS[text] if text in _NUMBERS else int(text)


def _written(day: date) -> str:
    return f"{day.day} {MONTH_NAMES[day.month - 1]} {day.year}"


def _overlaps(time: AskedTime, year: int | None, month: int, day: int | None) -> bool:
    """Return whether a date lies in a time or overlaps it; one without a year lies in any."""
    for at in {time.first.year, time._last.year} if year is None else {year}:
        try:
            first = date(at, month, day or 1)
        except ValueError:
            continue
        if first < time.after and (first if day else _month_from(first, 1) - timedelta(1)) >= time.first:
            return True
    return False
