"""What the styles of a Word document say, and how it numbers lists and headings (ECMA-376 part 1, section 17.9)."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from local_rag.reading.converters import numerals

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_LEVELS = 9
_PLACE = re.compile(r"%([1-9])")
_LONGEST = 60  # characters of a label
_MOST_DIGITS = 9
_NUMERALS: Mapping[str, Callable[[int], str]] = {
    "decimalZero": lambda number: f"{number:02}",
    "upperRoman": lambda number: numerals.roman(number).upper(),
    "lowerRoman": numerals.roman,
    "upperLetter": lambda number: numerals.repeated_letters(number).upper(),
    "lowerLetter": numerals.repeated_letters,
    "ordinal": numerals.ordinal,
    "cardinalText": numerals.cardinal_text,
    "ordinalText": numerals.ordinal_text,
    "russianLower": numerals.cyrillic,
    "russianUpper": lambda number: numerals.cyrillic(number).upper(),
    "chineseCounting": numerals.chinese,
    "chineseCountingThousand": numerals.chinese,
    "japaneseCounting": numerals.chinese,
    "ideographDigital": numerals.chinese,
    "taiwaneseCounting": numerals.chinese,
    "decimalFullWidth": numerals.full_width,
    "decimalFullWidth2": numerals.full_width,
    "decimalEnclosedCircle": lambda number: numerals.shifted(number, "①", 20),
    "decimalEnclosedCircleChinese": lambda number: numerals.shifted(number, "①", 20),
    "decimalEnclosedParen": lambda number: numerals.shifted(number, "⑴", 20),
    "decimalEnclosedFullstop": lambda number: numerals.shifted(number, "⒈", 20),
    "numberInDash": lambda number: f"- {number} -",
    "none": lambda _: "",
}
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_NO_LEVEL = 9  # of an outline: running text


@dataclass(frozen=True, slots=True)
class Label:
    """The label of a paragraph: its level from 0, and its text, which is empty for a bullet."""

    level: int
    text: str


@dataclass(slots=True)
class _Level:
    start: int = 1
    numeral: str = "decimal"
    width: int = 0  # of a number with leading zeros
    text: str = ""
    restarts_after: int | None = None  # a level from 1; 0 for never
    is_legal: bool = False
    style: str = ""


@dataclass(slots=True)
class _List:
    """A definition of levels, with its counters."""

    levels: dict[int, _Level]
    style_link: str = ""
    counts: dict[int, int] = field(default_factory=dict)


class Numbering:
    """The numbering of a document; `label` is to be called for each paragraph in order."""

    def __init__(self, root: Any | None, styles: Mapping[str, Any]) -> None:
        self._styles = styles  # each style's element by its id
        self._lists: dict[str, _List] = {}
        self._numbers: dict[str, tuple[str, dict[int, int], dict[int, _Level]]] = {}
        self._begun: set[tuple[str, int]] = set()
        for abstract in () if root is None else root.iterfind(f"{WORD}abstractNum"):
            link = _value(abstract.find(f"{WORD}numStyleLink")) or ""
            self._lists[abstract.get(f"{WORD}abstractNumId", "")] = _List(_levels(abstract), link)
        for number in () if root is None else root.iterfind(f"{WORD}num"):
            starts, levels = dict[int, int](), dict[int, _Level]()
            for override in number.iterfind(f"{WORD}lvlOverride"):
                level = _integer(override.get(f"{WORD}ilvl"), 0)
                levels |= _levels(override)
                if (start := override.find(f"{WORD}startOverride")) is not None:
                    starts[level] = _integer(_value(start), 1)
            identity = number.get(f"{WORD}numId", "")
            self._numbers[identity] = _value(number.find(f"{WORD}abstractNumId")) or "", starts, levels

    def label(self, properties: Any | None) -> Label | None:
        """Count the paragraph that has these properties, and return its label; None if it is in no list."""
        number, level = self._place(properties)
        if number not in self._numbers or not 0 <= level < _LEVELS:
            return None
        abstract, starts, overridden = self._numbers[number]
        listed = self._defined(abstract)
        if listed is None:
            return None
        levels = listed.levels | overridden
        if level not in levels:
            return None
        self._count(number, level, levels, listed.counts, starts)
        if levels[level].numeral == "bullet":
            return Label(level, "")
        text = _PLACE.sub(lambda found: _written(levels, listed.counts, int(found[1]) - 1, level), levels[level].text)
        text = " ".join(text.split())[:_LONGEST]
        return Label(level, text) if text else None

    def _count(
        self, number: str, level: int, levels: Mapping[int, _Level], counts: dict[int, int], starts: Mapping[int, int]
    ) -> None:
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
        number = None if direct is None else _value(direct.find(f"{WORD}numId"))
        level = None if direct is None else _value(direct.find(f"{WORD}ilvl"))
        style = None if properties is None else _value(properties.find(f"{WORD}pStyle"))
        of_style, level_of_style = self._place_of_style(style) if style else (None, 0)
        return number or of_style or "", _integer(level, level_of_style if number in {None, of_style} else 0)

    def _place_of_style(self, style: str) -> tuple[str | None, int]:
        number = level = None
        seen = set[str]()
        at: str | None = style
        while at and at not in seen and at in self._styles:
            seen.add(at)
            found = self._styles[at].find(f"{WORD}pPr/{WORD}numPr")
            if found is not None:
                number = number or _value(found.find(f"{WORD}numId"))
                level = level or _value(found.find(f"{WORD}ilvl"))
            at = _value(self._styles[at].find(f"{WORD}basedOn"))
        if number is None:
            return None, 0
        listed = self._defined(self._numbers[number][0]) if number in self._numbers else None
        linked = [one for one, level_of in listed.levels.items() if level_of.style == style] if listed else []
        return number, linked[0] if linked else _integer(level, 0)

    def _defined(self, abstract: str) -> _List | None:
        """Return the definition of a list, which may be that of a style."""
        listed = self._lists.get(abstract)
        for _ in range(_LEVELS):
            if listed is None or not listed.style_link:
                break
            style = self._styles.get(listed.style_link)
            number = None if style is None else _value(style.find(f"{WORD}pPr/{WORD}numPr/{WORD}numId"))
            listed = self._lists.get(self._numbers[number][0]) if number in self._numbers else None
        return listed


def _levels(parent: Any) -> dict[int, _Level]:
    return {_integer(one.get(f"{WORD}ilvl"), 0): _level(one) for one in parent.iterfind(f"{WORD}lvl")}


def _level(element: Any) -> _Level:
    restart = element.find(f"{WORD}lvlRestart")
    legal = element.find(f"{WORD}isLgl")
    # A custom format stands beside the one for older programs: `001, 002, 003, ...`.
    formats = list(element.iter(f"{WORD}numFmt"))
    custom = next((one.get(f"{WORD}format", "") for one in formats if _value(one) == "custom"), "")
    plain = next((_value(one) for one in formats if _value(one) != "custom"), None)
    zeros = re.match(r"0+1\b", custom)
    return _Level(
        start=_integer(_value(element.find(f"{WORD}start")), 0 if element.find(f"{WORD}start") is None else 1),
        numeral=plain or "decimal",
        width=len(zeros[0]) if zeros else 0,
        text=_value(element.find(f"{WORD}lvlText")) or "",
        restarts_after=None if restart is None else _integer(_value(restart), 0),
        is_legal=legal is not None and _value(legal) not in {"0", "false", "off"},
        style=_value(element.find(f"{WORD}pStyle")) or "",
    )


def _written(levels: Mapping[int, _Level], counts: Mapping[int, int], wanted: int, level: int) -> str:
    """Return the number of a level within the label of another one."""
    found = levels.get(wanted)
    if found is None or wanted > level:
        return ""
    number = counts.get(wanted, found.start)
    if found.width:
        return f"{number:0{min(found.width, _MOST_DIGITS)}}"
    if levels[level].is_legal:
        return str(number)
    return _NUMERALS.get(found.numeral, str)(number)


def _value(element: Any | None) -> str | None:
    return None if element is None else element.get(f"{WORD}val")


def _integer(text: str | None, default: int) -> int:
    text = (text or "").strip()
    return int(text) if re.fullmatch(rf"-?\d{{1,{_MOST_DIGITS}}}", text) else default


def is_on(element: Any) -> bool:
    """Return whether a property that is present is on."""
    return element.get(f"{WORD}val") not in {"0", "false", "off"}


def value_of(properties: Any | None, name: str) -> str | None:
    """Return the value of a property."""
    found = None if properties is None else properties.find(f"{WORD}{name}")
    return None if found is None else found.get(f"{WORD}val")


class Styles:
    """The styles by their ids."""

    def __init__(self, root: Any | None) -> None:
        elements = () if root is None else root.iterfind(f"{WORD}style")
        self.by_id: dict[str, Any] = {one.get(f"{WORD}styleId", ""): one for one in elements}
        self._levels: dict[str, int] = {}
        self.hiding = {one for one in self.by_id if self._hides(one)}
        default = next((one for one, element in self.by_id.items() if _is_default(element)), None)
        self._default = default

    def heading_level(self, properties: Any | None) -> int:
        """Return the level of the heading that a paragraph is, from 1; 0 for running text."""
        direct = value_of(properties, "outlineLvl")
        if direct is not None and direct.isdecimal():
            return int(direct) + 1 if int(direct) < _NO_LEVEL else 0
        style = value_of(properties, "pStyle") or self._default
        if style is None:
            return 0
        if style not in self._levels:
            self._levels[style] = self._level(style)
        return self._levels[style]

    def is_hidden(self, style: str | None) -> bool:
        """Return whether a style hides text."""
        return style in self.hiding

    def vertical(self, style: str | None) -> str:
        """Return `superscript` or `subscript` if a style raises or lowers text."""
        for element in self._chain(style):
            if found := value_of(element.find(f"{WORD}rPr"), "vertAlign"):
                return "" if found == "baseline" else found
        return ""

    def names(self) -> Any:
        """Return the part with the styles' names alone, which is all that Mammoth needs of them."""
        from lxml import etree

        root = etree.Element(f"{WORD}styles", nsmap={"w": WORD[1:-1]})
        for style in self.by_id.values():
            named = etree.SubElement(root, f"{WORD}style", dict(style.attrib))
            if (name := value_of(style, "name")) is not None:
                etree.SubElement(named, f"{WORD}name").set(f"{WORD}val", name)
        return root

    def _hides(self, style: str) -> bool:
        for element in self._chain(style):
            found = element.find(f"{WORD}rPr/{WORD}vanish")
            if found is not None:
                return is_on(found)
        return False

    def _level(self, style: str) -> int:
        for element in self._chain(style):
            outline = value_of(element.find(f"{WORD}pPr"), "outlineLvl")
            if outline is not None and outline.isdecimal():
                return int(outline) + 1 if int(outline) < _NO_LEVEL else 0
            if named := _HEADING.fullmatch(value_of(element, "name") or ""):
                return int(named[1])
        return 0

    def _chain(self, style: str | None) -> Iterator[Any]:
        """Yield a style and those that it is based on."""
        seen = set[str]()
        while style in self.by_id and style not in seen:
            assert style is not None
            seen.add(style)
            yield self.by_id[style]
            style = value_of(self.by_id[style], "basedOn")


def _is_default(style: Any) -> bool:
    return style.get(f"{WORD}type") == "paragraph" and style.get(f"{WORD}default") in {"1", "true", "on"}
