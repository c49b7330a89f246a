"""Count the numbers of lists and headings of an OpenDocument text, and find what its styles raise, strike or hide."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from local_rag.reading.converters.converted import name_of
from local_rag.reading.converters.notation import numeral

TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
PRESENTATION = "{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}"
_ID = "{http://www.w3.org/XML/1998/namespace}id"
_FORMAT = re.compile(r"%(\d{1,2})%")
_LEVELS = 10
_LONGEST = 60  # characters of a label
_INTEGER = re.compile(r"-?\d{1,9}")
_HIDING = {  # by the family of a style: the element, its attribute, and the value that hides
    "drawing-page": ("drawing-page-properties", f"{PRESENTATION}visibility", "hidden"),
    "table": ("table-properties", f"{TABLE}display", "false"),
}


@dataclass(slots=True)
class Counts:
    """The numbers that a list has reached, by level from 1; `style` is that of the list."""

    style: str = ""
    numbers: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Level:
    numeral: str  # empty for a level without numbers
    is_bullet: bool
    prefix: str
    suffix: str
    shown: int  # levels in a label
    start: int
    pattern: str  # such as `%1%.%2%`, which replaces prefix, suffix and shown
    synchronized: bool  # letters are repeated: aa, bb


class Lists:
    """The list styles of a document, and the lists so far."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self._styles: dict[str, dict[int, _Level]] = {}
        self._outline: dict[int, _Level] = {}
        for root in roots:
            for style in root.iter(f"{TEXT}list-style"):
                self._styles[style.get(f"{STYLE}name", "")] = _levels(style)
            for style in root.iter(f"{TEXT}outline-style"):
                self._outline = _levels(style)
        self._headings = Counts()
        self._last: dict[str, Counts] = {}  # by style
        self._by_id: dict[str, Counts] = {}

    def begin(self, element: Any, of_paragraph: str) -> Counts:
        """Return the counts of a list that is within no other, which may go on with those of an earlier one."""
        style = element.get(f"{TEXT}style-name") or of_paragraph
        earlier = self._by_id.get(element.get(f"{TEXT}continue-list", ""))
        if earlier is None and element.get(f"{TEXT}continue-numbering") == "true":
            earlier = self._last.get(style)
        counts = earlier or Counts(style)
        self._last[style] = counts
        if identity := element.get(_ID):
            self._by_id[identity] = counts
        return counts

    def label(self, counts: Counts, item: Any, level: int, style: str, *, numbered: bool) -> str:
        """Count an item and return its label; `numbered` says whether items without a style have numbers."""
        levels = self._styles.get(style or counts.style)
        if levels is None:
            levels = {level: _Level("1", not numbered, "", ".", 1, 1, "", False)}
        _count(counts.numbers, levels, level, item.get(f"{TEXT}start-value"))
        written = item.find(f"{TEXT}number")
        if written is not None and (text := "".join(written.itertext()).strip()):
            return text[:_LONGEST]
        return "-" if level not in levels or levels[level].is_bullet else _written(levels, counts.numbers, level)

    def heading_label(self, heading: Any, level: int) -> str:
        """Count a heading and return its number."""
        if level not in self._outline or heading.get(f"{TEXT}is-list-header") == "true":
            return ""
        start = heading.get(f"{TEXT}start-value") if heading.get(f"{TEXT}restart-numbering") == "true" else None
        if start is None and heading.get(f"{TEXT}restart-numbering") == "true":
            start = str(self._outline[level].start)
        _count(self._headings.numbers, self._outline, level, start)
        return _written(self._outline, self._headings.numbers, level)


class TextStyles:
    """The styles of paragraphs and characters, by family and name."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self._styles: dict[tuple[str, str], Any] = {}
        for root in roots:
            for style in root.iter(f"{STYLE}style"):
                self._styles[style.get(f"{STYLE}family", ""), style.get(f"{STYLE}name", "")] = style

    def raised(self, name: str | None) -> int:
        """Return 1 if a style raises characters, -1 if it lowers them, else 0."""
        place = self._property("text", name, "text-properties", f"{STYLE}text-position") or ""
        first = place.split(" ")[0]
        if first in {"super", "sub"}:
            return 1 if first == "super" else -1
        return 0 if not first.rstrip("%").strip("-0.") else -1 if first.startswith("-") else 1

    def is_struck(self, family: str, name: str | None) -> bool | None:
        """Return whether a style strikes text out; None if it says nothing of that."""
        said = [
            self._property(family, name, "text-properties", f"{STYLE}text-line-through-{one}")
            for one in ("style", "type")
        ]
        return any(one != "none" for one in said if one) if any(said) else None

    def is_hidden(self, family: str, name: str | None) -> bool | None:
        """Return whether a style hides text, a slide or a sheet; None if it says nothing of that."""
        of, attribute, hiding = _HIDING.get(family, ("text-properties", f"{TEXT}display", "none"))
        said = self._property(family, name, of, attribute)
        return None if said is None else said == hiding

    def list_style(self, name: str | None) -> str | None:
        """Return the list style of a paragraph style, which is empty to switch numbers off."""
        for style in self._chain("paragraph", name):
            if (found := style.get(f"{STYLE}list-style-name")) is not None:
                return str(found)
        return None

    def _property(self, family: str, name: str | None, of: str, attribute: str) -> str | None:
        for style in self._chain(family, name):
            properties = style.find(f"{STYLE}{of}")
            if properties is not None and properties.get(attribute) is not None:
                return str(properties.get(attribute))
        return None

    def _chain(self, family: str, name: str | None) -> Iterable[Any]:
        seen = set[str]()
        while name and name not in seen and (family, name) in self._styles:
            seen.add(name)
            yield self._styles[family, name]
            name = self._styles[family, name].get(f"{STYLE}parent-style-name")


def _levels(style: Any) -> dict[int, _Level]:
    levels = {}
    for one in style:
        name = name_of(one)
        if not name.endswith(("level-style-number", "level-style-bullet", "level-style-image", "outline-level-style")):
            continue
        pattern = next((value for key, value in one.attrib.items() if key.endswith("}num-list-format")), "")
        levels[_integer(one.get(f"{TEXT}level"), 1)] = _Level(
            one.get(f"{STYLE}num-format", ""),
            name.endswith(("bullet", "image")),
            one.get(f"{STYLE}num-prefix", ""),
            one.get(f"{STYLE}num-suffix", ""),
            min(_LEVELS, _integer(one.get(f"{TEXT}display-levels"), 1)),
            _integer(one.get(f"{TEXT}start-value"), 1),
            pattern,
            one.get(f"{STYLE}num-letter-sync") == "true",
        )
    return levels


def _count(numbers: dict[int, int], levels: Mapping[int, _Level], level: int, start: str | None) -> None:
    first = levels[level].start if level in levels else 1
    numbers[level] = _integer(start, numbers[level] + 1 if level in numbers else first)
    for below in [one for one in numbers if one > level]:
        del numbers[below]


def _written(levels: Mapping[int, _Level], numbers: Mapping[int, int], level: int) -> str:
    """Return the label of an item whose numbers are counted; empty for a level without numbers."""
    own = levels[level]

    def number(at: int) -> str:
        found = levels.get(at)
        if found is None or not found.numeral or found.is_bullet:
            return ""
        return _numeral(numbers.get(at, found.start), found)

    if own.pattern:
        text = _FORMAT.sub(lambda found: number(int(found[1])), own.pattern)
    else:
        shown = filter(None, map(number, range(max(1, level - own.shown + 1), level + 1)))
        text = f"{own.prefix}{'.'.join(shown)}{own.suffix}"
    return " ".join(text.split())[:_LONGEST] if own.numeral or text.strip(" .") else ""


def _numeral(number: int, level: _Level) -> str:
    if level.synchronized and level.numeral in {"a", "A"}:
        return numeral(number, "lowerLetter" if level.numeral == "a" else "upperLetter")
    if level.numeral in {"a", "A", "i", "I"}:
        return numeral(number, level.numeral)
    zeros = len(level.numeral) - len(level.numeral.lstrip("0"))
    return f"{number:0{min(zeros, 9) + 1}}"


def _integer(text: str | None, default: int) -> int:
    return int(text) if text and _INTEGER.fullmatch(text) else default
