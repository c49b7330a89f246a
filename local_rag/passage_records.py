"""The frozen records of what is stored and found: chunks with their contexts, hits and passages."""

import re
from dataclasses import dataclass
from typing import Literal

from local_rag.document_records import UNKNOWN, Chunk, Provenance, beginning_of, page_number, read_by_ocr

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

_PLACE = re.compile(
    r"(?::\d{1,9}(?:-\d{1,9})?"
    r"| page (?:\d{1,9}|(?:(?! page )[^\n]){1,40} \(\d{1,9} in the file\))(?:, .{1,80})?)\Z"
)


def path_of(location: str) -> str:
    """Return the path that a location begins with: without line, page, and how the page was read."""
    return _PLACE.sub("", location)


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
        return f"<Passage {self.location} {beginning_of(self.text)} score {self.score:.3g}>"

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
