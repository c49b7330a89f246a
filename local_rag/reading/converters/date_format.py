"""Show a date or time of a spreadsheet, counted in days, by the parts of a format code."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from local_rag.reading.converters.format_code import Part

_MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()  # noqa: SIM905
_1900, _1904 = datetime(1899, 12, 30), datetime(1904, 1, 1)
_LEAP = 60  # the 29 February 1900 of spreadsheets, which was none
_LAST = 2_958_466  # the first day of the year 10000
_SECONDS = 86_400
_UNITS = {"h": 3600, "m": 60, "n": 60, "s": 1}  # seconds
_NOON = 12
_NAMES = 3  # letters of "mmm" and "ddd"
_MOST_DECIMALS = 6


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


def is_moment(parts: Sequence[Part]) -> bool:
    """Return whether a day of a year is shown with its time."""
    return set("ymdh") <= {part.text[0] for part in parts if part.kind == "date"}


def _day(value: float, decimals: int, *, from_1904: bool) -> datetime | None:
    """Return a number of days as a date, its time rounded to the decimals of a second."""
    if not value < _LAST - (_1904 - _1900).days * from_1904:
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
        name = _MONTHS[day.month - 1] if letter == "m" else _DAYS[day.weekday()]
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
