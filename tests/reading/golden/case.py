"""A file of the golden set, what stands in it, and the check that a reader has lost or misplaced none of it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from local_rag.document_records import Document
from local_rag.reading.converters.pdf import Recognize
from local_rag.reading.read import parse

_RULE = re.compile(r"\s*\|(?:\s*:?-+:?\s*\|)+\s*")


@dataclass(frozen=True)
class Cell:
    """A cell with the header of its column, and a cell of the same row that tells the row from others."""

    value: str
    column: str
    row: str = ""


@dataclass(frozen=True)
class Case:
    """A file, and what a reader must find in it.

    `sentences` maps each sentence to the heading that it stands under, `""` for none. What may be left out is in
    `noted`, mapped to words of the note that says so. `absent` is no text of the document. `recognize` is what stands
    for OCR.
    """

    name: str
    build: Callable[[], bytes]
    sentences: Mapping[str, str] = field(default_factory=dict)
    cells: tuple[Cell, ...] = ()
    noted: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    recognize: Recognize | None = None


def problems(case: Case) -> list[str]:
    """Return what the reader has lost, invented or filed under a wrong header."""
    document = parse(Path(case.name), case.build(), recognize=case.recognize)
    text = _flat(document.text)
    found = [f"lost: {one}" for one in case.sentences if _flat(one) not in text]
    found += [f"not noted: {said}" for said in case.noted.values() if not any(said in note for note in document.notes)]
    found += [f"neither read nor left out: {one}" for one, said in case.noted.items() if one in text and said]
    found += [f"no text of the document: {one}" for one in case.absent if _flat(one) in text]
    for sentence, heading in case.sentences.items():
        above = _heading_above(document, sentence)
        if _flat(sentence) in text and above != heading:
            found.append(f"under {above!r} instead of {heading!r}: {sentence}")
    found += [f"not under {cell.column!r}: {cell.value}" for cell in case.cells if not _is_under(document, cell)]
    return found


def _flat(text: str) -> str:
    """Return a text on one line, without the marks of Markdown."""
    return " ".join(re.sub(r"[*_`>#|\\]+", " ", text).split())


def _heading_above(document: Document, sentence: str) -> str:
    words = r"[\s*_`>#|\\-]+".join(map(re.escape, _flat(sentence).split()))
    place = re.search(words, document.text)
    above = [one.title for one in document.headings if place and one.start <= place.start()]
    return above[-1] if above else ""


def _is_under(document: Document, cell: Cell) -> bool:
    """Say whether a cell stands under its header: in a line that names it, or in a column of pipes below it.

    A table that goes on on the next page has its header there only as a field of the document.
    """
    header: list[str] = []
    before, start = "", 0
    for line in document.text.split("\n"):
        table = next((one for one in document.tables if one.rows <= start < one.end), None)
        if _RULE.fullmatch(line):
            header = _columns(before)
        elif not line.lstrip().startswith("|"):
            if f"{cell.column}: {cell.value}" in line and cell.row in line:
                return True
            header = []
        elif (
            cell.value in _columns(line)
            and cell.row in line
            and (names := header or list(table.columns if table else ()))
        ):
            places = [place for place, value in enumerate(_columns(line)) if value == cell.value]
            return any(place < len(names) and names[place] == cell.column for place in places)
        before, start = line, start + len(line) + 1
    return False


def _columns(line: str) -> list[str]:
    return [one.strip().replace("\\|", "|") for one in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
