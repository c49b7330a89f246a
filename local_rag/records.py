"""The frozen records that pass from stage to stage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from local_rag.errors import QuestionError

DocumentKind = Literal["markdown", "text", "code"]
Chunker = Literal["auto", "fixed", "recursive", "markdown", "code"]
# The context of each chunk. `auto`: a sentence by a model, and what distinguishes its document from similar ones, said
# by code, if it can be mistaken; `headings`: only title and headings; `none`: not even those.
ContextMode = Literal["auto", "headings", "none"]
# What a row of an index represents: a part of a document or all of it.
RowKind = Literal["chunk", "document"]
# The origin of a context. `terms`: what distinguishes the document, said by code; `unneeded`: nothing, because the
# chunk cannot be mistaken; `model`: a sentence that a model wrote; `dropped`: none, because it was not good enough.
ContextKind = Literal["terms", "unneeded", "model", "dropped"]
Role = Literal["context", "answer", "embed", "rerank"]
Stage = Literal["read", "compare", "contextualize", "embed", "publish", "ask", "answer", "draft", "check", "find"]
# What a question asks of all documents: how many, which documents, or every place.
FindKind = Literal["count", "documents", "list"]


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


@dataclass(frozen=True, slots=True)
class Document:
    """A file as text.

    `kind` decides how it is split, and `language` is the programming language of code. `pages` holds the offset of each
    page (PDF) or slide (PPTX), and is empty for other formats. `is_source` is true if `text` has the same lines as the
    file, so a line number can be cited; converted formats such as HTML and DOCX do not. Each of the `notes` says in a
    few words which part of the file is not in `text`; `reading/read.py` limits their number and length. `ocr` holds the
    spans of the text that were read by OCR, each with the confidence from 0 to 1, and `waiting` counts the pages that
    wait for it.
    """

    path: Path
    title: str
    text: str
    kind: DocumentKind
    language: str | None = None
    headings: tuple[Heading, ...] = ()
    tables: tuple[Table, ...] = ()
    pages: tuple[int, ...] = ()
    is_source: bool = True
    notes: tuple[str, ...] = ()
    ocr: tuple[tuple[int, int, float], ...] = ()
    waiting: int = 0
    provenance: Provenance = UNKNOWN


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of a document: `text == document.text[start:end]`.

    `headings` are the titles above it, outermost first. `page`, `line` and `end_line` count from 1; each is None if the
    document has no pages or lines. A chunk that begins below the header of a table repeats it in `table_header`, as a
    row of Markdown; if it begins within a row, the line above says which row it is. `ocr` is the confidence, from 0 to
    1, with which its text was read by OCR; None if none of it was.
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

    @property
    def full_text(self) -> str:
        """Return the text below the header of its table, as it is indexed and shown to a model."""
        return f"{self.table_header}\n{self.text}" if self.table_header else self.text


def read_by_ocr(confidence: float) -> str:
    """Say that a page was read by OCR, and with which confidence."""
    return f"read by OCR, {round(100 * confidence)} % sure"


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


@dataclass(frozen=True, slots=True)
class Filters:
    """Limits on the documents to search; an empty field does not limit.

    `within` holds globs as in a .gitignore, below any root, or absolute paths; a folder includes everything below it.
    `types` holds suffixes such as `pdf`. At least one of each must match, and all of `tags`. The date of a document is
    its own or else that of its file; it must be on or after `since` and earlier than `before`. With `as_of`, only the
    versions of documents that were valid on that day pass.
    """

    within: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    since: date | None = None
    before: date | None = None
    tags: tuple[str, ...] = ()
    as_of: date | None = None

    def __bool__(self) -> bool:
        """Return whether any limit is set."""
        return bool(self.within or self.types or self.since or self.before or self.tags or self.as_of)

    @classmethod
    def parse(
        cls,
        *,
        within: Sequence[str] = (),
        types: Sequence[str] = (),
        since: str | None = None,
        before: str | None = None,
        tags: Sequence[str] = (),
        as_of: str | None = None,
    ) -> "Filters":
        """Return the filters that texts name, without empty ones; raise QuestionError for a text that is not a day."""

        def texts(given: Sequence[str]) -> tuple[str, ...]:
            return tuple(text.strip() for text in given if text.strip())

        days = _day("since", since), _day("before", before)
        return cls(texts(within), texts(types), *days, texts(tags), _day("as_of", as_of))


def _day(name: str, text: str | None) -> date | None:
    if not (given := (text or "").strip()):
        return None
    try:
        return first_day(given)
    except ValueError:
        raise QuestionError(f"{name} is {given[:20]!r}; give a date such as 2024-05-01, 2024-05 or 2024.") from None


EVERYTHING = Filters()

PersonRole = Literal["reader", "editor", "owner"]


@dataclass(frozen=True, slots=True)
class Person:
    """Someone who may use a served library: what of it, and what this person may do.

    A `reader` asks and reads; an `editor` adds documents and questions for evaluation too; an `owner` may do all. The
    `id` is never used twice; it is empty for who holds the server's own token, or is this machine's user.
    """

    id: str
    name: str
    role: PersonRole
    limits: Filters = EVERYTHING

    def may(self, role: PersonRole) -> bool:
        """Return whether this person has a role, or one that may do more."""
        return PERSON_ROLES.index(self.role) >= PERSON_ROLES.index(role)


PERSON_ROLES: tuple[PersonRole, ...] = ("reader", "editor", "owner")
HOST = Person("", "", "owner")  # who serves the library


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOptions:
    """How to answer a question.

    `passages` is how many of the best passages the model is shown whole; with None it is shown the best parts of them.
    `rerank` uses the reader, where the profile has one. `strict` quotes instead of giving an answer with a
    number or name that its quotation lacks. `rewrite` also searches for a follow-up as the model rewrites it, which
    takes a model of 3B. `anyway` answers even if the answer is doubtful.
    """

    passages: int | None = None
    rerank: bool = True
    filters: Filters = EVERYTHING
    strict: bool = True
    rewrite: bool = False
    anyway: bool = False


DEFAULT_OPTIONS = AskOptions()


def first_day(text: str) -> date:
    """Return a day written as 2024-05-01, or the first day of a month or year; raise ValueError for other text."""
    return date.fromisoformat(text + "0000-01-01"[len(text) :] if len(text) in {4, 7} else text)


@dataclass(frozen=True, slots=True)
class Hit:
    """The rank (from 1) and score that one ranked list gave to a passage."""

    list_name: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk that was found, or several adjacent ones, with its rank in each list.

    `start` and `end` are character offsets in the document's text, `table_header` and `ocr` are as in a chunk, and
    `also_in` holds the locations of copies. `weak`
    is true if the reranker's score shows that the passage hardly fits, and None if the reranker did not score it or its
    scale is unknown. `terms` is what code says distinguishes its document, `sentence` what a model wrote about it; both
    may be empty. A passage of the kind `document` represents a whole document: its text is the beginning and the
    outline of the document, and its span is empty at the beginning.
    `sha256` is that of the document's file. `newest` is the path of the newest version if the document is an older one.
    `best` is the span of the sentence in the text that fits a question best, empty if that is not known.
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

        That of scanned text says how it was read: `path page N, read by OCR, 97 % sure`.
        """
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        place = place if self.page is None else f"{self.path} page {self.page}"
        return place if self.ocr is None else f"{place}, {read_by_ocr(self.ocr)}"


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


@dataclass(frozen=True, slots=True)
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


Outcome = Literal["answered", "quoted", "refused"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a question.

    The outcome is `answered`; or `quoted` if the answer is doubtful, and `text` only quotes what the documents say; or
    `refused` if nothing in them is close. `citations` are the sources that the text cites, and `quotes` what it stands
    on. `passages` are all passages found, `read` those of which the model was shown something, `shown`, in a prompt of
    `tokens` tokens; 0 tokens if no answer from them could be probable, so that the model was not asked. `closest` are
    the best passages if the question was refused. `written` counts tokens of the text. `probability` is that of the
    answer to be right, from 0 to 1, None if the model is not calibrated, and `threshold` the least probability of an
    answer that is given. `log_odds` is the model's own confidence that the answer is right, None if it was not asked
    for it. `support` has one record per sentence of an answer. `look_alikes` are passages much like the cited ones from
    other documents that the question may have meant. `found` is what code found in all documents if the question counts
    or lists; no model takes part in such an answer. `versions` is what other versions of a quoted document say
    instead, newest first; `text` ends with it. `corrections` are the words that were searched instead of mistyped ones.
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
    tokens: int = 0
    seconds: float = 0.0
    look_alikes: tuple[Passage, ...] = ()
    written: int = 0
    found: Found | None = None
    versions: tuple[VersionValue, ...] = ()
    corrections: tuple[Correction, ...] = ()

    @property
    def answered(self) -> bool:
        """Return whether an answer was given, not only a quotation."""
        return self.outcome == "answered"


@dataclass(frozen=True, slots=True)
class Written:
    """Text of an answer that is being written: the next piece, or with `replaces` all that stands from now on."""

    text: str
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of a conversation and its answer."""

    question: str
    answer: str = ""


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


@dataclass(frozen=True, slots=True)
class Calibration:
    """How probable it is that an answer is right, by signals of its model: a logistic regression.

    `recipe` names the prompt it was fitted for; with another prompt it says nothing. `weights` belong to the signals by
    name. An answer is given if its probability is at least `answer_from`, and nothing is quoted below `quote_from`.
    """

    recipe: str
    bias: float
    weights: Mapping[str, float]
    answer_from: float
    quote_from: float


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """How a model is asked to answer: the `request` that ends its prompt, and the `refusal` that it was trained for.

    The first token of the refusal says, before anything is written, whether the sources answer the question. A model
    without a refusal is asked instead whether its answer is right.
    """

    request: str
    refusal: str = ""


PLAIN_FORM = AnswerForm("Answer the question in one or two short sentences.")


@dataclass(frozen=True, slots=True)
class ContextForm:
    """How a model is asked to write the context of a chunk: the `request` that ends its prompt.

    The `opening` is the beginning of its sentence, which it goes on with; a model that was trained to write contexts
    needs none.
    """

    request: str
    opening: str = ""


# A request of half the length made contexts shorter and chunks slightly harder to find: docs/results.md.
PLAIN_CONTEXT_FORM = ContextForm(
    request="Please give a short succinct context to situate the last chunk within the overall document for the "
    "purposes of improving search retrieval of the chunk. Answer only with the succinct context, in one sentence, and "
    "nothing else.",
    opening="This chunk",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """How to use a model."""

    context_length: int  # in tokens
    query_prefix: str = ""
    passage_prefix: str = ""
    # Named as in sentence-transformers; None: the model's own configuration decides.
    pooling: Literal["mean", "cls", "lasttoken"] | None = None
    calibration: Calibration | None = None  # of an answer model
    form: AnswerForm = PLAIN_FORM  # of an answer model
    context_form: ContextForm = PLAIN_CONTEXT_FORM  # of a context model
    int8: bool = False  # finds as much with int8 weights
    fused_weight: float = 0.0  # of the fused rank beside a reranker's own; 0: only the reranker's order counts
    weak_below: float | None = None  # a passage with a lower reranker score hardly fits; None: not measured
    # A passage is about a subject if its cosine and that of its closest sentences add up to this; None: not measured.
    about_from: float | None = None
    # A passage with at least this cosine is close to a question with which it shares no word; None: not measured.
    close_from: float | None = None
    # A question whose cosine to the one before it, by an embedder, is lower than this begins a new subject.
    new_subject_below: float = -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledModel(ModelUse):
    """A model on disk, ready to load."""

    name: str
    role: Role
    path: Path  # a GGUF file or a sentence-transformers folder
    identity: str  # the SHA-256 that identifies its weights
    engine: str = ""  # the address of the engine that runs it; `path` is then only its name
    adapter: Path | None = None  # changes what a generator says
    base: str = ""  # the identity of the model that the adapter changes
