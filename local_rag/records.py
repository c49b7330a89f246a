"""The plain frozen records that flow from stage to stage."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

DocumentKind = Literal["markdown", "text", "code"]
# What situates each chunk beside its title and headings: what sets its document apart where it can be mistaken for one
# of another, a generated sentence too, or nothing more; or not even the headings.
ContextMode = Literal["auto", "llm", "headings", "none"]
SITUATED = frozenset({"auto", "llm"})  # the modes in which chunks have contexts
# What a row of an index stands for: a part of a document, or all of it.
RowKind = Literal["chunk", "document"]
# What became of a generated sentence: used as it is, cut back, or dropped in favour of the headings. `apart` is what
# sets a document apart, said without a model; `unneeded` that nothing need be said.
ContextKind = Literal["llm", "repaired", "headings", "apart", "unneeded"]
WRITTEN = frozenset({"llm", "repaired", "apart"})  # the kinds that say something
Role = Literal["context", "answer", "embed", "rerank"]
Stage = Literal["read", "compare", "contextualize", "embed", "publish", "ask", "answer", "draft", "check"]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading and where it stands: `start` is a character offset into the document's text."""

    level: int
    title: str
    start: int


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a document says of where it comes from, each empty where it says nothing.

    `date` is written YYYY-MM-DD. All are bounded where they are read (`reading/provenance.py`).
    """

    url: str = ""
    date: str = ""
    author: str = ""
    tags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Say whether anything is known."""
        return bool(self.url or self.date or self.author or self.tags)


UNKNOWN = Provenance()


@dataclass(frozen=True, slots=True)
class Document:
    """A file as text.

    `kind` says how to split it, `language` names the programming language of code. `pages` holds the offset at which
    each page (PDF) or slide (PPTX) begins, empty where there are none. `is_source` is true when `text` has the same
    lines as the file, so that a line number may be cited; converted formats (HTML, DOCX ...) have no such lines. `note`
    says in a few words what of the file could not be read.
    """

    path: Path
    title: str
    text: str
    kind: DocumentKind
    language: str | None = None
    headings: tuple[Heading, ...] = ()
    pages: tuple[int, ...] = ()
    is_source: bool = True
    note: str = ""
    provenance: Provenance = UNKNOWN


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of a document: `text == document.text[start:end]`.

    `headings` are the titles above it, outermost first. `page` counts from 1, as do `line` and `end_line`;
    each is None where the document has no such thing.
    """

    position: int
    start: int
    end: int
    text: str
    headings: tuple[str, ...] = ()
    page: int | None = None
    line: int | None = None
    end_line: int | None = None


def heading_path(title: str, headings: Sequence[str]) -> str:
    """Say where a chunk stands in its document: title and headings above it, outermost first."""
    parts = [title, *(heading for heading in headings if heading != title)]
    return " > ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Filters:
    """Which documents a question is asked of; what is left empty lets all pass.

    `within` are globs, as in a .gitignore, below any root, or absolute paths; a folder stands for all below it. `types`
    are suffixes such as `pdf`. Of both one must fit, of `tags` all. A document's date, which is its own or else its
    file's, is not before `since`, and is before `before`.
    """

    within: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    since: date | None = None
    before: date | None = None
    tags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Say whether anything is asked for."""
        return bool(self.within or self.types or self.since or self.before or self.tags)


EVERYTHING = Filters()


def first_day(text: str) -> date:
    """Read a day as 2024-05-01, or the first one of a month or year that is given alone; raise ValueError."""
    return date.fromisoformat(text + "0000-01-01"[len(text) :] if len(text) in {4, 7} else text)


@dataclass(frozen=True, slots=True)
class Hit:
    """The rank (from 1) and score that one ranked list gave to a passage."""

    list_name: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk that was found, or several that follow each other, with the story of its ranks.

    `start` and `end` are character offsets into the document's text; `also_in` are the places of copies of it.
    `weak` says that the reranker finds that it hardly fits; None where it did not read it, or its scale is not known.
    One of the kind `document` stands for a whole document: its text is how the document begins and how it is divided,
    its context what a model has written about it, and its place the document's beginning, an empty span.
    """

    chunk_id: int
    path: str
    title: str
    text: str
    context: str
    context_kind: str
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

    @property
    def location(self) -> str:
        """Name the place as a reader would look it up: path:line, path page N, or the path alone."""
        if self.page is not None:
            return f"{self.path} page {self.page}"
        return f"{self.path}:{self.line}" if self.line is not None else self.path


@dataclass(frozen=True, slots=True)
class Citation:
    """A numbered source that the answer really cites."""

    number: int
    passage: Passage


@dataclass(frozen=True, slots=True)
class SentenceSupport:
    """A sentence of an answer: whether all its numbers and names occur in the sources it stands on, or what is missing.

    `score` is the best that the cross-encoder gives to the sentence with one of them, None without a cross-encoder.
    `removed` are the numbers that stood in it and name no source.
    """

    sentence: str
    supported: bool
    missing: tuple[str, ...]
    score: float | None
    citations: tuple[int, ...]
    removed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its checked citations; `answered` is false when the documents do not hold it.

    `passages` are those that were found, `read` what the model has read of them, in a prompt of `tokens` tokens,
    and `written` the tokens of the answer's text; `closest` the best of it where there is no answer. `log_odds` are
    those the model gives to the sources holding the answer, None when there was no source; below `threshold` there
    is no answer. `support` has one record a sentence, `changed_citations` the numbers that the check replaced in
    `text`, or on which a sentence without one stood, each with the new one. `look_alikes` are passages that read much
    like what is cited, of documents that the question may have meant as well.
    """

    question: str
    text: str
    answered: bool
    citations: tuple[Citation, ...] = ()
    passages: tuple[Passage, ...] = ()
    read: tuple[Passage, ...] = ()
    closest: tuple[Passage, ...] = ()
    removed_citations: tuple[int, ...] = ()
    support: tuple[SentenceSupport, ...] = ()
    log_odds: float | None = None
    threshold: float | None = None
    tokens: int = 0
    seconds: float = 0.0
    changed_citations: tuple[tuple[int, int], ...] = ()
    look_alikes: tuple[Passage, ...] = ()
    written: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """A question that was asked before in a conversation, and what was answered."""

    question: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was left out, and why.

    `kept` says that its last good version stays in the index; `lasting` that reading it again will not help.
    """

    path: Path
    reason: str
    kept: bool = False
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """What of a file that was read is missing from the library."""

    path: Path
    note: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage is; `detail` is a short remark for people."""

    stage: Stage
    done: int
    total: int
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """How a model wants to be used.

    `context_length` in tokens. `pooling` is None when the folder's own configuration decides. `answered_log_odds` are
    the log odds, of an answer model's Yes to "do the sources say it?", below which a question counts as unanswered.
    `int8` says that with int8 weights it finds as much. `fused_weight` is the weight that the fused rank has beside a
    reranker's own; 0 where its order stands alone. What a reranker scores further than `near` below the best is not
    read whole for an answer, and further than `answering.pipeline` widens it no line of it; 0 where that was not
    measured. What it scores below `weak_below` hardly fits the question; None where that was not measured. A question
    less similar than `new_subject_below`, by an embedder's cosine, to the one before it opens a new subject.
    """

    context_length: int
    query_prefix: str = ""
    passage_prefix: str = ""
    pooling: Literal["mean", "cls"] | None = None
    answered_log_odds: float = 0.0
    int8: bool = False
    fused_weight: float = 0.0
    near: float = 0.0
    weak_below: float | None = None
    new_subject_below: float = -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledModel(ModelUse):
    """A model on disk, ready to load.

    `path` is a GGUF file or a sentence-transformers folder, `identity` the SHA-256 that stands for its weights.
    """

    name: str
    role: Role
    path: Path
    identity: str
