"""Read the cells of a column as numbers with a unit, as dates, or as text: each column in one way."""

import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Literal

from local_rag.text.dates import ENGLISH_MONTH, MONTHS, month_number

ColumnKind = Literal["number", "date", "text"]
Value = str | int | float | None

_GROUP = 3  # digits
_LONGEST = 80  # characters of a cell that may be a number or a date
_SAMPLE = 200  # cells that tell whether a column can be one of numbers or dates
_WHOLE, _BITS = 2**53, 64  # from where on a float stands for several integers; of an integer with its sign
_SHARE = 0.8  # of the cells of a column that are numbers or dates
_CURRENCY_SIGNS = {"€": "EUR", "$": "USD", "US$": "USD", "£": "GBP", "¥": "JPY", "₹": "INR"}
CURRENCY_CODES = frozenset(
    "EUR USD GBP JPY INR CHF NOK SEK DKK PLN CZK CNY AUD CAD NZD HUF RON BRL ZAR TRY KRW SGD HKD MXN".split()  # noqa: SIM905
)
_CURRENCY = r"(?:US\$|[€$£¥₹]|[A-Za-z]{3})"
_NUMBER = re.compile(
    rf"(?P<open>\()?(?P<sign>[-+\u2212])?\s?(?P<before>{_CURRENCY})?\s?(?P<minus>[-\u2212])?"
    r"(?P<digits>\d{1,3}(?:[ \u00a0\u202f'\u2019]\d{3})+(?:[.,]\d+)?|\d[\d.,]*|[.,]\d+)(?P<exponent>[eE][-+]?\d{1,3})?"
    r"\s?(?P<scale>(?:[kKM]|bn|mn|mio|million|billion|thousand)(?![A-Za-z]))?\s?"
    r"(?P<after>%|‰|US\$|[€$£¥₹]|°[CF]|[A-Za-zµ][A-Za-z/²³]{0,7})?(?P<trailing>[-\u2212])?(?P<close>\))?"
)
_ROUGHLY = re.compile(
    r"^(?:\*{1,3}|[~\u2248\u223c\u2243\u2020\u2021]|(?:(?-i:c)\.|(?-i:c)(?=\s)|c(?:a|irca)\.|c(?:a|irca)(?=\s)"
    r"|approx(?:\.|imately)?|about|around|roughly|est(?:\.|imated)|etwa|rund|ungef\u00e4hr|environ)(?![^\W\d_]))\s?(?=[^\s~])",
    re.IGNORECASE,
)
_SIGNS = re.compile(
    r"(?:(?<=[\w%])\s?[*\u2020\u2021\u00a7#]+|(?<=[\d%])\s?(?:[\u00b9\u00b2\u00b3\u2070-\u2079\u207d\u207e]+|[\u1d43-\u1dbb]+"
    r"|\[\w{1,2}\]|\^\w|\^?\((?:\w|(?:approx|est)(?:imated?)?\.?|approximately|ca\.?|circa|about|roughly|rounded|projected"
    r"|forecast|provisional|prelim(?:\.|inary)?|revised|unaudited|gesch\u00e4tzt|vorl\u00e4ufig|gerundet|environ)\)))$"
)
_SECOND_NUMBER = re.compile(r"[\d%]\s?\(\d{1,9}\)$")  # of a score, or of what else is counted
# With a letter for how it was found, as 1,250p: a measured number has a sign in it, and the letter does not scale it.
_FLAGGED = re.compile(r"([-+\u2212]?\d{1,12}(?:[.,\u00a0'\u2019 ]\d{1,12}){1,5})\s?(?![bkmt])[a-z]")
_MOST_MARKED = 3  # numbers with such signs that are named
_SCALES = {"k": 10**3, "thousand": 10**3, "m": 10**6, "mn": 10**6, "mio": 10**6, "million": 10**6}
_SCALES |= {"bn": 10**9, "billion": 10**9}
_UNITS = frozenset(
    """mm cm m km in inch ft yd mi mg g kg t lb lbs oz ml cl l gal ms s sec min mins h hr hrs hour hours day days d week
    weeks month months year years yr yrs pcs pc units kb mb gb tb kw mw kwh mwh w v a hz ha acres m² km² m2 km2 m³ m3
    °c °f mph km/h pts points people seats pages licences licenses nights""".split()  # noqa: SIM905
)
_DURATION = re.compile(r"(?P<hours>\d{1,5}):(?P<minutes>[0-5]\d)(?::(?P<seconds>[0-5]\d))?")
_HOURS_NAMED = re.compile(r"\b(?:hours?|hrs?|duration|worked|time spent|break|overtime|stunden)\b", re.IGNORECASE)
_ISO = re.compile(r"(\d{4})[-/.](\d{1,2})(?:[-/.](\d{1,2}))?(?:[T ](\d{1,2}):(\d\d)(?::(\d\d))?(?:\.\d{1,6})?Z?)?")
_PARTS = re.compile(
    r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})(?:,?[T ](\d{1,2}):(\d\d)(?::(\d\d))?(?:\s?([ap])\.?m\.?)?)?",
    re.IGNORECASE,
)
_NUMERIC_DATE = re.compile(r"(?<![\w/.-])\d{1,2}([-/])\d{1,2}\1(?:\d{4}|\d{2})(?![\w/-])")
_MONTH = rf"({ENGLISH_MONTH})\.?"
_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s)?"
_DAY_MONTH = rf"(\d{{1,2}})(?:st|nd|rd|th)?[-. ]\s?{_MONTH}"
_MONTH_DAY = rf"{_MONTH}\s(\d{{1,2}})(?:st|nd|rd|th)?"
_DAY_FIRST = re.compile(rf"{_WEEKDAY}{_DAY_MONTH},?[- ](\d{{4}}|\d{{2}})", re.IGNORECASE)
_MONTH_FIRST = re.compile(rf"{_WEEKDAY}{_MONTH_DAY},?\s(\d{{4}})", re.IGNORECASE)
_DAY_OF_YEAR = re.compile(rf"{_WEEKDAY}(?:{_DAY_MONTH}|{_MONTH_DAY})", re.IGNORECASE)
_MONTH_ALONE = re.compile(rf"{_MONTH}[- ](\d{{4}})", re.IGNORECASE)
_IDENTIFIER = re.compile(
    r"(?:.*\b)?(?:no|nr|num|id|ids|code|codes|zip|postcode|postal code|phone|telephone|mobile|fax|sku|isbn|ean|vat"
    r"|iban|ref|reference|account|#)\.?\s*#?|(?:order|invoice|article|item|customer|employee|ticket|contract|part|product"
    r"|serial|account|case|project|cost cent(?:er|re)) number|.*#",
    re.IGNORECASE,
)
_UNIT_IN_NAME = re.compile(r"[(\[](?P<unit>[^()\[\]]{1,12})[)\]]")
_SCALED = re.compile(
    r"(?:k|K|T|m|M|bn)?(?:[A-Z]{3}|[€$£])(?:k|m|bn|M)?|(?:[A-Z]{3}|[€$£]) ?(?:k|m|bn|thousands?|millions?)"
)
_TIME_UNITS = re.compile(r"\b(hours|hrs|days|minutes|weeks|months|nights|miles)\b", re.IGNORECASE)
_MISSING = frozenset(
    {"", "-", "--", "\u2013", "\u2014", "n/a", "na", "n.a.", "#n/a", "?", "tbd", "tba", "null", "none", "nan"}
)
_ERRORS = frozenset({"#ref!", "#value!", "#div/0!", "#name?", "#num!", "#null!", "#n/a"})
_PLAIN = re.compile(r"-?\d+(?:[.,]\d+)?")  # a number that no date is written like
_THIS_CENTURY, _LAST_CENTURY, _TURN = 2000, 1900, 70  # how two digits of a year are read


class StoredNumber(str):
    """A cell as a sheet shows it, with the number that is stored in it."""

    __slots__ = ("number",)
    number: float

    def __new__(cls, shown: str, number: float) -> "StoredNumber":
        """Make a cell that is shown so."""
        made = super().__new__(cls, shown)
        made.number = number
        return made


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """The values of a column, None where a cell holds none, and their unit; `units` are those of each cell if mixed.

    A cell that is no number among numbers keeps its text. `marked` are some numbers that stand with a sign of a note or
    of a rough number, `guessed` is a date of which nothing tells whether its day or its month comes first, and `year`
    that of days which are written without one.
    """

    kind: ColumnKind
    values: list[Value]
    unit: str = ""
    units: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()
    guessed: str = ""
    year: int | None = None


@dataclass(frozen=True, slots=True)
class Writing:
    """How a table writes what may be either: a comma before the fraction, a month before the day; None if unknown.

    What the cells of a column tell by themselves comes first.
    """

    decimal_comma: bool | None = None
    month_first: bool | None = None
    year: int | None = None  # of days that are written without one


_UNKNOWN_WRITING = Writing()


def read_column(name: str, cells: Sequence[str], *, writing: Writing = _UNKNOWN_WRITING) -> ReadColumn:
    """Read a column by its name and cells, in the `writing` of its table."""
    filled = [cell for cell in cells if not is_missing(cell)]
    if not filled:
        return ReadColumn("text", [None] * len(cells))
    if not _is_identifier(name, filled):
        for read in (_durations, _numbers, _dates):
            if found := read(name, cells, filled, writing):
                return found
    return ReadColumn("text", [None if is_missing(cell) else str(cell) for cell in cells])


def is_missing(cell: str) -> bool:
    """Return whether a cell holds nothing, or says that."""
    return not cell or cell.strip().casefold() in _MISSING or cell.casefold() in _ERRORS


def writes_decimal_comma(cells: Iterable[str]) -> bool | None:
    """Return whether cells write 1,5 for one and a half; None if nothing tells."""
    commas = points = 0
    for cell in cells:
        if isinstance(cell, StoredNumber) or len(cell) > _LONGEST or not (match := _NUMBER.fullmatch(cell.strip())):
            continue
        digits = match["digits"]
        last, other = ("," if digits.rfind(",") > digits.rfind(".") else "."), digits.count(",") and digits.count(".")
        tail = len(digits) - 1 - max(digits.rfind(","), digits.rfind("."))
        if ("," in digits or "." in digits) and (other or (tail != 3 and digits.count(last) == 1)):  # noqa: PLR2004
            commas, points = commas + (last == ","), points + (last == ".")
        elif digits.count(last) > 1:  # 1.234.567
            commas, points = commas + (last == "."), points + (last == ",")
    return None if commas == points else commas > points


def writes_month_first(cells: Iterable[str]) -> bool | None:
    """Return whether cells write 3/14/2024 for 14 March, which only a day after the 12th tells; None if none does."""
    orders = {
        int(match[3]) > len(MONTHS)
        for cell in cells
        if len(cell) <= _LONGEST and (match := _PARTS.match(cell.strip())) and _tells_order(match)
    }
    return orders.pop() if len(orders) == 1 else None


def dates_in_numbers(text: str) -> Iterator[str]:
    """Yield the dates in a text that are written in numbers alone, such as 3/14/2024."""
    return (found[0] for found in _NUMERIC_DATE.finditer(text))


def _tells_order(date: re.Match[str]) -> bool:
    first, second = int(date[1]), int(date[3])
    return date[2] != "." and (first > len(MONTHS)) != (second > len(MONTHS))


def read_number(cell: str, *, decimal_comma: bool = False) -> tuple[int | float, str] | None:  # noqa: PLR0911
    """Return the number of a cell and its unit, empty if it has none; None for other text."""
    text = cell.strip()
    if len(text) > _LONGEST or not (match := _NUMBER.fullmatch(text)):
        return None
    before, after, scale = match["before"] or "", match["after"] or "", (match["scale"] or "").lower()
    unit = _currency(before)
    if before and not unit:
        return None
    if after and not (before and not _currency(after)):
        known = after in {"%", "‰"} or after.lower() in _UNITS or after[0] == "°" or _is_scaled(after)
        unit = _currency(after) or (after if known else "")
        if not unit:
            return None
    elif after:
        return None
    if scale == "m" and match["scale"] == "M" and not before and not after and "." not in match["digits"]:
        return None  # a size: 12M
    number = _digits(match["digits"], decimal_comma=decimal_comma)
    if number is None or bool(match["open"]) != bool(match["close"]):
        return None
    value = number * float(f"1{match['exponent']}") if match["exponent"] else number
    value *= _SCALES.get(scale, 1)
    negative = any(match[name] and match[name] != "+" for name in ("sign", "minus", "trailing", "open"))
    kept = kept_number(-value if negative else value)
    return None if kept is None else (kept, unit)


def kept_number(value: float) -> int | float | None:
    """Return a number as SQLite can keep it: whole ones as integers of 64 bits, None for what has no end."""
    if isinstance(value, int):
        if value.bit_length() < _BITS:
            return value
        value = float(value) if value.bit_length() < sys.float_info.max_exp else math.inf
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < _WHOLE else value


def _currency(word: str) -> str:
    return _CURRENCY_SIGNS.get(word, word.upper() if word.upper() in CURRENCY_CODES else "")


def _is_scaled(word: str) -> bool:
    """Return whether a word is a currency with its scale, such as kEUR."""
    return word[:1] in {"k", "T", "m", "M"} and word[1:] in CURRENCY_CODES


def _digits(digits: str, *, decimal_comma: bool) -> int | float | None:
    text = re.sub(r"[ \u00a0\u202f'\u2019]", "", digits)
    mark, group = (",", ".") if decimal_comma else (".", ",")
    if text.count(",") and text.count("."):  # the last of two marks is that of the fraction
        mark, group = (",", ".") if text.rfind(",") > text.rfind(".") else (".", ",")
    elif text.count(mark) > 1 or (text.count(group) == 1 and len(text) - 1 - text.index(group) != _GROUP):
        mark, group = group, mark
    whole, _, part = text.partition(mark)
    if mark in part or group in part or not re.fullmatch(r"\d*|\d{1,3}(?:[.,]\d{2,3})+", whole):
        return None
    whole = whole.replace(group, "")
    if not part:
        return int(whole) if whole and len(whole) < 16 else float(whole) if whole else None  # noqa: PLR2004
    return float(f"{whole or 0}.{part}")


def _numbers(name: str, cells: Sequence[str], filled: Sequence[str], writing: Writing) -> ReadColumn | None:
    own = writes_decimal_comma(filled[: 10 * _SAMPLE])
    decimal_comma = bool(writing.decimal_comma if own is None else own)
    if not _is_frequent([_number_of(cell, decimal_comma) for cell in filled[:_SAMPLE]]) or _are_pairs(filled):
        return None
    read = [_number_of(cell, decimal_comma) for cell in cells]
    flagged = _flagged(cells, read, decimal_comma)
    read = [flagged.get(at, one) for at, one in enumerate(read)]
    found = [one for one in read if one]
    if len(found) < _SHARE * len(filled) or _are_codes(filled):
        return None
    units = Counter(unit for _, unit in found if unit)
    plural = {unit: f"{unit}s" for unit in units if len(unit) > len("ms") and f"{unit}s" in units}
    if plural:  # "1 week" beside "4 weeks"
        read = [one and (one[0], plural.get(one[1], one[1])) for one in read]
        units = Counter(one[1] for one in read if one and one[1])
    values: list[Value] = [
        one[0] if one else None if is_missing(cell) else str(cell) for one, cell in zip(read, cells, strict=True)
    ]
    named = unit_of_name(name)
    signed = (
        str(cell) for at, cell in enumerate(cells) if at in flagged or (read[at] and _unmarked(cell) != cell.strip())
    )
    marked = tuple(islice(dict.fromkeys(signed), _MOST_MARKED))
    if len(units) > 1:
        return ReadColumn("number", values, "", tuple(one[1] if one else "" for one in read), marked)
    unit = next(iter(units), "")
    unit = named if named and (not unit or unit in named) else unit or named
    return ReadColumn("number", values, unit, marked=marked)


def _flagged(
    cells: Sequence[str], read: Sequence[tuple[int | float, str] | None], decimal_comma: bool
) -> dict[int, tuple[int | float, str]]:
    """Return by their place the numbers of a column that stand with a letter, none whose number also stands alone.

    Those are labels, as of the sections 1.2 and 1.2c.
    """
    with_letter = {
        at: number
        for at, cell in enumerate(cells)
        if read[at] is None and (found := _FLAGGED.fullmatch(cell.strip()[:_LONGEST]))
        if (number := read_number(found[1], decimal_comma=decimal_comma))
    }
    alone = {one[0] for one in read if one} if with_letter else set()
    return {} if any(number in alone for number, _ in with_letter.values()) else with_letter


def _is_frequent(sample: Sequence[object]) -> bool:
    """Return whether enough of the first cells are read, so that all are worth reading."""
    return sum(one is not None for one in sample) >= _SHARE / 2 * len(sample)


def _number_of(cell: str, decimal_comma: bool) -> tuple[int | float, str] | None:
    if isinstance(cell, StoredNumber):
        if _looks_like_date(cell) or _DURATION.fullmatch(cell):
            return None
        shown = read_number(cell)
        unit, number = (shown[1] if shown else ""), kept_number(cell.number)
        number = None if number is None else kept_number(round(number * (100 if unit == "%" else 1), 10))
        return None if number is None else (number, unit)
    return None if is_missing(cell) else read_number(_unmarked(cell), decimal_comma=decimal_comma)


def _unmarked(cell: str) -> str:
    """Return a number without the sign of a note behind it or of a rough number before it: 4,500 of ~4,500*."""
    text = cell.strip()
    if isinstance(cell, StoredNumber) or (text[:1].isdecimal() and text[-1:].isdecimal()) or len(text) > _LONGEST:
        return text
    said = _ROUGHLY.sub("", text)
    bare = _SIGNS.sub("", said)
    return bare if bare != "10" or said[-1] in ")]*" else said  # a power of ten


def _durations(name: str, cells: Sequence[str], filled: Sequence[str], _writing: Writing) -> ReadColumn | None:
    """Read 7:30 as 7.5 hours, in a column that is named so."""
    if not _HOURS_NAMED.search(name) or sum(bool(_DURATION.fullmatch(cell.strip())) for cell in filled) < _SHARE * len(
        filled
    ):
        return None
    values: list[Value] = []
    for cell in cells:
        match = _DURATION.fullmatch(cell.strip())
        seconds = int(match["hours"]) * 3600 + int(match["minutes"]) * 60 + int(match["seconds"] or 0) if match else 0
        values.append(round(seconds / 3600, 6) if match else None if is_missing(cell) else str(cell))
    return ReadColumn("number", values, "hours")


def _dates(_name: str, cells: Sequence[str], filled: Sequence[str], writing: Writing) -> ReadColumn | None:
    own = writes_month_first(filled)
    known = writing.month_first if own is None else own
    month_first = bool(known)

    def day(cell: str) -> str | None:
        return read_date(cell, month_first=month_first) or (_day_of_year(cell, writing.year) if writing.year else None)

    if not _is_frequent([day(cell) for cell in filled[:_SAMPLE]]):
        return None
    read = [None if is_missing(cell) else day(cell) for cell in cells]
    if sum(one is not None for one in read) < _SHARE * len(filled):
        return None
    values: list[Value] = [
        one or (None if is_missing(cell) else str(cell)) for one, cell in zip(read, cells, strict=True)
    ]
    year = writing.year if any(_DAY_OF_YEAR.fullmatch(cell.strip()) for cell in filled) else None
    guessed = next(filter(_is_either, filled), "") if known is None else ""
    return ReadColumn("date", values, guessed=guessed, year=year)


def _day_of_year(cell: str, year: int) -> str | None:
    """Return the day of a cell that names none of a year: 10 Mar, Thu 1 May."""
    match = _DAY_OF_YEAR.fullmatch(cell.strip()) if len(cell) <= _LONGEST else None
    return match and _day(str(year), month_number(match[2] or match[3]), match[1] or match[4])


def _is_either(cell: str) -> bool:
    """Return whether the day and the month of a date could change places."""
    match = _PARTS.fullmatch(cell.strip()) if len(cell) <= _LONGEST else None
    return (
        match is not None
        and match[2] != "."
        and match[1] != match[3]
        and max(int(match[1]), int(match[3])) <= len(MONTHS)
    )


def _looks_like_date(cell: str) -> bool:
    return not _PLAIN.fullmatch(cell) and read_date(cell) is not None


def read_date(cell: str, *, month_first: bool = False) -> str | None:  # noqa: PLR0911
    """Return the day of a cell as YYYY-MM-DD, with its time of day if it has one; the first day of a month alone."""
    text = cell.strip()
    if len(text) > _LONGEST:
        return None
    if (match := _ISO.fullmatch(text)) and not _PLAIN.fullmatch(text):
        return _day(match[1], match[2], match[3] or "1", *match.groups()[3:])
    if match := _PARTS.fullmatch(text):
        day, month = (match[3], match[1]) if month_first and match[2] != "." else (match[1], match[3])
        return _day(match[4], month, day, *match.groups()[4:])
    if match := _DAY_FIRST.fullmatch(text):
        return _day(match[3], month_number(match[2]), match[1])
    if match := _MONTH_FIRST.fullmatch(text):
        return _day(match[3], month_number(match[1]), match[2])
    if match := _MONTH_ALONE.fullmatch(text):
        return _day(match[2], month_number(match[1]), "1")
    return None


def _day(year: str, month: str | int, day: str, *time: str | None) -> str | None:
    number = int(year)
    if len(year) == 2:  # noqa: PLR2004
        number += _THIS_CENTURY if number < _TURN else _LAST_CENTURY
    try:
        written = date(number, int(month), int(day)).isoformat()
    except ValueError:
        return None
    hour, minute, second, half = (*time, None, None, None, None)[:4]
    if hour is None or int(hour) > 23:  # noqa: PLR2004
        return written
    of_day = int(hour) % 12 + 12 * (half in {"p", "P"}) if half else int(hour)
    clock = f"{of_day:02}:{minute}:{second or '00'}"
    return written if clock == "00:00:00" else f"{written} {clock}"


def _is_identifier(name: str, filled: Sequence[str]) -> bool:
    return bool(_IDENTIFIER.fullmatch(name.strip())) and not any("." in one or "," in one for one in filled[:50])


def _are_pairs(filled: Sequence[str]) -> bool:
    """Return whether most cells hold a second number in brackets, as 3 (2) does, which then is no sign of a note."""
    return 2 * sum(bool(_SECOND_NUMBER.search(cell.strip()[-_LONGEST:])) for cell in filled) > len(filled)


def _are_codes(filled: Sequence[str]) -> bool:
    """Return whether numbers are codes, as 00123 is."""
    return any(len(one) > 1 and one.isdigit() and one[0] == "0" for one in filled)


def unit_of_name(name: str) -> str:
    """Return the unit that the name of a column tells: EUR of "Net EUR", kg of "Weight (kg)"; empty if none."""
    if match := _UNIT_IN_NAME.search(name):
        unit = match["unit"].strip()
        if _SCALED.fullmatch(unit) or unit.lower() in _UNITS or unit in {"%", "‰"} or _currency(unit):
            return _currency(unit) or unit
        if words := _unit_word(unit):
            return words
    return _unit_word(name) or ("%" if "%" in name else "")


def _unit_word(name: str) -> str:
    for word in re.split(r"[\s_/,()\[\]-]+", name):
        if word in CURRENCY_CODES or word in _CURRENCY_SIGNS:
            return _currency(word)
        if _is_scaled(word):
            return word
    match = _TIME_UNITS.search(name)
    return match[1].lower().replace("hrs", "hours") if match else ""
