"""Compute the keys by which the versions of a document are found, and the date from which it is in force."""

import re
from dataclasses import dataclass

from local_rag.records import Document
from local_rag.retrieval.version_names import date_of_name, key_words, sketch
from local_rag.text.dates import find_dates

_IN_FORCE = re.compile(
    r"\b(?:in\s+force|effective|valid|applies|applicable|last\s+(?:updated|revised|changed)|updated|revised|issued|"
    r"version\s+of|date|dated|as\s+of|approved|published)\b(?:\s+(?:date|on|from|as\s+of|since|with\s+effect\s+from))?",
    re.IGNORECASE,
)
_BEGINNING, _NEAR = 1500, 6  # characters of a text that may say its date, and between the words and the date


@dataclass(frozen=True, slots=True)
class VersionKeys:
    """What versions have in common, and the date that orders them.

    `name` and `title` are words without years and numbers of versions. `dated` is the date that the document states,
    written YYYY, YYYY-MM or YYYY-MM-DD; empty if it states none.
    """

    name: str
    title: str
    dated: str
    sketch: bytes


def version_keys(document: Document) -> VersionKeys:
    """Return the keys of a document."""
    named = date_of_name(document.path.stem) or date_of_name(document.title)
    own = document.provenance.date
    dated = date_in_force(document.text[:_BEGINNING]) or (own if own[:4] == named[:4] or not named else named)
    return VersionKeys(key_words(document.path.stem), key_words(document.title), dated, sketch(document.text))


def date_in_force(text: str) -> str:
    """Return the date from which a text says that it is in force, or when it was issued; empty if it says none."""
    dates = [date for date in find_dates(text) if date.year]
    for words in _IN_FORCE.finditer(text):
        for date in dates:
            if 0 <= date.start - words.end() <= _NEAR:
                return f"{date.year:04}-{date.month:02}" + (f"-{date.day:02}" if date.day else "")
    return ""
