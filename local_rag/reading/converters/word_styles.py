"""What the styles of a Word document say, and how it numbers lists and headings (ECMA-376 part 1, section 17.9)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from local_rag.reading.converters.notation import numeral

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_NO_LEVEL = 9  # of an outline: running text
_LEVELS = 9  # of a list
_PLACE = re.compile(r"%([1-9])")
_LONGEST = 60  # characters of a label
_MOST_DIGITS = 9
STRIKES = ("strike", "dstrike")  # one line through the text, and two
_OFF, _ON = {"0", "false", "off"}, {"1", "true", "on"}


def is_on(element: Any) -> bool:
    """Return whether a property that is present is on."""
    return element.get(f"{WORD}val") not in _OFF


def value_of(element: Any | None, name: str) -> str | None:
    """Return the value of a property of an element."""
    found = None if element is None else element.find(f"{WORD}{name}")
    return None if found is None else found.get(f"{WORD}val")


def _integer(text: str | None, default: int) -> int:
    text = (text or "").strip()
    return int(text) if re.fullmatch(rf"-?\d{{1,{_MOST_DIGITS}}}", text) else default


def _outline_level(properties: Any | None) -> int | None:
    level = value_of(properties, "outlineLvl") or ""
    if not level.isdecimal():
        return None
    return int(level) + 1 if int(level) < _NO_LEVEL else 0


class Styles:
    """The styles by their ids; each may be based on another one."""

    def __init__(self, root: Any | None) -> None:
        elements = () if root is None else root.iterfind(f"{WORD}style")
        self.by_id: dict[str | None, Any] = {one.get(f"{WORD}styleId", ""): one for one in elements}
        self.hiding = {style for style in self.by_id if self._has(style, "vanish")}
        self.striking = {style for style in self.by_id if any(self._has(style, name) for name in STRIKES)}
        self._levels: dict[str | None, int] = {}
        paragraphs = (style for style, one in self.by_id.items() if one.get(f"{WORD}type") == "paragraph")
        self._default = next((one for one in paragraphs if self.by_id[one].get(f"{WORD}default") in _ON), None)

    def heading_level(self, properties: Any | None) -> int:
        """Return the level of the heading that a paragraph is, from 1; 0 for running text."""
        if (direct := _outline_level(properties)) is not None:
            return direct
        style = value_of(properties, "pStyle") or self._default
        if style not in self._levels:
            self._levels[style] = self._level(style)
        return self._levels[style]

    def vertical(self, style: str | None) -> str:
        """Return `superscript` or `subscript` if a style raises or lowers text."""
        places = (value_of(element.find(f"{WORD}rPr"), "vertAlign") for element in self.chain(style))
        place = next(filter(None, places), "")
        return "" if place == "baseline" else place

    def names(self) -> Any:
        """Return the part with the styles' names alone, which is all that Mammoth needs of them."""
        from lxml import etree

        root = etree.Element(f"{WORD}styles", nsmap={"w": WORD[1:-1]})
        for style in self.by_id.values():
            named = etree.SubElement(root, f"{WORD}style", dict(style.attrib))
            if (name := value_of(style, "name")) is not None:
                etree.SubElement(named, f"{WORD}name").set(f"{WORD}val", name)
        return root

    def chain(self, style: str | None) -> Iterator[Any]:
        """Yield a style and those that it is based on."""
        seen = set[str | None]()
        while style in self.by_id and style not in seen:
            seen.add(style)
            yield self.by_id[style]
            style = value_of(self.by_id[style], "basedOn")

    def _has(self, style: str | None, name: str) -> bool:
        marks = (element.find(f"{WORD}rPr/{WORD}{name}") for element in self.chain(style))
        return next((is_on(mark) for mark in marks if mark is not None), False)

    def _level(self, style: str | None) -> int:
        for element in self.chain(style):
            if (level := _outline_level(element.find(f"{WORD}pPr"))) is not None:
                return level
            if named := _HEADING.fullmatch(value_of(element, "name") or ""):
                return int(named[1])
        return 0


@dataclass(frozen=True, slots=True)
class Label:
    """The label of a paragraph: its level from 0, and its text, which is empty for a bullet."""

    level: int
    text: str


@dataclass(slots=True)
class _Level:
    start: int
    numeral: str
    width: int  # of a number with leading zeros
    text: str
    restarts_after: int | None  # a level from 1; 0 for never
    is_legal: bool
    style: str

    @property
    def has_digits(self) -> bool:
        """Return whether the numbers of the level are digits, perhaps with leading zeros."""
        return bool(self.width) or self.numeral == "decimalZero"

    def written(self, number: int) -> str:
        """Write a number in the numerals of the level."""
        return f"{number:0{min(self.width, _MOST_DIGITS)}}" if self.width else numeral(number, self.numeral)


@dataclass(slots=True)
class _List:
    """A definition of levels, which may be that of a style, with its counters."""

    levels: dict[int, _Level]
    style_link: str
    counts: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Number:
    """What refers to a list, with levels of its own and the numbers at which it starts them."""

    abstract: str
    levels: dict[int, _Level]
    starts: dict[int, int]


class Numbering:
    """The numbering of a document; `label` is to be called for each paragraph in order."""

    def __init__(self, root: Any | None, styles: Styles) -> None:
        self._styles = styles
        self._lists: dict[str, _List] = {}
        self._numbers: dict[str | None, _Number] = {}
        self._begun: set[tuple[str, int]] = set()
        for abstract in () if root is None else root.iterfind(f"{WORD}abstractNum"):
            listed = _List(_levels(abstract), value_of(abstract, "numStyleLink") or "")
            self._lists[abstract.get(f"{WORD}abstractNumId", "")] = listed
        for element in () if root is None else root.iterfind(f"{WORD}num"):
            number = _Number(value_of(element, "abstractNumId") or "", {}, {})
            for override in element.iterfind(f"{WORD}lvlOverride"):
                number.levels |= _levels(override)
                if override.find(f"{WORD}startOverride") is not None:
                    start = _integer(value_of(override, "startOverride"), 1)
                    number.starts[_integer(override.get(f"{WORD}ilvl"), 0)] = start
            self._numbers[element.get(f"{WORD}numId", "")] = number

    def label(self, properties: Any | None) -> Label | None:
        """Count the paragraph that has these properties, and return its label; None if it is in no list."""
        number, level = self._place(properties)
        listed = self._list_of(number)
        if listed is None:
            return None
        levels = listed.levels | self._numbers[number].levels
        if level not in levels or not 0 <= level < _LEVELS:
            return None
        self._count(number, level, levels, listed.counts)
        if levels[level].numeral == "bullet":
            return Label(level, "")
        text = _PLACE.sub(lambda found: _written(levels, listed.counts, int(found[1]) - 1, level), levels[level].text)
        text = " ".join(text.split())[:_LONGEST]
        return Label(level, text) if text else None

    def _count(self, number: str, level: int, levels: Mapping[int, _Level], counts: dict[int, int]) -> None:
        starts = self._numbers[number].starts
        if level in starts and (number, level) not in self._begun:
            counts[level] = starts[level]
        else:
            counts[level] = counts[level] + 1 if level in counts else levels[level].start
        self._begun.add((number, level))
        for below in [one for one in counts if one > level]:
            after = levels[below].restarts_after if below in levels else None
            if after is None or level < after:
                del counts[below]

    def _place(self, properties: Any | None) -> tuple[str, int]:
        """Return the number and level of a paragraph, from itself or its style."""
        direct = None if properties is None else properties.find(f"{WORD}numPr")
        number = value_of(direct, "numId")
        of_style, level_of_style = self._place_of_style(value_of(properties, "pStyle"))
        level = level_of_style if number in {None, of_style} else 0
        return number or of_style or "", _integer(value_of(direct, "ilvl"), level)

    def _place_of_style(self, style: str | None) -> tuple[str | None, int]:
        number = level = None
        for element in self._styles.chain(style):
            properties = element.find(f"{WORD}pPr/{WORD}numPr")
            number = number or value_of(properties, "numId")
            level = level or value_of(properties, "ilvl")
        if number is None:
            return None, 0
        listed = self._list_of(number)
        linked = [one for one, level_of in listed.levels.items() if level_of.style == style] if listed else []
        return number, linked[0] if linked else _integer(level, 0)

    def _list_of(self, number: str | None) -> _List | None:
        listed = None
        for _ in range(_LEVELS + 1):
            listed = self._lists.get(self._numbers[number].abstract) if number in self._numbers else None
            if listed is None or not listed.style_link:
                break
            number = value_of(self._styles.by_id.get(listed.style_link), f"pPr/{WORD}numPr/{WORD}numId")
        return listed


def _levels(parent: Any) -> dict[int, _Level]:
    return {_integer(one.get(f"{WORD}ilvl"), 0): _level(one) for one in parent.iterfind(f"{WORD}lvl")}


def _level(element: Any) -> _Level:
    legal, start = element.find(f"{WORD}isLgl"), element.find(f"{WORD}start")
    restart = value_of(element, "lvlRestart")
    # A custom format stands beside the one for older programs: `001, 002, 003, ...`.
    formats = {one.get(f"{WORD}val"): one.get(f"{WORD}format", "") for one in element.iter(f"{WORD}numFmt")}
    zeros = re.match(r"0+1\b", formats.pop("custom", ""))
    return _Level(
        start=_integer(value_of(element, "start"), 0 if start is None else 1),
        numeral=next(iter(formats), None) or "decimal",
        width=len(zeros[0]) if zeros else 0,
        text=value_of(element, "lvlText") or "",
        restarts_after=_integer(restart, 0) if element.find(f"{WORD}lvlRestart") is not None else None,
        is_legal=legal is not None and is_on(legal),
        style=value_of(element, "pStyle") or "",
    )


def _written(levels: Mapping[int, _Level], counts: Mapping[int, int], wanted: int, level: int) -> str:
    """Return the number of a level within the label of another one."""
    found = levels.get(wanted)
    if found is None or wanted > level:
        return ""
    number = counts.get(wanted, found.start)
    # Legal numbers are in digits, also those of higher levels: `Article II` has the `Section 2.01`.
    return found.written(number) if not levels[level].is_legal or found.has_digits else str(number)
