"""What each tool gives."""

from typing import Literal

from pydantic import BaseModel, Field

from local_rag.answer_records import FindKind, Verdict
from local_rag.passage_records import RowKind

# Whether the search model took part: where it is loading or missing, keywords alone have found the passages.
Dense = Literal["ready", "loading", "unavailable"]


class DifferingWords(BaseModel):
    """What a statement says, and what the document says in its place."""

    said: str
    written: str


class QuotedPlace(BaseModel):
    """Text of a document, word for word, and where it stands."""

    text: str
    location: str
    section: str


class StatementQuote(QuotedPlace):
    """A quotation for or against a statement, with its place."""

    differs: list[DifferingWords]


class CheckedStatement(BaseModel):
    """A statement of the text, its verdict, and the quotations that this stands on."""

    text: str
    verdict: Verdict
    quotes: list[StatementQuote]
    probability: float = Field(description="About how often such verdicts are right.")


class VerifyResults(BaseModel):
    """What `verify` gives; while `next` is not null, the text goes on."""

    statements: list[CheckedStatement]
    next: int | None = None


class Rank(BaseModel):
    """The rank, from 1, and the score in a list."""

    rank: int
    score: float


class Text(BaseModel):
    """A text and where it stands: `text` is quoted from the document, `generated_context` was written by a model."""

    id: str
    document: str
    title: str
    headings: list[str]
    location: str
    text: str
    generated_context: str = ""
    changed_since_indexed: bool = False


class FoundPassage(Text):
    """A passage, with its ranks by list."""

    kind: RowKind = Field(
        default="chunk",
        description="chunk: `text` is quoted. document: `text` is its beginning and its headings, put together.",
    )
    ranks: dict[str, Rank]
    newest_version: str | None = Field(
        default=None, description="Of an older version of a document: where the newest version is."
    )
    cut: bool = Field(default=False, description="Whether `text` is only its beginning; fetch the id for all of it.")


class SearchResults(BaseModel):
    """What `search` gives, best first."""

    results: list[FoundPassage]
    dense: Dense
    left_out: int = Field(default=0, description="How many more were found than there is room for.")
    note: str | None = None


class FoundDocument(BaseModel):
    """A document or a place in one: its best line, and how often it has what was looked for."""

    path: str
    line: int | None
    text: str
    occurrences: int


class FindResults(BaseModel):
    """What `find` gives; `count` counts all, also those that were `left_out` of the list for want of room."""

    kind: FindKind
    rule: str = Field(description="What counted, in words.")
    count: int
    documents: list[FoundDocument]
    complete: bool = Field(description="Whether all documents were examined.")
    left_out: int = 0
    notes: list[str] = Field(default_factory=list)


class ChangedValue(BaseModel):
    """A value before and after; either is empty if only one document has it."""

    kind: str
    before: str
    after: str


class DocumentChange(BaseModel):
    """A change with both quotations; one is null if only the other document says it."""

    kind: str
    about: str
    values: list[ChangedValue]
    before: QuotedPlace | None
    after: QuotedPlace | None


class Differences(BaseModel):
    """What `diff` gives, the important changes first."""

    before: str
    after: str
    changes: list[DocumentChange]
    left_out: int = 0


class BriefLine(QuotedPlace):
    """A line of a brief: `list` is empty for those that carry a document, else what the line is listed for."""

    list: str
    value: str


class BriefResults(BaseModel):
    """What `brief` gives: quotations only."""

    documents: list[str]
    lines: list[BriefLine]
    left_out: int = 0


class MissedQuestion(BaseModel):
    """A question that was refused, or whose answer was marked as wrong."""

    question: str
    asked: str
    outcome: Literal["refused", "wrong"]
    times: int


class MissingGroup(BaseModel):
    """Questions that ask for much the same, the document that came closest, and what would answer them."""

    questions: list[MissedQuestion]
    closest: str | None
    would_answer: str


class GapsResults(BaseModel):
    """What `gaps` gives, newest first."""

    gaps: list[MissingGroup]
    next: int | None = None


class DecidedAnswers(BaseModel):
    """What a gate decides of the marked answers."""

    right: int
    wrong: int
    quoted: int


class MarksResults(BaseModel):
    """What `marks` gives: what people say of answers, and what the gate, the least probability of an answer, is now."""

    right: int
    wrong: int
    until_refit: int
    shipped_from: float
    answer_from: float
    shipped: DecidedAnswers
    now: DecidedAnswers
    gate: str | None


class ExtractedCell(BaseModel):
    """What a document says to a question: a value that its quotation holds, or that it is not stated."""

    column: str
    state: Literal["stated", "unsure", "not stated", "not asked yet"]
    value: str = ""
    quotation: str = ""
    remark: str | None = None


class ExtractedRow(BaseModel):
    """A document with its cells."""

    document: str
    title: str
    location: str
    cells: list[ExtractedCell]


class ExtractResults(BaseModel):
    """What `extract` gives: rows from `start` on, and how many cells of all rows are not asked yet."""

    rows: list[ExtractedRow]
    documents: int
    missing: int = Field(description="If not 0, call again with the same arguments: what is asked is kept.")
    next: int | None = Field(default=None, description="The `start` of the rows that had no room; null at the end.")


class Fetched(Text):
    """What `fetch` gives: a text as it was indexed, from `start` to `end` of the document's characters."""

    start: int
    end: int
    length: int = Field(description="The characters of the whole document.")
    next: int | None = Field(default=None, description="The offset at which to go on; null at the end.")


class ListedDocument(BaseModel):
    """A document with what it is about, in its own words."""

    id: str
    title: str
    location: str
    about: str
    state: str
    date: str | None = None
    passages: int


class DocumentPage(BaseModel):
    """What `list_documents` gives, by path."""

    results: list[ListedDocument]
    next: str | None = Field(default=None, description="The cursor of the next page; null at the end.")


class StaleReason(BaseModel):
    """Why the index is not what it should be, and the command with which the user mends it."""

    reason: str
    command: str


class LibraryStatus(BaseModel):
    """What `status` gives."""

    library: str
    folders: list[str]
    documents: int
    passages: int
    generated_contexts: int
    missing_contexts: int
    models: dict[str, str]
    dense: Dense
    stale: list[StaleReason]


class CitedPassage(BaseModel):
    """A passage that an answer cites by its number, or that comes closest to one."""

    number: int | None = None
    id: str
    title: str
    location: str


class Quotation(BaseModel):
    """Text of a document, word for word, and the number of its citation."""

    text: str
    citation: int


class Answered(BaseModel):
    """What `ask` gives.

    The outcome is `answered`, `quoted` where the answer is doubtful and the text only quotes the documents, `refused`
    where they say nothing about the question, or `left` where only code was to answer. `answered` is true only for the
    first.
    """

    question: str
    outcome: Literal["answered", "quoted", "refused", "left"]
    answered: bool
    text: str = Field(description="The answer as Markdown, with remarks, sources and quotations below it.")
    understood_as: str = Field(description="What the question was understood to ask for.")
    remarks: list[str] = Field(description="What a reader must know of this answer; the text has them too.")
    probability: float | None = Field(description="How probable it is that the answer is right; null if unknown.")
    quotes: list[Quotation]
    citations: list[CitedPassage]
    closest: list[CitedPassage]
