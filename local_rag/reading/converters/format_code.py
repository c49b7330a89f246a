"""Parse the format codes of spreadsheets, by ECMA-376 (part 1, 18.8.31)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import eq, ge, gt, le, lt, ne
from typing import NamedTuple

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
