"""Make text from documents and web pages safe to print on a terminal."""

import json
import re
from collections.abc import Mapping

# C0 (but tab and newline), DEL and C1 can move the cursor or recolour; bidirectional controls reorder what is read;
# lone surrogates, from file names that are not UTF-8, cannot be printed at all.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_BREAKS = re.compile("[\n\t\u2028\u2029]")


def printable(text: str) -> str:
    """Replace what a terminal would obey or cannot print, other than newline and tab, by U+FFFD."""
    return _CONTROLS.sub("\ufffd", text)


def one_line(text: str) -> str:
    """Make a name or title printable on one line, so that it cannot pass for several."""
    return printable(_BREAKS.sub(" ", text))


def printable_json(value: object, *, indent: int | None = None) -> str:
    """Write JSON with everything readable but what a terminal would obey, which is escaped: nothing is lost."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def describe_contexts(counts: Mapping[str, int]) -> list[str]:
    """Say how many contexts there are of each kind that there is."""
    kinds = {"llm": "as generated", "repaired": "repaired", "headings": "replaced by the headings"}
    return [f"{counts[kind]} {text}" for kind, text in kinds.items() if counts.get(kind)]
