"""Find the values of a type in a text, and read them into a normal form in which they can be compared and sorted."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import islice

from local_rag.extraction.columns import Column, Type
from local_rag.text.dates import Date, find_dates
from local_rag.text.facts import find_codes, normalize
from local_rag.text.languages import ENGLISH, language_of
from local_rag.text.quantities import CURRENCIES, SHARES, Quantity, find_numbers
from local_rag.text.words import WORD, blank, fold

Normal = str | int | float | bool | tuple[str, ...]
TYPED: frozenset[Type] = frozenset({"number", "amount", "percentage", "date", "duration"})

_CODES = {"pound": "GBP", "$": "USD", "\u20ac": "EUR", "\u00a5": "JPY", "\u20b9": "INR", "kr": "NOK", "zloty": "PLN"}
_PER_PERCENT = {"%": Decimal(1), "\u2030": Decimal("0.1"), "bps": Decimal("0.01")}
# The units of durations with their English names, and what each is in seconds, or in months.
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "night": 86_400, "wk": 604_800}
_MONTHS = {"mo": 1, "yr": 12, "decade": 120, "century": 1200}
_UNIT_NAMES = {"s": "second", "min": "minute", "h": "hour", "d": "day", "wk": "week", "mo": "month", "yr": "year"}
_KIND_OF_DAY = re.compile(r"\b(?:working|business|calendar|trading|banking|court|school)\b", re.IGNORECASE)
_CENTS = re.compile(r"(?<=\d)[.,](\d\d)(?!\d|[.,]\d)")
_GROUPED = re.compile(r"\d{1,3}[.,]\d{3}")
_YES = re.compile(r"\W*(?:yes|ja|oui|s[i\u00ed]|true|correct|sim|tak)\b", re.IGNORECASE)
_NO = re.compile(r"\W*(?:no|not|nein|non|false|n\u00e3o|nie|never|none|nobody|keine?[mnrs]?|nicht)\b", re.IGNORECASE)
_NEGATION = re.compile(
    r"\b(?:not?|never|none|neither|nor|nobody|nothing|without|cannot|\w{1,8}n't|prohibit\w{0,5}|forbid\w{0,5}"
    r"|exclud\w{0,4}|den(?:y|ied|ies)|refus\w{0,4}|lack\w{0,3}|fail\w{0,4}|block\w{0,3}|absent|missing|nicht|nie"
    r"|niemand|niemals|kein\w{0,3}|ohne|weder|untersagt|verboten|ausgeschlossen|versperrt|ne|pas|aucune?|sans|jamais"
    r"|interdit\w{0,2}|sin|ning[u\u00fa]n\w{0,2}|nunca|prohibid\w)\b",
    re.IGNORECASE,
)
_ITEM_END = re.compile(r"[;\n\u2022]|,(?!\d)|(?<=\s)(?:and|und|et|y|or|oder|as well as|&)(?=\s)", re.IGNORECASE)
_ABBREVIATED = frozenset("inc ltd co corp bros jr sr llc l.l.c s.a s.p.a b.v n.v e.v p.m a.m etc approx".split())  # noqa: SIM905
_MOST_SAID = 60  # words of an answer that are looked for in a text
_EDGE = " \t\n.,;:!?\"'\u201c\u201d\u201e\u2018\u2019()[]|*_-\u2013\u2022"


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a text, from `start` to `end`.

    `normal` is what is written into a typed cell, `text` how it is shown, and `readings` hold all that it can mean, in
    a form in which equal values are equal. It is `open` if it can mean several things, such as 3/5/2024.
    """

    normal: Normal
    text: str
    readings: frozenset[str]
    start: int
    end: int
    open: bool = False


def find_values(kind: Type, text: str, *, decimal_comma: bool = False) -> list[Value]:
    """Return the values of a type of TYPED in a text, in their order; `decimal_comma` if the document writes 1.200,50.

    The text may be changed in letters only: offsets stay those of the text itself.
    """
    plain = _plain(text)
    if kind == "date":
        return list(_dates(plain))
    dates = [(one.start, one.end) for one in find_dates(plain)]
    rest = blank(plain, dates)
    if kind == "number":
        rest = blank(rest, [code.span() for code in find_codes(rest)])
    found = dict[int, list[Quantity]]()
    for quantity in find_numbers(rest):
        if quantity.counts or kind == "duration":
            found.setdefault(quantity.start, []).append(quantity)
    read = {"number": _number, "amount": _amount, "percentage": _percentage, "duration": _duration}[kind]
    values = list[Value]()
    for readings in found.values():
        values += [one for quantity in readings if (one := read(quantity, plain, decimal_comma))][:1]
    return values


def _plain(text: str) -> str:
    """Return a text as numbers and dates are looked for, of the same length; else the text as it is."""
    plain = normalize(text)
    return plain if len(plain) == len(text) else text


def writes_decimal_commas(text: str) -> bool:
    """Return whether a document is in a language that writes 1.200,50."""
    return language_of(text) not in {ENGLISH, "chinese", "japanese", "hindi"}


def _dates(text: str) -> Iterator[Value]:
    found = dict[int, list[Date]]()
    for one in find_dates(text):
        found.setdefault(one.start, []).append(one)
    for start, readings in sorted(found.items()):
        days = list(dict.fromkeys(day for one in readings if (day := _day(one))))
        if days:
            # Where a date can be read in two ways, the day comes first, as in most countries.
            first = readings[-1] if len(days) > 1 and readings[-1].month > readings[0].month else readings[0]
            day_first = next((_day(one) for one in readings if one.text.lstrip().startswith(f"{one.day}")
                              or one.text.lstrip().startswith(f"0{one.day}")), None)  # fmt: skip
            shown = day_first or _day(first) or days[0]
            yield Value(shown, shown, frozenset(days), start, readings[0].end, open=len(days) > 1)


def _day(one: Date) -> str:
    """Return a date as YYYY-MM-DD or YYYY-MM; empty if it has no year or is none."""
    if one.year is None:
        return ""
    if one.day is None:
        return f"{one.year:04}-{one.month:02}"
    try:
        return date(one.year, one.month, one.day).isoformat()
    except ValueError:
        return ""


def _number(quantity: Quantity, text: str, decimal_comma: bool) -> Value | None:
    if quantity.unit in CURRENCIES:
        return None
    number = _chosen(quantity, text, grouped=decimal_comma)
    readings = [_decimal(number), *map(_decimal, quantity.values)]
    return _value(quantity, _normal(number), _decimal(number), readings, text)


def _amount(quantity: Quantity, text: str, _decimal_comma: bool) -> Value | None:
    if quantity.unit not in CURRENCIES:
        return None
    code = _CODES.get(quantity.unit or "", (quantity.unit or "").upper())
    if code == "NOK" and "nok" not in quantity.text.lower():
        code = "kr"
    number = _chosen(quantity, text, grouped=True)
    cents = _CENTS.search(text, quantity.start, quantity.end)
    as_written = cents is not None and number % 1 == Decimal(f"0.{cents[1]}")  # 8,950.50
    shown = f"{number:,.2f}" if as_written else f"{number.normalize():,f}"
    normal = f"{_decimal(number)} {code}"
    return _value(quantity, normal, f"{shown} {code}", [normal], text)


def _percentage(quantity: Quantity, text: str, _decimal_comma: bool) -> Value | None:
    if quantity.unit not in SHARES:
        return None
    share = _chosen(quantity, text, grouped=False) * _PER_PERCENT[quantity.unit or "%"]
    return _value(quantity, _normal(share / 100), f"{_decimal(share)} %", [f"{_decimal(share)} %"], text)


def _duration(quantity: Quantity, text: str, _decimal_comma: bool) -> Value | None:
    unit = quantity.unit or ""
    if unit not in _SECONDS and unit not in _MONTHS:
        return None
    number = _chosen(quantity, text, grouped=False)
    kind = _KIND_OF_DAY.search(text, quantity.start, quantity.end)
    name = _UNIT_NAMES.get(unit, unit)
    shown = f"{_decimal(number)} {f'{kind[0].lower()} ' if kind else ''}{name}{'' if number == 1 else 's'}"
    shown = shown.replace("centurys", "centuries")
    scale, base = (_MONTHS[unit], "months") if unit in _MONTHS else (_SECONDS[unit], "seconds")
    reading = f"{_decimal(number * scale)} {base}"
    return _value(quantity, shown, shown, [reading], text)


def _value(quantity: Quantity, normal: Normal, shown: str, readings: list[str], text: str) -> Value:
    end = quantity.end
    while end > quantity.start and text[end - 1] in " .,;:":
        end -= 1
    return Value(normal, shown, frozenset(readings), quantity.start, end)


def _chosen(quantity: Quantity, text: str, *, grouped: bool) -> Decimal:
    """Return the likeliest of what a number can mean: 1.200 is 1200 if numbers are `grouped` so here."""
    if len(quantity.values) > 1:
        return max(quantity.values) if grouped else min(quantity.values)
    (number,) = quantity.values
    written = _GROUPED.search(text, quantity.start, quantity.end)
    if grouped and written and number == Decimal(written[0].replace(",", ".")) and not written[0].startswith("0"):
        return number * 1000
    return number


def _normal(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


def _decimal(number: Decimal) -> str:
    """Return a number in digits, without a zero at its end."""
    return f"{number.normalize():f}"


def read_yes_no(answer: str) -> bool | None:
    """Return what an answer begins with, yes or no; None if it says neither."""
    return True if _YES.match(answer) else False if _NO.match(answer) else None


def denies(text: str) -> bool:
    """Return whether a text has a word that denies."""
    return _NEGATION.search(text) is not None


def chosen_among(column: Column, answer: str) -> str | None:
    """Return the choice that an answer names, the longest of several within each other; None if none or two."""
    said, found = f" {' '.join(fold(answer).split())} ", list[str]()
    for choice in sorted(column.choices, key=len, reverse=True):
        wanted = " ".join(fold(choice).split())
        if _find_words(said, wanted) >= 0:
            found.append(choice)
        while (at := _find_words(said, wanted)) >= 0:
            said = said[:at] + " " * len(wanted) + said[at + len(wanted) :]
    return found[0] if len(found) == 1 else None


def _find_words(text: str, wanted: str) -> int:
    """Return where whole words stand in a text, -1 if they do not."""
    at = text.find(wanted) if wanted else -1
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(wanted) : at + len(wanted) + 1]
        if not before[-1:].isalnum() and not after[:1].isalnum():
            return at
        at = text.find(wanted, at + 1)
    return -1


def find_phrase(text: str, phrase: str) -> tuple[int, int] | None:
    """Return where a text says a phrase, whatever its case, spaces and marks at its edges; None if it does not."""
    return _find_folded(_folded(text), phrase)


def _find_folded(plain: str, phrase: str) -> tuple[int, int] | None:
    wanted = [_folded(word) for word in phrase.strip(_EDGE).split()]
    if not wanted:
        return None
    at = plain.find(wanted[0])
    while at >= 0:
        end = _phrase_end(plain, at, wanted)
        if end is not None and not plain[at - 1 : at].isalnum() and not plain[end : end + 1].isalnum():
            return at, end
        at = plain.find(wanted[0], at + 1)
    return None


def whole_name(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span with the full stop of an abbreviation at its end: "Solvent Inc."."""
    last = text[start:end].rsplit(None, 1)[-1].casefold() if end > start else ""
    return start, end + (last in _ABBREVIATED and text[end : end + 1] == ".")


def _phrase_end(text: str, at: int, words: list[str]) -> int | None:
    """Return where words end that begin at a place and are parted by white space or marks of a table."""
    for number, word in enumerate(words):
        if number:
            start = at
            while at < len(text) and (text[at].isspace() or text[at] in "|*_"):
                at += 1
            if at == start:
                return None
        if not text.startswith(word, at):
            return None
        at += len(word)
    return at


def _folded(text: str) -> str:
    """Return a text without case and with plain marks, of the same length."""
    plain = normalize(text)
    lower = (plain if len(plain) == len(text) else text).lower()
    return lower if len(lower) == len(text) else text


def longest_run(text: str, answer: str) -> tuple[int, int] | None:
    """Return the longest sequence of words of an answer that a text says, as a span of the text."""
    plain, best = _folded(text), None
    spans = [word.span() for word in islice(re.finditer(r"\S+", answer), _MOST_SAID)]
    for first in range(len(spans)):
        for last in range(len(spans), first, -1):
            if best and spans[last - 1][1] - spans[first][0] <= best[1] - best[0]:
                break
            if found := _find_folded(plain, answer[spans[first][0] : spans[last - 1][1]]):
                best = found
                break
    return best


def items_of(answer: str) -> list[str]:
    """Return the items that an answer lists, each once."""
    parts = (part.strip(_EDGE) for part in _ITEM_END.split(answer))
    return list(dict.fromkeys(part for part in parts if WORD.search(part) or any(map(str.isdigit, part))))
