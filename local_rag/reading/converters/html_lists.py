"""Find the numbers that the items of a web page's lists have: with `start`, `value`, `reversed` and `type`."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from local_rag.reading.converters.numerals import counted_letters, greek, roman

if TYPE_CHECKING:
    from bs4 import Tag

_INTEGER = re.compile(r"\s*([-+]?\d{1,9})(?!\d)")
_LIST_STYLE = re.compile(r"(?:^|;)\s*list-style(?:-type)?\s*:[^;]*?([a-z-]+)\s*(?:;|$)", re.IGNORECASE)
_NONE = "none"
_NUMERALS: dict[str, Callable[[int], str]] = {
    "1": str,
    "a": counted_letters,
    "A": lambda number: counted_letters(number).upper(),
    "i": roman,
    "I": lambda number: roman(number).upper(),
    "decimal": str,
    "decimal-leading-zero": lambda number: f"{number:02}",
    "lower-alpha": counted_letters,
    "lower-latin": counted_letters,
    "upper-alpha": lambda number: counted_letters(number).upper(),
    "upper-latin": lambda number: counted_letters(number).upper(),
    "lower-roman": roman,
    "upper-roman": lambda number: roman(number).upper(),
    "lower-greek": greek,
}
_SIGNS = {"disc", "circle", "square", _NONE}  # of a list that is not numbered


def list_labels(page: "Tag") -> dict[int, str]:
    """Return the label of each item of the numbered lists, such as `9.`, by the id of its tag."""
    labels: dict[int, str] = {}
    for numbered in page.find_all("ol"):
        items = numbered.find_all("li", recursive=False)
        number = _integer(numbered, "start", len(items) if numbered.has_attr("reversed") else 1)
        for item in items:
            number = _integer(item, "value", number)
            style = _style(item) or _style(numbered)
            labels[id(item)] = "-" if style in _SIGNS else f"{_NUMERALS.get(style, str)(number)}."
            number += -1 if numbered.has_attr("reversed") else 1
    return labels


def counts_from_one(page: "Tag") -> bool:
    """Return whether the items of every list are simply 1, 2, 3."""
    labels = list_labels(page)
    return all(
        labels[id(item)] == f"{number}."
        for numbered in page.find_all("ol")
        for number, item in enumerate(numbered.find_all("li", recursive=False), start=1)
    )


def _integer(tag: "Tag", name: str, default: int) -> int:
    found = _INTEGER.match(str(tag.get(name, "")))
    return int(found[1]) if found else default


def _style(tag: "Tag") -> str:
    """Return how a list or an item says that it is numbered."""
    found = _LIST_STYLE.search(str(tag.get("style", ""))[:500])
    return found[1].lower() if found else str(tag.get("type", "")).strip()
