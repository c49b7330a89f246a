"""Show a number of a spreadsheet as the spreadsheet shows it: shares, amounts, decimals, leading zeros."""

import re
from functools import lru_cache
from typing import NamedTuple

_LONGEST_CODE = 200
_MOST_DIGITS = 30
_LARGEST = 1e21
_QUOTED = re.compile(r'"([^"]*)"|\\(.)|_.|\*.|\[\$([^\[\]-]*+)(?:-[^\[\]]*+)?\]|\[[^\[\]]*+\]')
_DIGITS = re.compile(r"[#0?][#0?,]*(?:\.[#0?]*)?|\.[#0?]+")


class _Section(NamedTuple):
    """A section of a format: how many digits at least before and after the point, how many at most after it."""

    before: str
    after: str
    least: int
    fixed: int
    decimals: int
    grouped: bool
    scale: float


def show_number(value: float, code: str) -> str:
    """Write a number with a format code of Excel such as `0.0%` or `#,##0.00 "EUR"`; others leave it as it is."""
    sections = _sections(code[:_LONGEST_CODE])
    index = 1 if value < 0 and sections[1:] else 2 if value == 0 and sections[2:] else 0
    section = sections[index] if index < len(sections) else None
    if section is None or not abs(value) < _LARGEST:
        return _plain(value)
    shown = abs(value) * section.scale
    whole, _, decimals = f"{shown:.{section.decimals}f}".partition(".")
    while len(decimals) > section.fixed and decimals.endswith("0"):
        decimals = decimals[:-1]
    whole = whole.zfill(section.least)
    if section.grouped:
        whole = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", ",", whole)
    sign = "-" if value < 0 and index == 0 and float(f"{whole.replace(',', '')}.{decimals or 0}") else ""
    number = f"{whole}.{decimals}" if decimals else whole
    return f"{sign}{section.before}{number}{section.after}".strip()


def _plain(value: float) -> str:
    """Write a number with the 15 digits that a spreadsheet shows."""
    short = str(value) if isinstance(value, int) else f"{value:.15g}"
    return str(value).removesuffix(".0") if "e" in short else short


@lru_cache(maxsize=500)
def _sections(code: str) -> list[_Section | None]:
    """Parse the sections of a format, for positive numbers, negative ones and zero; None for one without digits."""
    literals = _QUOTED.sub(lambda found: "\ufdd0" * len(found[0]), code)  # a semicolon in quotes separates nothing
    ends = [found.start() for found in re.finditer(";", literals)]
    starts = [0, *(end + 1 for end in ends)]
    return [_section(code[start:end]) for start, end in zip(starts, [*ends, len(code)], strict=True)][:3]


def _section(code: str) -> _Section | None:
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found[1] or found[2] or found[3] or "")
        return chr(0xFDD1 + len(kept) % 30)

    pattern = _QUOTED.sub(keep, code)
    digits = _DIGITS.search(pattern)
    if digits is None or re.search(r"[Ee][+-]|/|General|[ymdhs]{2}", pattern):
        return None
    before, after = (
        _literal(part, kept_part)
        for part, kept_part in (
            (pattern[: digits.start()], kept),
            (pattern[digits.end() :], kept[sum(map(_is_mark, pattern[: digits.end()])) :]),
        )
    )
    whole, _, decimals = digits[0].partition(".")
    thousands = len(whole) - len(whole.rstrip(","))
    return _Section(
        before,
        after,
        min(whole.count("0"), _MOST_DIGITS),
        min(decimals.count("0"), _MOST_DIGITS),
        min(len(decimals), _MOST_DIGITS),
        "," in whole.rstrip(","),
        100.0 ** pattern.count("%") / 1000.0**thousands,
    )


def _literal(part: str, kept: list[str]) -> str:
    """Return the text around the digits, with what was in quotes."""
    texts = iter(kept)
    return "".join(next(texts, "") if _is_mark(character) else character for character in part if character != "@")


def _is_mark(character: str) -> bool:
    return "\ufdd1" <= character <= "\ufdef"
