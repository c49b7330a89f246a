"""The styles of a Word document: what each, or one that it is based on, says of headings, hidden and raised text."""

import re
from collections.abc import Iterator
from typing import Any

from local_rag.reading.converters.word_numbers import WORD

_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_NO_LEVEL = 9  # of an outline: running text


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
