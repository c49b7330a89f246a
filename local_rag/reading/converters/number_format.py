"""Show a number of a spreadsheet as Excel shows it: shares, amounts, masks, fractions, dates, elapsed time.

A code that is not understood leaves the plain number, or a date as 2024-03-05. Unlike in Excel, a negative number that
only its colour tells from others keeps its minus, and spaces that align columns are left out.
"""

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from local_rag.reading.converters.format_code import (
    Part,
    Section,
    choose_section,
    is_ambiguous,
    is_moment,
    lacks_year,
    show_date,
    show_iso,
)

_LONGEST_CODE = 200
_LARGEST = 1e21
_LEAST = 1e-100
_MOST_DIGITS = 30
_LONGEST_PLAIN = 12  # characters of a small number without an exponent
_MOST_OF_DENOMINATOR = 5
_USUAL_KINDS = frozenset({"text", "percent", "digit", "point", "comma"})
_SAYS_NEGATIVE = re.compile(r"[-\u2212(\w]")


def show_number(value: float, code: str, *, from_1904: bool = False) -> str:
    """Write a number, or a date counted in days since 1900 or 1904, with a format code of Excel."""
    if len(code) > _LONGEST_CODE or not abs(value) < _LARGEST:
        return _plain(value)
    section, unsigned = choose_section(code, value)
    if section is None:
        return _plain(value)
    if section.has("date", "elapsed", "half"):
        understood = section.understood and not section.has("percent", "general", "at", "exponent")
        shown = show_date(value, section.parts, from_1904=from_1904) if understood else ""
        return shown or show_iso(value, section.parts, from_1904=from_1904) or _plain(value)
    if not section.understood or section.has("at"):
        return _plain(value)
    return _signed(value, section, unsigned=unsigned)


def show_cell(value: float, code: str, *, from_1904: bool = False) -> str:
    """Write a number as `show_number` does, but a date that could be read as another as 2024-03-05.

    So is a day whose format shows no year, and one with a time of day that the value does not have: programs write such
    formats for all dates.
    """
    if code == "General":
        return _plain(value)
    section, _ = choose_section(code[:_LONGEST_CODE], value)
    if (
        section
        and section.has("date")
        and (is_ambiguous(section.parts) or lacks_year(section.parts) or (value % 1 == 0 and is_moment(section.parts)))
    ):
        parts = [part for part in section.parts if value % 1 or part.text[:1] in set("ymd")]
        return show_iso(value, parts, from_1904=from_1904) or _plain(value)
    return show_number(value, code, from_1904=from_1904)


def _plain(value: float) -> str:
    """Write a number with the 15 digits that a spreadsheet shows."""
    short = str(value) if isinstance(value, int) else f"{value:.15g}"
    if "e" not in short:
        return short
    plain = f"{Decimal(short):f}"
    return plain if len(plain) <= _LONGEST_PLAIN else short


def _signed(value: float, section: Section, *, unsigned: bool) -> str:
    amount = Decimal(value) if isinstance(value, int) else Decimal(f"{value:.15g}")
    shown = _show(abs(amount), section)
    if shown is None:
        return _plain(value)
    text = " ".join(shown.split())
    return f"-{text}" if value < 0 and text and _keeps_minus(shown, section, unsigned=unsigned) else text


def _keeps_minus(shown: str, section: Section, *, unsigned: bool) -> bool:
    """Return whether what is shown of a negative number gets a minus: not if it is rounded to zero."""
    literal = "".join(part.text for part in section.parts if part.kind == "text")
    # In Excel the colour would be all that says it.
    if unsigned and not (section.coloured and not _SAYS_NEGATIVE.search(literal)):
        return False
    digits = shown.replace(literal, "") if literal else shown
    return not section.has("digit") or re.search("[1-9]", digits) is not None


def _show(amount: Decimal, section: Section) -> str | None:
    """Write an amount with the parts of a section; None if they are not understood."""
    parts = section.parts
    if section.has("general"):
        return "".join(_plain(float(amount)) if kind == "general" else text for kind, text in parts)
    if (usual := _usual(section)) is not None:
        return usual.show(amount)
    amount *= Decimal(100) ** sum(part.kind == "percent" for part in parts)
    if section.has("exponent"):
        return _scientific(amount, parts)
    slashes = [index for index, part in enumerate(parts) if part.kind == "slash"]
    if len(slashes) == 1 and _is_fraction(parts, slashes[0]):
        return _fraction(amount, parts, slashes[0])
    return _decimal(amount, parts)


class _Usual(NamedTuple):
    """A section with its digits in one place: the text around them, how many are shown, and by what to multiply."""

    before: str
    after: str
    least: int
    grouped: bool
    point: str
    decimals: Decimal
    fixed: int
    scale: Decimal

    def show(self, amount: Decimal) -> str:
        """Write an amount."""
        rounded = (amount * self.scale).quantize(self.decimals, ROUND_HALF_UP)
        whole, _, decimals = f"{rounded:{',' if self.grouped else ''}f}".partition(".")
        whole = whole.zfill(self.least) if whole != "0" or self.least else ""
        kept = max(self.fixed, len(decimals.rstrip("0")))
        return f"{self.before}{whole}{self.point}{decimals[:kept]}{self.after}"


_USUAL = re.compile(r"([ %]*+)((?:[#0]++|,(?=[#0]))*+)(\.?+)(0*+)(#*+)(,*+)([ %]*+)")


@lru_cache(maxsize=1000)
def _usual(section: Section) -> _Usual | None:
    """Return a section in the form of most, which is shown several times faster; None for any other."""
    signs = {"text": " ", "percent": "%"}
    found = _USUAL.fullmatch("".join(signs.get(part.kind, part.text) for part in section.parts))
    if not found or not (found[2] + found[4] + found[5]) or not section.kinds <= _USUAL_KINDS:
        return None
    whole = found[2].rstrip(",")
    least, grouped = whole.count("0"), "," in whole
    if "0" in whole.replace(",", "").rstrip("0") or (grouped and least > 1) or whole.startswith(","):
        return None
    before, after = len(found[1]), len(section.parts) - len(found[7])
    thousands = len(found[6]) + len(found[2]) - len(whole)
    scale = Decimal(100) ** sum(part.kind == "percent" for part in section.parts) / Decimal(1000) ** thousands
    texts = [part.text for part in section.parts]
    fixed, most = len(found[4]), min(len(found[4] + found[5]), _MOST_DIGITS)
    around = "".join(texts[:before]), "".join(texts[after:])
    return _Usual(*around, least, grouped, found[3], Decimal(1).scaleb(-most), fixed, scale)


def _decimal(amount: Decimal, parts: Sequence[Part]) -> str | None:
    """Write a decimal number: its digits take the places of 0, # and ?, from the point to both sides."""
    points = [index for index, part in enumerate(parts) if part.kind == "point"]
    if len(points) > 1:
        return None
    point = points[0] if points else len(parts)
    places = [index for index, part in enumerate(parts) if part.kind == "digit"]
    whole, decimals = [at for at in places if at < point], [at for at in places if at > point]
    commas = [index for index, part in enumerate(parts) if part.kind == "comma"]
    grouping = {at for at in commas if whole and whole[0] < at < whole[-1]}
    between = {at for at in commas if decimals and decimals[0] < at < decimals[-1]}
    scaling = _scaling(parts, whole, decimals, commas)
    rounded = (amount / 1000 ** len(scaling)).quantize(
        Decimal(1).scaleb(-min(len(decimals), _MOST_DIGITS)), ROUND_HALF_UP
    )
    digits, _, after = f"{rounded:f}".partition(".")
    shown = [part.text if part.kind != "comma" else "," for part in parts]
    for at in (*grouping, *between, *scaling):
        shown[at] = ""
    _fill_whole(shown, whole, "" if digits == "0" else digits, grouped=bool(grouping))
    if not whole and points and digits != "0":
        shown[point] = f"{digits}."
    kept = len(after.rstrip("0"))
    for place, at in enumerate(decimals):
        blank = {"0": "0", "?": " ", "#": ""}[parts[at].text]
        shown[at] = after[place] if place < kept else blank
    return "".join(shown)


def _scaling(parts: Sequence[Part], whole: Sequence[int], decimals: Sequence[int], commas: Sequence[int]) -> set[int]:
    """Return the commas directly behind the last digit of a side, each of which divides by a thousand."""
    found = set[int]()
    for last in (side[-1] for side in (whole, decimals) if side):
        at = last + 1
        while at in commas:
            found.add(at)
            at += 1
    return found


def _fill_whole(shown: list[str], places: Sequence[int], digits: str, *, grouped: bool) -> None:
    """Write digits into places from the right; the first place takes what is left over."""
    left = digits
    for count, at in enumerate(reversed(places)):
        here, left = (left, "") if count == len(places) - 1 else (left[-1:], left[:-1])
        if not here:
            here = {"0": "0", "?": " ", "#": ""}[shown[at]]
        if grouped:
            here = _grouped(here, count)
        shown[at] = here
    if grouped:  # no comma before the first digit
        first = next((at for at in places if shown[at].strip(" ,")), None)
        for at in places:
            if first is None or at <= first:
                shown[at] = shown[at].lstrip(",")


def _grouped(digits: str, places: int) -> str:
    """Write a comma after each digit that has a multiple of three places behind it, the last of them `places`."""
    written = ""
    for index, digit in enumerate(reversed(digits)):
        behind = index + places
        written = digit + ("," if behind and behind % 3 == 0 else "") + written
    return written


def _scientific(amount: Decimal, parts: Sequence[Part]) -> str | None:
    at = next(index for index, part in enumerate(parts) if part.kind == "exponent")
    behind = [index for index in range(at + 1, len(parts)) if parts[index].kind == "digit"]
    before = parts[:at]
    points = [index for index, part in enumerate(before) if part.kind == "point"]
    places = [index for index, part in enumerate(before) if part.kind == "digit"]
    if not behind or not places or len(points) > 1 or any(part.kind in {"slash", "point"} for part in parts[at + 1 :]):
        return None
    whole = sum(index < points[0] for index in places) if points else len(places)
    decimals, step = len(places) - whole, max(1, whole)
    exponent = 0
    if amount > Decimal(_LEAST):
        exponent = (amount.adjusted() // step) * step
        rounded = amount.scaleb(-exponent).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
        if rounded >= Decimal(10) ** step:
            exponent += step
    mantissa = _decimal(amount.scaleb(-exponent), before)
    sign = "-" if exponent < 0 else "+" if parts[at].text.endswith("+") else ""
    shown = [part.text for part in parts]
    _fill_whole(shown, behind, str(abs(exponent)) if exponent else "", grouped=False)
    return f"{mantissa}E{sign}{''.join(shown[at + 1 :])}"


def _is_fraction(parts: Sequence[Part], slash: int) -> bool:
    beside = [parts[index] for index in (slash - 1, slash + 1) if 0 <= index < len(parts)]
    return len(beside) == 2 and all(part.kind == "digit" or part.text.isdigit() for part in beside)  # noqa: PLR2004


def _fraction(amount: Decimal, parts: Sequence[Part], slash: int) -> str | None:
    """Write a number as a fraction, with its whole part if there is a place for it."""
    if any(part.kind in {"point", "comma", "exponent"} for part in parts):
        return None
    first, last = slash, slash + 1
    while first and parts[first - 1].kind == "digit":
        first -= 1
    while last < len(parts) and (parts[last].kind == "digit" or parts[last].text.isdigit()):
        last += 1
    below = "".join(part.text for part in parts[slash + 1 : last])
    whole_places = [index for index in range(first) if parts[index].kind == "digit"]
    if first == slash or any(part.kind == "digit" for part in parts[last:]):
        return None
    whole, rest = divmod(Fraction(amount), 1) if whole_places else (0, Fraction(amount))
    top, bottom = _nearest(rest, below)
    if whole_places and top == bottom:
        whole, top = whole + 1, 0
    shown = [part.text for part in parts]
    _fill_whole(shown, whole_places, str(whole) if whole else "", grouped=False)
    before, after = "".join(shown[:first]), "".join(shown[last:])
    if top or not whole_places:
        return f"{before}{top}/{bottom}{after}"
    return f"{before}{after}" if any(shown[at].strip() for at in whole_places) else f"{before.rstrip()}0{after}"


def _nearest(rest: Fraction, below: str) -> tuple[int, int]:
    """Return the nearest fraction with the denominator that a code gives, or with as many digits as it has places."""
    if below.isdigit() and below.strip("0"):
        bottom = int(below[:_MOST_OF_DENOMINATOR])
        return int(rest * bottom + Fraction(1, 2)), bottom
    return _convergent(rest, 10 ** min(len(below), _MOST_OF_DENOMINATOR) - 1)


def _convergent(rest: Fraction, most: int) -> tuple[int, int]:
    """Return the last convergent of the continued fraction of a number whose denominator is at most `most`."""
    top, bottom, before_top, before_bottom = 1, 0, 0, 1
    while True:
        whole, left = divmod(rest, 1)
        if (following := whole * bottom + before_bottom) > most:
            return top, bottom
        top, bottom, before_top, before_bottom = whole * top + before_top, following, top, bottom
        if not left:
            return top, bottom
        rest = 1 / left
