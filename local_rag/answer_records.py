"""The frozen records of answers: what is said, what it stands on, and what code has computed."""

from dataclasses import dataclass
from typing import Literal

from local_rag.document_records import beginning_of, page_number
from local_rag.passage_records import Passage, path_of
from local_rag.plan_records import Plan

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
        return f"<Answer {self.outcome} {beginning_of(self.text)} citations {len(self.citations)}>"

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

    @property
    def documents(self) -> frozenset[tuple[str, str]]:
        """Return SHA-256 and path of each document whose text it holds; of those that it only names, the path alone.

        Whatever keeps an answer or its question records these, so that both go when such a document is erased.
        """
        cited = (citation.passage for citation in self.citations)
        listed = (place.passage for place in self.found.places) if self.found else ()
        passages: list[Passage] = [*self.read, *self.closest, *self.look_alikes, *cited, *listed]
        named = {*self.named, *(one.path for one in self.versions)}
        named |= {path_of(location) for passage in passages for location in passage.also_in}
        named |= {passage.newest for passage in passages if passage.newest}
        named |= {one.path for one in self.table.sources} if self.table else set()
        return frozenset({("", path) for path in named} | {(passage.sha256, passage.path) for passage in passages})


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
