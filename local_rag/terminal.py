"""Make text from documents and web pages safe to print on a terminal."""

import re

# C0 (but tab and newline), DEL and C1 can move the cursor or recolour; bidirectional controls reorder what is read;
# lone surrogates, from file names that are not UTF-8, cannot be printed at all.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Replace what a terminal would obey or cannot print, other than newline and tab, by U+FFFD."""
    return _CONTROLS.sub("\ufffd", text)
