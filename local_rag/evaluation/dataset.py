"""An evaluation dataset: a folder with `documents.jsonl` and `questions.jsonl`.

A line of `documents.jsonl` is `{"id", "title", "text"}` with, where they are wanted, `"kind"` (markdown, text or code;
by default what the id's suffix says) and `"chunks"`: `[{"id", "start", "end"}]` in characters of the text, or
`[{"id", "text"}]` in reading order. Documents without chunks are split as `index` would.

A line of `questions.jsonl` is `{"question", "golden"}`. Golden is the list of what answers it: ids of chunks, ids of
documents, or spans `{"document", "start", "end"}`; it is empty when nothing does. `"reviewed": false` marks a question
that nobody has looked at yet. `"history"` is what was said before, a list of `{"speaker": "user" or "agent", "text"}`:
the question is then searched as a follow-up. For judging answers a line may have `"must_include"`, a list of what a
right answer says (each a string, or a list of strings of which one is enough), `"answer"`, a right answer, and
`"answerability"`: answerable, unanswerable, or anything else for what is neither.

Without `documents.jsonl` the questions are asked of a library in use. Golden then names files, relative to the
dataset's folder, by the end of their path, or in full, whole (`rules.md`) or with lines (`rules.md:12`,
`rules.md:12-14`).
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from local_rag.errors import DatasetError
from local_rag.reading.read import as_document
from local_rag.records import Chunk, Document, DocumentKind

_LINES = re.compile(r":(\d+)(?:-(\d+))?\Z")
Part = Literal["all", "choose", "report"]


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of a document."""

    document: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Place:
    """A file of a library in use, or its lines `first` to `last`, which are 0 for all of it."""

    path: str
    first: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its golden chunks (by id), spans, documents or places; at most one of the four is not empty.

    A right answer says one string of each group of `must_include`, or else much the same as `answer`.
    `earlier` are the questions that came before it in its conversation, the first one first.
    """

    text: str
    chunks: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    documents: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    reviewed: bool = True
    must_include: tuple[tuple[str, ...], ...] = ()
    answer: str = ""
    answerability: str = ""
    earlier: tuple[str, ...] = ()

    @property
    def has_golden(self) -> bool:
        """Say whether it is known what answers it."""
        return bool(self.chunks or self.spans or self.documents or self.places)

    @property
    def part(self) -> Part:
        """Name the half it belongs to, which depends on its words alone: choose by one half, report the other."""
        return "choose" if hashlib.sha256(self.text.encode()).digest()[0] % 2 == 0 else "report"


@dataclass(frozen=True, slots=True)
class DatasetDocument:
    """A document with its ready-made chunks as id -> (start, end); none means: to be split."""

    id: str
    document: Document
    chunks: Mapping[str, tuple[int, int]]

    def ready_made(self) -> tuple[Chunk, ...]:
        """Return the ready-made chunks as the store wants them."""
        return tuple(
            Chunk(position, start, end, self.document.text[start:end])
            for position, (start, end) in enumerate(self.chunks.values())
        )


@dataclass(frozen=True, slots=True)
class Dataset:
    """A loaded dataset; one without documents is asked of a library in use."""

    folder: Path
    documents: tuple[DatasetDocument, ...]
    questions: tuple[Question, ...]


def load_dataset(folder: Path) -> Dataset:
    """Read and check a dataset; raise DatasetError with file and line where it is not well formed."""
    documents: tuple[DatasetDocument, ...] = ()
    if (folder / "documents.jsonl").exists() or not (folder / "questions.jsonl").exists():
        lines = _read_lines(folder / "documents.jsonl")
        documents = tuple(_at(place, _read_document, record) for place, record in lines)
        if not documents:
            raise DatasetError(
                f"{folder / 'documents.jsonl'} holds no document; add some, or delete it to ask a library in use."
            )
    by_path = {document.document.path: document for document in documents}
    chunk_ids = [chunk for document in documents for chunk in document.chunks]
    ids = [*(document.id for document in documents), *chunk_ids]
    if len(by_path) < len(documents) or len(set(ids)) < len(ids):
        twice = next((name for name in ids if ids.count(name) > 1), "a document's")
        raise DatasetError(f"{folder / 'documents.jsonl'} uses the id {twice} twice; give each its own.")
    known = {document.id: len(document.document.text) for document in documents}
    chunks = frozenset(chunk_ids)
    questions = tuple(
        _at(place, _read_question, record, known, chunks) if documents else _at(place, _read_question_of_files, record)
        for place, record in _read_lines(folder / "questions.jsonl")
    )
    return Dataset(folder, documents, questions)


def write_dataset(folder: Path, documents: Sequence[Mapping[str, Any]], questions: Sequence[Mapping[str, Any]]) -> None:
    """Write a dataset's two files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, records in (("documents", documents), ("questions", questions)):
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")


def _read_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield place and record of each line."""
    try:
        # Not splitlines(): JSON may hold U+2028, which that takes for the end of a line.
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(
            f"{path} cannot be read ({error}); a dataset is a folder with documents.jsonl and questions.jsonl, "
            "as scripts/benchmarks/prepare_eval.py or `local-rag eval make` writes them."
        ) from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield f"{path}:{number}", _at(f"{path}:{number}", _parse, line)


def _parse(line: str) -> Any:
    """Read a line of JSON, which could escape half a character that can be stored nowhere."""
    record = json.loads(line)
    json.dumps(record, ensure_ascii=False).encode()
    return record


def _at(place: str, read: Any, *arguments: Any) -> Any:
    """Read one record; say where it stands if it is malformed."""
    try:
        return read(*arguments)
    except KeyError as error:
        raise DatasetError(f"{place} has no {error}; add it.") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise DatasetError(f"{place} is malformed ({error}); correct it.") from None


def _read_document(record: Mapping[str, Any]) -> DatasetDocument:
    identifier, text = str(record["id"]), record["text"]
    if not isinstance(text, str):
        raise TypeError("the text is not a string")
    kind = record.get("kind") or None
    if kind not in (None, *get_args(DocumentKind)):
        raise ValueError(f"the kind {kind!r} is none of {', '.join(get_args(DocumentKind))}")
    document = as_document(Path(identifier), text, kind=kind)
    # The title that the dataset gives and no other; ready-made chunks are parts of the text as it stands.
    kept = text if record.get("chunks") else document.text
    document = replace(document, title=str(record.get("title") or ""), text=kept)
    chunks: dict[str, tuple[int, int]] = {}
    position = 0
    for chunk in record.get("chunks") or ():
        start = chunk["start"] if "start" in chunk else text.find(chunk["text"], position)
        end = chunk["end"] if "start" in chunk else start + len(chunk["text"])
        name = str(chunk["id"])
        if not 0 <= start < end <= len(text):
            raise ValueError(f"the chunk {name} is not a part of the text")
        if name in chunks:
            raise ValueError(f"the chunk id {name} is used twice")
        chunks[name] = (start, end)
        position = start
    return DatasetDocument(identifier, document, chunks)


def _read_question(record: Mapping[str, Any], documents: Mapping[str, int], chunks: frozenset[str]) -> Question:
    golden_chunks: list[str] = []
    golden_documents: list[str] = []
    spans: list[Span] = []
    for golden in record["golden"]:
        if isinstance(golden, str):
            if golden not in chunks and golden not in documents:
                raise ValueError(f"the golden id {golden} is that of no chunk and no document")
            (golden_chunks if golden in chunks else golden_documents).append(golden)
        else:
            span = Span(golden["document"], golden["start"], golden["end"])
            if not 0 <= span.start < span.end <= documents.get(span.document, -1):
                raise ValueError(f"the golden span {golden} lies in no document")
            spans.append(span)
    if sum(map(bool, (golden_chunks, golden_documents, spans))) > 1:
        raise ValueError("golden chunks, documents and spans cannot be mixed in one question")
    return replace(
        _plain_question(record),
        chunks=tuple(dict.fromkeys(golden_chunks)),
        spans=tuple(dict.fromkeys(spans)),
        documents=tuple(dict.fromkeys(golden_documents)),
    )


def _read_question_of_files(record: Mapping[str, Any]) -> Question:
    places: list[Place] = []
    for golden in record["golden"]:
        if not isinstance(golden, str):
            raise TypeError(f"the golden {golden} names no file; without documents.jsonl it is a path, or path:12-14")
        lines = _LINES.search(golden)
        first = int(lines[1]) if lines else 0
        last = int(lines[2] or first) if lines else 0
        if lines and not 1 <= first <= last:
            raise ValueError(f"the golden {golden} names no lines")
        places.append(Place(golden[: lines.start()] if lines else golden, first, last))
    return replace(_plain_question(record), places=tuple(dict.fromkeys(places)))


def _plain_question(record: Mapping[str, Any]) -> Question:
    """Read all of a question but what is golden for it."""
    text, must_include = record["question"], record.get("must_include") or ()
    if not text.strip():
        raise ValueError("the question is empty")
    if isinstance(must_include, str):
        raise TypeError("must_include is a string and no list")
    groups = tuple((one,) if isinstance(one, str) else tuple(one) for one in must_include)
    if not all(isinstance(one, str) and one.strip() for group in groups for one in group) or not all(groups):
        raise ValueError("must_include holds something other than strings")
    return Question(
        text,
        reviewed=bool(record.get("reviewed", True)),
        must_include=groups,
        answer=str(record.get("answer") or ""),
        answerability=str(record.get("answerability") or ("answerable" if record["golden"] else "unanswerable")),
        earlier=_read_history(record.get("history") or ()),
    )


def _read_history(history: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return what the user has asked before."""
    for said in history:
        if said["speaker"] not in {"user", "agent"} or not isinstance(said["text"], str):
            raise ValueError(f"the history holds {said!r}, which neither user nor agent said")
    return tuple(said["text"] for said in history if said["speaker"] == "user" and said["text"].strip())
