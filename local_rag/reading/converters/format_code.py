"""Parse the format codes of spreadsheets, by ECMA-376 (part 1, 18.8.31), and show a date by the parts of one."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from operator import eq, ge, gt, le, lt, ne
from typing import NamedTuple

from local_rag.text.dates import DAY_NAMES, MONTH_NAMES

_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|(?P<width>_.)|(?P<fill>\*.)|\[(?P<bracket>[^\]]*)\]'
    r"|(?P<general>General)|(?P<half>AM/PM|A/P)|(?P<exponent>E[+-])|(?P<date>y+|m+|d+|h+|s+)|(?P<digit>[0#?])"
    r"|(?P<point>\.)|(?P<comma>,)|(?P<percent>%)|(?P<slash>/)|(?P<end>;)|(?P<at>@)"
    r"|(?P<text>[-+$():!^&'~{}<>= 1-9]|[^\x00-\x7f])|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?\d{1,20}(?:\.\d{1,20})?)")
_CURRENCY = re.compile(r"\$([^-\]]*)(?:-([0-9A-F]{1,8}))?", re.IGNORECASE)
_ELAPSED = re.compile(r"h{1,9}|m{1,9}|s{1,9}", re.IGNORECASE)
_COLOUR = re.compile(r"black|blue|cyan|green|magenta|red|white|yellow|color ?\d{1,2}", re.IGNORECASE)
_COMPARE = {"<=": le, ">=": ge, "<>": ne, "<": lt, ">": gt, "=": eq}
_ENGLISH, _LANGUAGE = 9, 0x3FF  # the code of English, and the bits of a locale that say the language
_SYSTEM = ("F800", "F400")  # dates and times as the system of the reader writes them
_MOST_SECTIONS = 4
_1900, _1904 = datetime(1899, 12, 30), datetime(1904, 1, 1)
_LEAP = 60  # the 29 February 1900 of spreadsheets, which was none
_LAST = 2_958_466  # the first day of the year 10000
_SECONDS = 86_400
_UNITS = {"h": 3600, "m": 60, "n": 60, "s": 1}  # seconds
_NOON = 12
_NAMES = 3  # letters of "mmm" and "ddd"
_MOST_DECIMALS = 6


class Part(NamedTuple):
    """A part of a section: its kind, by the names in `_TOKEN`, and its text."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a format code: its parts, for which numbers it is, if it says so, and whether all is understood."""

    parts: tuple[Part, ...]
    condition: tuple[str, float] | None = None
    coloured: bool = False
    understood: bool = True
    kinds: frozenset[str] = frozenset()

    def has(self, *kinds: str) -> bool:
        """Return whether a part is of one of the kinds."""
        return not self.kinds.isdisjoint(kinds)

    def is_for(self, value: float) -> bool:
        """Return whether the condition holds."""
        return self.condition is not None and bool(_COMPARE[self.condition[0]](value, self.condition[1]))

    @property
    def only_negative(self) -> bool:
        """Whether the condition holds for negative numbers only, which Excel then shows without their sign."""
        if self.condition is None:
            return False
        comparison, bound = self.condition
        return (comparison == "<" and bound <= 0) or (comparison in {"<=", "="} and bound < 0)


def choose_section(code: str, value: float) -> tuple[Section | None, bool]:
    """Return the section of a code for a number, None if it has none, and whether it shows the number without sign."""
    sections = _sections(code)[: _MOST_SECTIONS - 1]
    first, others = sections[0], sections[1:]
    if first.condition is None and not (others and others[0].condition):
        index = 1 if value < 0 and others else 2 if value == 0 and len(sections) > 2 else 0  # noqa: PLR2004
        return sections[index], index == 1
    if first.is_for(value) or (first.condition is None and value > 0):
        return first, first.only_negative
    if others and (others[0].is_for(value) or others[0].condition is None):
        return others[0], others[0].only_negative
    return (others[1] if len(others) > 1 else None), False


@lru_cache(maxsize=1000)
def _sections(code: str) -> tuple[Section, ...]:
    sections, parts = list[list[tuple[str, str]]](), list[tuple[str, str]]()
    for found in _TOKEN.finditer(code):
        if found.lastgroup == "end":
            sections.append(parts)
            parts = []
        else:
            parts.append((found.lastgroup or "quoted", found[found.lastgroup or 0]))
    sections.append(parts)
    kept = [section for section in sections if section] if len(sections) == 1 else sections
    return tuple(_section(section) for section in kept or [[("general", "")]])


def _section(tokens: list[tuple[str, str]]) -> Section:
    parts, condition, coloured, understood = list[Part](), None, False, True
    for kind, text in tokens:
        if kind == "bracket":
            if found := _CONDITION.fullmatch(text.strip()):
                condition = found[1], float(found[2])
            elif _COLOUR.fullmatch(text):
                coloured = True
            elif _ELAPSED.fullmatch(text):
                parts.append(Part("elapsed", text.lower()))
            elif found := _CURRENCY.fullmatch(text):
                parts.append(Part("text", found[1]))
                understood &= _is_english(found[2]) or not any(kind == "date" for kind, _ in tokens)
            else:
                understood = False
        elif kind in {"quoted", "escaped", "text"}:
            parts.append(Part("text", text))
        elif kind in {"width", "fill"}:
            parts.append(Part("text", " " if kind == "width" else ""))
        else:
            understood &= kind != "other"
            parts.append(Part(kind, text.lower() if kind == "date" else text))
    kinds = frozenset(part.kind for part in parts)
    return Section(tuple(_with_minutes(parts)), condition, coloured, understood, kinds)


def _is_english(locale: str | None) -> bool:
    return not locale or (locale.upper()[-4:] not in _SYSTEM and int(locale, 16) & _LANGUAGE in {0, _ENGLISH})


def _with_minutes(parts: list[Part]) -> Iterator[Part]:
    """Yield the parts with `n` for minutes: an `m` or `mm` after hours or before seconds is no month."""
    times = [index for index, part in enumerate(parts) if part.kind in {"date", "elapsed"}]
    beside = {index: (before, after) for before, index, after in zip([None, *times], times, [*times[1:], None])}  # noqa: B905
    for index, part in enumerate(parts):
        if part.kind == "date" and part.text in {"m", "mm"}:
            before, after = beside[index]
            is_minute = before is not None and parts[before].text[0] == "h"
            is_minute |= after is not None and parts[after].text[0] == "s"
            yield Part("date", "n" * len(part.text)) if is_minute else part
        else:
            yield part


def show_date(value: float, parts: Sequence[Part], *, from_1904: bool) -> str | None:
    """Write a date, a time of day or elapsed time; None if it is outside the calendar."""
    if any(part.kind == "elapsed" for part in parts):
        return _elapsed(value, parts)
    if value < 0 or (day := _day(value, _decimals(parts), from_1904=from_1904)) is None:
        return None
    halves = any(part.kind == "half" for part in parts)
    shown = []
    for index, (kind, text) in enumerate(parts):
        if kind == "date":
            shown.append(_of_date(day, text, halves=halves))
        elif kind == "half":
            morning = day.hour < _NOON
            shown.append(("AM" if morning else "PM")[: len(text.partition("/")[0])])
        else:
            shown.append(_fraction(parts, index, day.microsecond))
    return " ".join("".join(shown).split())


def show_iso(value: float, parts: Sequence[Part], *, from_1904: bool) -> str | None:
    """Write a date as 2024-03-05, with its time if the format shows one; None if it is outside the calendar.

    A day before the epoch, which Excel cannot show, is the one that programs write so; a time alone has none.
    """
    shows = {part.text[0] for part in parts if part.kind in {"date", "elapsed"}}
    if value < 0 and not shows & {"y", "m", "d"}:
        return None
    if (day := _day(value, 0, from_1904=from_1904)) is None:
        return None
    time = f"{day:%H:%M:%S}" if "s" in shows or day.second else f"{day:%H:%M}"
    if not shows & {"y", "m", "d"}:
        return time
    return f"{day:%Y-%m-%d} {time}" if shows & {"h", "n", "s"} else f"{day:%Y-%m-%d}"


def is_ambiguous(parts: Sequence[Part]) -> bool:
    """Return whether a date that is shown so can be read as another: 03/05/2024, 05-03-24."""
    texts = [part.text for part in parts if part.kind == "date"]
    letters = "".join(text[0] for text in texts)
    if not {"y", "m", "d"} <= set(letters) or any(len(text) >= _NAMES and text[0] == "m" for text in texts):
        return False
    short_year = any(text[0] == "y" and len(text) < _NAMES for text in texts)
    dotted = letters.find("dmy") >= 0 and any(part.kind == "point" or part.text == "." for part in parts)
    return short_year or not (dotted or letters.find("ymd") >= 0)


def lacks_year(parts: Sequence[Part]) -> bool:
    """Return whether a day of a month is shown without its year: Tue 1 Jul."""
    texts = [part.text for part in parts if part.kind == "date"]
    has_day = any(text[0] == "d" and len(text) < _NAMES for text in texts)
    return has_day and any(text[0] == "m" for text in texts) and not any(text[0] == "y" for text in texts)


def is_moment(parts: Sequence[Part]) -> bool:
    """Return whether a day of a year is shown with its time."""
    return set("ymdh") <= {part.text[0] for part in parts if part.kind == "date"}


def _day(value: float, decimals: int, *, from_1904: bool) -> datetime | None:
    """Return a number of days as a date, its time rounded to the decimals of a second."""
    if not -math.inf < value < _LAST - (_1904 - _1900).days * from_1904:
        return None
    days, rest = divmod(value, 1)
    seconds = round(rest * _SECONDS, decimals)
    first = _1904 if from_1904 else _1900 + timedelta(days=int(0 <= value < _LEAP))
    try:
        return first + timedelta(days=days, seconds=seconds)
    except OverflowError:  # before the year 1, or rounded up to the year 10000
        return None


def _of_date(day: datetime, text: str, *, halves: bool) -> str:
    letter, length = text[0], len(text)
    if letter == "y":
        return f"{day.year % 100:02}" if length < _NAMES else f"{day.year:04}"
    if letter in "md" and length >= _NAMES:
        name = MONTH_NAMES[day.month - 1] if letter == "m" else DAY_NAMES[day.weekday()]
        return name[:_NAMES] if length == _NAMES else name[:1] if letter == "m" and length > _NAMES + 1 else name
    hour = (day.hour - 1) % _NOON + 1 if halves else day.hour
    number = {"m": day.month, "d": day.day, "h": hour, "n": day.minute, "s": day.second}[letter]
    return f"{number:0{min(length, 2)}}"


def _elapsed(value: float, parts: Sequence[Part]) -> str | None:
    """Write a number of days as hours, minutes or seconds in all; None beside parts of a date."""
    total = round(abs(value) * _SECONDS, _decimals(parts))
    seconds = int(total)
    shown = []
    for index, (kind, text) in enumerate(parts):
        if kind == "elapsed":
            shown.append(f"{seconds // _UNITS[text[0]]:0{len(text)}}")
        elif kind == "date" and text[0] in "ns":
            shown.append(f"{seconds // _UNITS[text[0]] % 60:0{len(text)}}")
        elif kind in {"date", "half"}:
            return None
        else:
            shown.append(_fraction(parts, index, round((total - seconds) * 10**_MOST_DECIMALS)))
    return ("-" if value < 0 and total else "") + " ".join("".join(shown).split())


def _decimals(parts: Sequence[Part]) -> int:
    """Return how many decimals of a second are shown."""
    points = [index for index, part in enumerate(parts) if part.kind == "point" and _follows_seconds(parts, index)]
    return min(sum(part.kind == "digit" for part in parts[points[0] :]), _MOST_DECIMALS) if points else 0


def _follows_seconds(parts: Sequence[Part], index: int) -> bool:
    return index > 0 and parts[index - 1].kind in {"date", "elapsed"} and parts[index - 1].text[0] == "s"


def _fraction(parts: Sequence[Part], index: int, microseconds: int) -> str:
    """Return what a part other than of a date shows: itself, or a decimal of the seconds."""
    kind, text = parts[index]
    if kind != "digit":
        return text
    before = index
    while before and parts[before].kind == "digit":
        before -= 1
    place = index - before - 1
    return f"{microseconds:0{_MOST_DECIMALS}}"[place : place + 1] or "0"
