"""What is stored of a whole document: its row in the index, and by what its versions are recognised.

The row holds its first sentences and its parts. Versions have keys in common, and a date from which each is in force.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from local_rag.document_records import Chunk, Document
from local_rag.retrieval.version_families import date_of_name, key_words, sketch
from local_rag.text.dates import find_dates

POSITION = -1  # of the row: before the chunks
_BEGINNING = 4000  # characters of a document that the row is made from

_SENTENCES, _LONGEST = 2, 240
_MOST_PARTS, _LONGEST_PARTS = 6, 160
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[^\sa-z])")
_NO_PROSE = re.compile(r"\s*(?:#{1,6}\s|[=\-*_]{3,}\s*$|\||```|~~~|!\[|<)")
_MARKS = re.compile(r"^\s*(?:[-*+>]\s+|\d+[.)]\s+)|\*\*|__|`")


def document_row(title: str, beginning: str, chunks: Sequence[Chunk]) -> Chunk:
    """Return the row that stands for a whole document; its location is the beginning of the document."""
    parts = (heading for chunk in chunks for heading in chunk.headings[:2])
    first = chunks[0]
    text = describe(title, beginning, parts) or _cut(" ".join(beginning.split()), _LONGEST)
    return Chunk(POSITION, 0, 0, text, (), first.page, first.line, None)


def document_rows(read: Iterable[tuple[int, Document, Sequence[Chunk]]]) -> Iterator[tuple[int, Chunk]]:
    """Yield the id of each document that has chunks, with the row that stands for it."""
    for document_id, document, chunks in read:
        if chunks:
            yield document_id, document_row(document.title, document.text[:_BEGINNING], chunks)


def describe(title: str, beginning: str, headings: Iterable[str]) -> str:
    """Describe a document in its own words: its first sentences, and its parts if it has several."""
    sentences = islice(_sentences(beginning), _SENTENCES)
    about = _cut(" ".join(sentences), _LONGEST)
    parts = [heading for heading in dict.fromkeys(headings) if heading != title]
    if len(parts) > 1:
        outline = _cut("; ".join(parts[:_MOST_PARTS]), _LONGEST_PARTS)
        about = f"{about} Parts: {outline}{'; ...' if len(parts) > _MOST_PARTS else ''}".strip()
    return about


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of prose in a text, without headings, tables, code fences and Markdown marks."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [_MARKS.sub("", line) for line in paragraph.splitlines() if not _NO_PROSE.match(line)]
        prose = " ".join(" ".join(lines).split())
        yield from filter(None, _SENTENCE_END.split(prose))


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1].rpartition(' ')[0] or text[: length - 1]}…"


_IN_FORCE = re.compile(
    r"\b(?:in\s+force|effective|valid|applies|applicable|last\s+(?:updated|revised|changed)|updated|revised|issued|"
    r"version\s+of|date|dated|as\s+of|approved|published)\b(?:\s+(?:date|on|from|as\s+of|since|with\s+effect\s+from))?",
    re.IGNORECASE,
)
_SAYS_DATE, _NEAR = 1500, 6  # characters of a text that may say its date, and between the words and the date


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
    dated = date_in_force(document.text[:_SAYS_DATE]) or (own if own[:4] == named[:4] or not named else named)
    return VersionKeys(key_words(document.path.stem), key_words(document.title), dated, sketch(document.text))


def date_in_force(text: str) -> str:
    """Return the date from which a text says that it is in force, or when it was issued; empty if it says none."""
    dates = [date for date in find_dates(text) if date.year]
    for words in _IN_FORCE.finditer(text):
        for date in dates:
            if 0 <= date.start - words.end() <= _NEAR:
                return date.iso
    return ""
