"""The frozen records of documents: what a file says, how it is laid out, and how it is cut into chunks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_SHOWN_CHARACTERS = 60  # of a text, where a record is shown in one line
DocumentKind = Literal["markdown", "text", "code"]

Chunker = Literal["auto", "fixed", "recursive", "markdown", "code"]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; `start` is its character offset in the document's text.

    `end` is where a class or function of code ends; None if the section ends with the next heading of its level.
    """

    level: int
    title: str
    start: int
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table, as character offsets in the document's text: its start, the start of its first row, its end.

    Each line is a row. `columns` are the names of the columns; none if each row names them itself.
    """

    start: int
    rows: int
    end: int
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of a table as its file has them: numbered rows, `first_column` and the names of a sheet.

    `spanned` are the rows with a cell over several columns, `whole` those that consist of one such cell, and
    `uncomputed` the (row, column) of formulas without a stored value. `marked` rows are the header by the file's word.
    The file does not show the rows of `hidden_rows`, by number, and the `hidden_columns`, counted in the rows.
    """

    sheet: str
    rows: tuple[tuple[int, tuple[str, ...]], ...]
    first_column: int = 0
    spanned: frozenset[int] = frozenset()
    whole: frozenset[int] = frozenset()
    uncomputed: frozenset[tuple[int, int]] = frozenset()
    marked: int = 0
    hidden_rows: frozenset[int] = frozenset()
    hidden_columns: frozenset[int] = frozenset()


BETWEEN_CAPTIONS = " \u00b7 "  # in the name of a relation that has several


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation: its name, what it holds, and the unit of its numbers.

    `mixed` is true if the cells have different units, which stand in a column of their own after all others. `remarks`
    are sentences on how its cells were read, for answers that use them.
    """

    name: str
    kind: Literal["number", "date", "text"]
    unit: str = ""
    mixed: bool = False
    uncomputed: int = 0
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Relation:
    """A table of a document as typed rows.

    `cells` is its range in a sheet, such as A3:F36, or empty; `page` is that of a document with pages. `rows` counts
    those that are data, and `totals` those that sum others, which `blocks` hold too: each is compressed JSON of at most
    `ROWS_OF_BLOCK` rows, each with its number in the file, whether it is a total, and its values. `remarks` are
    sentences on the rows, for answers that stand on them.
    """

    name: str
    sheet: str
    cells: str
    page: int | None
    columns: tuple[Column, ...]
    rows: int
    totals: int = 0
    blocks: tuple[bytes, ...] = ()
    words: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


ROWS_OF_BLOCK = 2000


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin that a document states; a field is empty if the document does not state it.

    `date` is written YYYY-MM-DD. `reading/provenance.py` limits the length of all fields.
    """

    url: str = ""
    date: str = ""
    author: str = ""
    tags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether anything is known."""
        return bool(self.url or self.date or self.author or self.tags)


UNKNOWN = Provenance()

LinkKind = Literal["link", "embed", "answers", "copy"]


@dataclass(frozen=True, slots=True)
class Link:
    """A link to another document: by its name, or as a mail by the number of the mail that it `answers`.

    A `copy` is the same mail in another place; no document says so itself.
    """

    kind: LinkKind
    target: str


@dataclass(frozen=True, slots=True)
class Document:
    """A file as text.

    `kind` decides how it is split, and `language` is the programming language of code. `pages` holds the offset of each
    page (PDF) or slide (PPTX), and is empty for other formats; `labels` holds what the file calls each of them, empty
    where that is its number, and none if all are called so. `is_source` is true if `text` has the same lines as the
    file, so a line number can be cited; converted formats such as HTML and DOCX do not. Each of the `notes` says in a
    few words which part of the file is not in `text`; `reading/read.py` limits their number and length. `ocr` holds the
    spans of the text that were read by OCR, each with the confidence from 0 to 1, and `waiting` counts the pages that
    wait for it. `grids` are the cells of sheets. Others link to it by its `names`; `links` are its own.
    `quoted` is the span of the mail that a reply quotes below its own text.
    """

    path: Path
    title: str
    text: str
    kind: DocumentKind
    language: str | None = None
    headings: tuple[Heading, ...] = ()
    tables: tuple[Table, ...] = ()
    pages: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    is_source: bool = True
    notes: tuple[str, ...] = ()
    ocr: tuple[tuple[int, int, float], ...] = ()
    waiting: int = 0
    provenance: Provenance = UNKNOWN
    grids: tuple[Grid, ...] = ()
    names: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    quoted: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of a document: `text == document.text[start:end]`.

    `headings` are the titles above it, outermost first. `page`, `line` and `end_line` count from 1; each is None if the
    document has no pages or lines. `page_label` is what the file calls the page, empty if that is its number. A chunk
    that begins below the header of a table repeats it in `table_header`, as a row of Markdown; if it begins within a
    row, the line above says which row it is. `ocr` is the confidence, from 0 to 1, with which its text was read by OCR;
    None if none of it was.
    """

    position: int
    start: int
    end: int
    text: str
    headings: tuple[str, ...] = ()
    page: int | None = None
    line: int | None = None
    end_line: int | None = None
    table_header: str = ""
    ocr: float | None = None
    page_label: str = ""

    @property
    def full_text(self) -> str:
        """Return the text below the header of its table, as it is indexed and shown to a model."""
        return f"{self.table_header}\n{self.text}" if self.table_header else self.text


def read_by_ocr(confidence: float) -> str:
    """Say that a page was read by OCR, and with which confidence."""
    return f"read by OCR, {round(100 * confidence)} % sure"


def page_number(page: int, label: str = "") -> str:
    """Return a page as a reader would look it up: its number, or its label with the number, `iv (4 in the file)`."""
    return f"{label} ({page} in the file)" if label else str(page)


def heading_path(title: str, headings: Sequence[str]) -> str:
    """Return the title of a document and the headings above a chunk as one line, outermost first."""
    parts = [title, *(heading for heading in headings if heading != title)]
    return " > ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was skipped, and why.

    `kept` is true if its last good version stays in the index, and `lasting` if reading it again will not help.
    `waiting` is the number of its pages that OCR could read.
    """

    path: Path
    reason: str
    kept: bool = False
    lasting: bool = False
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Note:
    """A remark about the part of a file that is missing from the library."""

    path: Path
    note: str


def beginning_of(text: str) -> str:
    """Return how a text begins, in quotation marks, for the representation of a record."""
    line = " ".join(text.split())
    return repr(line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}...")
