"""The frozen records that pass from stage to stage: documents, chunks, passages and answers."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from local_rag.plan_records import Plan

DocumentKind = Literal["markdown", "text", "code"]
Chunker = Literal["auto", "fixed", "recursive", "markdown", "code"]
# The context of each chunk. `auto`: a sentence by a model, and what distinguishes its document from similar ones, said
# by code, if it can be mistaken; `headings`: only title and headings; `none`: not even those.
ContextMode = Literal["auto", "headings", "none"]
# What a model writes about a chunk in the mode `auto`: the question that it answers, or a sentence that situates it.
WrittenForm = Literal["questions", "sentences"]
# What a row of an index represents: a part of a document or all of it.
RowKind = Literal["chunk", "document"]
# The origin of a context. `terms`: what distinguishes the document, said by code; `unneeded`: nothing, because the
# chunk cannot be mistaken; `model`: a sentence that a model wrote; `dropped`: none, because it was not good enough.
ContextKind = Literal["terms", "unneeded", "model", "dropped"]
Stage = Literal[
    "read",
    "compare",
    "contextualize",
    "embed",
    "publish",
    "ask",
    "answer",
    "draft",
    "check",
    "find",
    "extract",
    "verify",
]
# What a question asks of all documents: how many, which documents, or every place.
FindKind = Literal["count", "documents", "list"]

# What the documents say of a statement.
Verdict = Literal[
    "supported",
    "contradicted",
    "not there",
    "other document",
    "superseded",
    "not in these documents",
    "no claim",
]


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


_PLACE = re.compile(
    r"(?::\d{1,9}(?:-\d{1,9})?"
    r"| page (?:\d{1,9}|(?:(?! page )[^\n]){1,40} \(\d{1,9} in the file\))(?:, .{1,80})?)\Z"
)


def page_number(page: int, label: str = "") -> str:
    """Return a page as a reader would look it up: its number, or its label with the number, `iv (4 in the file)`."""
    return f"{label} ({page} in the file)" if label else str(page)


def path_of(location: str) -> str:
    """Return the path that a location begins with: without line, page, and how the page was read."""
    return _PLACE.sub("", location)


def heading_path(title: str, headings: Sequence[str]) -> str:
    """Return the title of a document and the headings above a chunk as one line, outermost first."""
    parts = [title, *(heading for heading in headings if heading != title)]
    return " > ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk of a document, or the row that stands for the whole document.

    `terms` is what code says of it and `sentence` what a model wrote about it; either may be empty.
    """

    id: int
    document_id: int
    path: str
    title: str
    chunk: Chunk
    terms: str
    sentence: str
    provenance: Provenance = UNKNOWN
    kind: RowKind = "chunk"
    sha256: str = ""  # of the document


@dataclass(frozen=True, slots=True)
class DocumentFacts:
    """What filters look at; `date` is the document's own, empty if it has none."""

    id: int
    path: str
    modified_ns: int
    date: str
    tags: tuple[str, ...]


_SHOWN_CHARACTERS = 60  # of a text, where a record is shown in one line


def _beginning(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}...")


@dataclass(frozen=True, slots=True)
class Hit:
    """The rank (from 1) and score that one ranked list gave to a passage."""

    list_name: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True, repr=False)
class Passage:
    """A chunk that was found, or several adjacent ones, with its rank in each list.

    `start` and `end` are character offsets in the document's text, `table_header` and `ocr` are as in a chunk, and
    `also_in` holds the locations of copies. `weak`
    is true if the reranker's score shows that the passage hardly fits, and None if the reranker did not score it or its
    scale is unknown. `terms` is what code says distinguishes its document, `sentence` what a model wrote about it; both
    may be empty. A passage of the kind `document` represents a whole document: its text is the beginning and the
    outline of the document, and its span is empty at the beginning.
    `sha256` is that of the document's file. `newest` is the path of the newest version if the document is an older one.
    `best` is the span of the sentence in the text that fits a question best, empty if that is not known. `names` are
    words of a question that say which document it is from, and that the passage itself lacks.
    """

    chunk_id: int
    path: str
    title: str
    text: str
    terms: str
    sentence: str
    headings: tuple[str, ...]
    page: int | None
    line: int | None
    end_line: int | None
    score: float
    hits: tuple[Hit, ...] = ()
    start: int = 0
    end: int = 0
    also_in: tuple[str, ...] = ()
    provenance: Provenance = UNKNOWN
    weak: bool | None = None
    kind: RowKind = "chunk"
    table_header: str = ""
    sha256: str = ""
    ocr: float | None = None
    newest: str = ""
    best: tuple[int, int] = (0, 0)
    names: tuple[str, ...] = ()
    page_label: str = ""

    def __repr__(self) -> str:
        return f"<Passage {self.location} {_beginning(self.text)} score {self.score:.3g}>"

    @property
    def context(self) -> str:
        """Return the sentence of the model, or what code says if there is none."""
        return self.sentence or self.terms

    @property
    def context_by(self) -> Literal["model", "terms"] | None:
        """Return who says the context, None if there is none."""
        return "model" if self.sentence else "terms" if self.terms else None

    @property
    def location(self) -> str:
        """Return the location as a reader would look it up: `path:line`, `path page N`, or only the path.

        A page with a label is called by it: `path page iv (4 in the file)`. That of scanned text says how it was read:
        `path page N, read by OCR, 97 % sure`.
        """
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        place = place if self.page is None else f"{self.path} page {page_number(self.page, self.page_label)}"
        return place if self.ocr is None else f"{place}, {read_by_ocr(self.ocr)}"


def found_passage(stored: StoredChunk, score: float, hits: tuple[Hit, ...], mode: ContextMode = "auto") -> Passage:
    """Make a passage of a stored chunk, with the contexts that are part of an index of this mode."""
    chunk = stored.chunk
    return Passage(
        chunk_id=stored.id,
        path=stored.path,
        title=stored.title,
        text=chunk.text,
        terms=stored.terms if mode == "auto" else "",
        sentence=stored.sentence if mode == "auto" else "",
        headings=chunk.headings,
        page=chunk.page,
        line=chunk.line,
        end_line=chunk.end_line,
        score=score,
        hits=hits,
        start=chunk.start,
        end=chunk.end,
        provenance=stored.provenance,
        kind=stored.kind,
        table_header=chunk.table_header,
        ocr=chunk.ocr,
        sha256=stored.sha256,
        page_label=chunk.page_label,
    )


@dataclass(frozen=True, slots=True)
class Citation:
    """A numbered source that an answer cites."""

    number: int
    passage: Passage


@dataclass(frozen=True, slots=True)
class SentenceSupport:
    """A sentence of an answer: whether all its numbers and names occur in what it cites, and which are `missing`.

    `citations` are the sources whose units the sentence stands on; without any, nothing in the sources supports it.
    """

    sentence: str
    supported: bool
    missing: tuple[str, ...]
    citations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Quote:
    """Text of a document, word for word, the number of its source, and its span in the passage."""

    text: str
    citation: int
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Shown:
    """What a model was shown of a source; `citation` is the number of the source."""

    citation: int
    text: str


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """A document or a place in one: its best line as a passage, and how often it has what was looked for."""

    passage: Passage
    occurrences: int


@dataclass(frozen=True, slots=True, repr=False)
class Found:
    """What was found in all documents for a question that counts or lists.

    `rule` says in words what counted, and `count` how many documents were found, or how many places if `by_document` is
    false. `complete` is false if only a part of the documents was examined; `notes` say which, one sentence each.
    """

    question: str
    kind: FindKind
    rule: str
    count: int
    places: tuple[FoundPlace, ...] = ()
    complete: bool = True
    by_document: bool = True
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Found {self.count} that {self.rule}>"


@dataclass(frozen=True, slots=True)
class VersionValue:
    """What another version of a quoted document says: its date, the file, the line, and the number of its citation.

    A long line is cut. `newer` is true if the version is newer than the quoted one.
    """

    date: str
    path: str
    text: str
    citation: int
    newer: bool = False


CORRECTED = 'Searched for "{searched}" instead of "{typed}".'


@dataclass(frozen=True, slots=True)
class Correction:
    """A word of a question that stands in no document, and what was searched instead."""

    typed: str
    searched: str

    def __str__(self) -> str:
        """Return it as one sentence."""
        return CORRECTED.format(searched=self.searched, typed=self.typed)


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table that a value was computed from: its file, its name in SQL, its sheet and cells, or the page.

    `row` is the number of the first row that the value stands on.
    """

    path: str
    title: str
    table: str
    document_id: int = 0
    row: int = 0
    sheet: str = ""
    cells: str = ""
    page: int | None = None
    page_label: str = ""

    @property
    def place(self) -> str:
        """Return where it is in its file, empty where the file is the table."""
        sheet = f"sheet {self.sheet}" if self.sheet else ""
        page = f"page {page_number(self.page, self.page_label)}" if self.page else ""
        return ", ".join(filter(None, (sheet, self.cells, page)))


@dataclass(frozen=True, slots=True)
class TableValue:
    """A value of a group, or of one row, by its label."""

    label: str
    value: str | int | float | None
    unit: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class TableAnswer:
    """What code computed from the rows of tables for a question; no model computes.

    `value` is the one that is asked for, None if there are several, which are `values`. `said` tells in one line what
    was computed over which rows, with names and values between asterisks. `rows` are those that it stands on, with the
    `columns` of the table and their `units`, at most `MOST_TABLE_ROWS` of the `count`. `sql` is the SELECT that gives
    the value, `rows_sql` that of all its rows. `notes` say what is missing, one sentence each.
    """

    value: str | int | float | None
    unit: str
    said: str
    values: tuple[TableValue, ...] = ()
    columns: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    rows: tuple[tuple[str | int | float | None, ...], ...] = ()
    count: int = 0
    sources: tuple[TableSource, ...] = ()
    sql: str = ""
    rows_sql: str = ""
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<TableAnswer {self.value} {self.unit} {self.said}>"


MOST_TABLE_ROWS, SHOWN_TABLE_ROWS = 10_000, 20  # kept with an answer, and shown below it

Outcome = Literal["answered", "quoted", "refused", "left"]


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """What came of a question.

    The outcome is `answered`; or `quoted` if the answer is doubtful, and `text` only quotes what the documents say; or
    `refused` if nothing in them is close; or `left` if only code was to answer, and cannot. `citations` are the sources
    that the text cites, and `quotes` what it stands on. `passages` are all passages found, `read` those of which the
    model was shown something, `shown`, in a prompt of `tokens` tokens; 0 tokens if no answer from them could be
    probable, so that the model was not asked. `closest` are
    the best passages if the question was refused. `written` counts tokens of the text. `probability` is that of the
    answer to be right, from 0 to 1, None if the model is not calibrated, and `threshold` the least probability of an
    answer that is given. `log_odds` is the model's own confidence that the answer is right, None if it was not asked
    for it; `reader_log_odds` is what the reader says of the passage that it stands on, None without a reader. `support`
    has one record per sentence of an answer. `look_alikes` are passages much like the cited ones from other documents
    that the question may have meant. `found` is what code found in all documents if the question counts or lists; no
    model takes part in such an answer. `versions` is what other versions of a quoted document say instead, newest
    first; `text` ends with it. `reason` says why an answer is only quoted. `corrections` are the words that were
    searched instead of mistyped ones. `table` is what code computed from rows; no model takes part in that. `named` are
    the paths of documents that the text may name without citing them. `plan` is what the question was understood to ask
    for.
    """

    question: str
    text: str
    outcome: Outcome
    citations: tuple[Citation, ...] = ()
    quotes: tuple[Quote, ...] = ()
    shown: tuple[Shown, ...] = ()
    passages: tuple[Passage, ...] = ()
    read: tuple[Passage, ...] = ()
    closest: tuple[Passage, ...] = ()
    support: tuple[SentenceSupport, ...] = ()
    probability: float | None = None
    threshold: float | None = None
    log_odds: float | None = None
    reader_log_odds: float | None = None
    tokens: int = 0
    seconds: float = 0.0
    look_alikes: tuple[Passage, ...] = ()
    written: int = 0
    found: Found | None = None
    versions: tuple[VersionValue, ...] = ()
    corrections: tuple[Correction, ...] = ()
    table: TableAnswer | None = None
    named: tuple[str, ...] = ()
    plan: Plan | None = None
    reason: str = ""

    def __repr__(self) -> str:
        return f"<Answer {self.outcome} {_beginning(self.text)} citations {len(self.citations)}>"

    def _repr_html_(self) -> str:
        """Show the answer with what it cites in a notebook; nothing of a text acts as HTML."""
        from html import escape  # only for notebooks

        shown = "".join(
            f'<li value="{one.number}">{escape(one.passage.location)}'
            f"<blockquote>{escape(one.passage.text)}</blockquote></li>"
            for one in self.citations
        )
        return f'<div style="white-space: pre-wrap">{escape(self.text)}<ol>{shown}</ol></div>'

    @property
    def answered(self) -> bool:
        """Return whether an answer was given, not only a quotation."""
        return self.outcome == "answered"


@dataclass(frozen=True, slots=True)
class Written:
    """Text of an answer that is being written: the next piece, or with `replaces` all that stands from now on."""

    text: str
    replaces: bool = False

    def __str__(self) -> str:
        """Return the text."""
        return self.text


@dataclass(frozen=True, slots=True)
class BeingRead:
    """How many passages the model reads now, and in how many seconds it will have answered; None if that is unknown."""

    passages: int
    seconds: float | None


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


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a stage; `detail` is a short remark for the user."""

    stage: Stage
    done: int
    total: int
    detail: str = ""


OnProgress = Callable[[Progress], None]


def ignore(_event: object) -> None:
    """Do nothing with what is told."""
