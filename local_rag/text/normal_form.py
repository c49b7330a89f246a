"""Bring text into a normal form of Unicode, in linear time whatever the text."""

import re
import unicodedata
from itertools import pairwise
from typing import Literal

# Marks on letters, among other signs. They are sorted by insertion, so many on one letter take quadratic time; people
# write a few, and Unicode's stream-safe format allows 30.
_MANY_MARKS = re.compile(r"(?:[^\w\x00-\x7f]|[\uff9e\uff9f]){64}")


def normalize(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """Return a text in a normal form; a row of marks longer than any letter has is normalized in pieces."""
    if text.isascii():
        return text
    cuts = [0, *(found.end() for found in _MANY_MARKS.finditer(text)), len(text)]
    pieces = (text[start:end] for start, end in pairwise(cuts))
    return "".join(unicodedata.normalize(form, piece) for piece in pieces)
