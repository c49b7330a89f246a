"""Tell the labels that begin the items of lists and the clauses of contracts: `-`, `3.`, `2.1`, `(a)`, `iv.`, `§ 3`."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

LabelKind = Literal["sign", "number", "clause", "named"]

_LABEL = re.compile(
    r"[^\S\n]{0,40}[*_]{0,3}(?:"
    r"(?P<sign>[-*+\u2022\u25e6\u2013])"
    r"|(?P<number>\(?\d{1,3}[.)])"
    r"|(?P<spaced>\d{1,2})(?=[^\S\n]{2,40}[^\W\d_a-z])"
    r"|(?P<decimal>\d{1,3}(?:\.\d{1,3}){1,5})[.)]?"
    r"|(?P<bracket>\((?:[a-zA-Z]{1,2}|[ivxlc]{1,6})\)|(?:[a-zA-Z]|[ivxlc]{1,6})\))"
    r"|(?P<dotted>(?:[a-z]|[ivxlc]{1,6}|[IVXLC]{1,6})\.)"
    r"|(?P<paragraph>\u00a7{1,2}[^\S\n]?\d{1,4}[a-z]?)[.:]?"
    r"|(?P<titled>[^\W\d_a-z][^\W\d_]{1,11}\.?[^\S\n]\d{1,3}(?:\.\d{1,3}){0,3})[.:)]"
    r"|(?P<named>[^\W\d_a-z][^\W\d_]{1,11}\.?[^\S\n]\d{1,3}(?:\.\d{1,3}){0,3})"
    r")[*_]{0,3}(?:[^\S\n]{1,40}(?=\S)|(?<=[.:)])$)",
    re.MULTILINE,
)
_KINDS: dict[str, LabelKind] = {"sign": "sign", "number": "number", "spaced": "number", "named": "named"}
_ROMAN = re.compile(r"[ivxlcIVXLC]{1,6}")
_SURE = {"sign", "number", "bracket", "paragraph"}  # whatever stands on the line above
_ENDED = re.compile(r"[.:;,!?\u2026)\]\"\u201d\u2019\u00bb|*_]\s*\Z")


@dataclass(frozen=True, slots=True)
class Label:
    """A label and the text that it says, such as `2.1` or `a`; `style` is that of the labels of the same list.

    `is_sure` is false if a line of running text may begin like it, as with `1.5 million`. One that is `named`, such as
    `Room 3`, is none but in a list of such.
    """

    kind: LabelKind
    style: str
    said: str
    is_sure: bool


def label_at(text: str, offset: int = 0) -> Label | None:
    """Return the label of the line that begins at an offset."""
    found = _LABEL.match(text, offset)
    if found is None or not found.lastgroup:
        return None
    name, written = found.lastgroup, found[found.lastgroup]
    indent = len(found[0]) - len(found[0].lstrip())
    said = written.strip("().").lower()
    match name:
        case "sign":
            style = f"{written}{indent}"
        case "number" | "spaced":
            style = re.sub(r"\d+", "1", written)
        case "decimal":
            style = "1.1" + ".1" * (said.count(".") - 1)
        case "bracket" | "dotted":
            case_of = "I" if said != written.strip("().") else "i"
            numeral = case_of if _ROMAN.fullmatch(said) and len(said) > 1 else "A" if case_of == "I" else "a"
            style = written.replace(written.strip("()."), numeral)
        case _:
            style = re.sub(r"[\d.\s]+.*", "", written)
            said = " ".join(written.split()).lower()
    kind = _KINDS.get(name, "clause")
    return Label(kind, style, said, name in _SURE)


def begins_item(text: str, offset: int, before: str, styles: Collection[str]) -> Label | None:
    """Return the label of a line if it begins an item, and is not the wrapped text of the one above.

    `before` is the line above, empty for none, and `styles` are those of the items before it.
    """
    label = label_at(text, offset)
    if label is None or label.is_sure or not before.strip() or label.style in styles:
        return label
    return label if label.kind != "named" and _ENDED.search(before) else None


class Outline:
    """The items that are open while a text is read: each is in a list within another item, told by its style."""

    def __init__(self) -> None:
        self._open: list[tuple[str, str, int]] = []  # style, label and place of an item

    @property
    def style(self) -> str:
        """The style of the innermost item, empty for none."""
        return self._open[-1][0] if self._open else ""

    def enter(self, label: Label, place: int) -> int | None:
        """Enter an item, and return the place of the one that it belongs to."""
        style = self._style_of(label)
        depth = next((at for at, (other, _, _) in enumerate(self._open) if other == style), len(self._open))
        self._open[depth:] = [(style, label.said, place)]
        return self._open[depth - 1][2] if depth else None

    def clear(self) -> None:
        """Leave all items."""
        self._open.clear()

    def _style_of(self, label: Label) -> str:
        """Return the style of a label; `i` is a numeral unless it follows an `h`, and `v` within such a list."""
        if label.kind != "clause" or not _ROMAN.fullmatch(label.said):
            return label.style
        numeral = label.style.translate({ord("a"): "i", ord("A"): "I"})
        before = next((said for style, said, _ in self._open if style == label.style), "")
        return numeral if self.style == numeral or (label.said == "i" and before != "h") else label.style
