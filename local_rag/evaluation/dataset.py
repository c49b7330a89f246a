"""An evaluation dataset: a folder with `documents.jsonl` and `questions.jsonl`.

A line of `documents.jsonl` is `{"id", "title", "text"}`. Optional fields are `"kind"` (markdown, text or code; the
default depends on the suffix of the id) and `"chunks"`: `[{"id", "start", "end"}]` in characters of the text, or
`[{"id", "text"}]` in reading order. Documents without chunks are split as `index` would split them.

A line of `questions.jsonl` is `{"question", "golden"}`. `"golden"` lists what answers the question: ids of chunks, ids
of documents, or spans `{"document", "start", "end"}`. It is empty if nothing does. `"reviewed": false` marks a question
that nobody has reviewed yet. `"history"` is the conversation before the question, a list of
`{"speaker": "user" or "agent", "text"}`; the question is then searched as a follow-up. Five fields serve to judge
answers: `"must_include"` lists what a right answer contains (each a string, or a list of alternative strings),
`"must_not"` what it does not contain, `"pairs"` names with the value of each (`[["Norway", "19"], ["Ireland", "9"]]`),
`"answer"` is a right answer, and `"answerability"` is answerable, unanswerable, or anything else for neither.

Without `documents.jsonl` the questions are asked of a library in use. `"golden"` then lists files: relative to the
folder of the dataset, by the end of their path, or by their full path. Lines are optional: `rules.md`, `rules.md:12`,
`rules.md:12-14`.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from local_rag.document_records import Chunk, Document, DocumentKind
from local_rag.errors import DatasetError
from local_rag.reading.read import as_document

_LINES = re.compile(r":(\d+)(?:-(\d+))?\Z")
Part = Literal["all", "choose", "report", "locked"]


@dataclass(frozen=True, slots=True)
class GoldenSpan:
    """A golden passage: the characters `start` to `end` of a document."""

    document: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class GoldenLines:
    """A golden file of a library in use, or its lines `first` to `last`; both are 0 for the whole file."""

    path: str
    first: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its golden chunks (by id), spans, documents or lines; at most one of the four is not empty.

    A right answer contains one string of each group in `must_include` or, if there are none, resembles `answer`.
    `earlier` holds the previous questions of its conversation, oldest first.
    """

    text: str
    chunks: tuple[str, ...] = ()
    spans: tuple[GoldenSpan, ...] = ()
    documents: tuple[str, ...] = ()
    lines: tuple[GoldenLines, ...] = ()
    reviewed: bool = True
    must_include: tuple[tuple[str, ...], ...] = ()
    must_not: tuple[str, ...] = ()
    pairs: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    answer: str = ""
    answerability: str = ""
    earlier: tuple[str, ...] = ()

    @property
    def has_golden(self) -> bool:
        """Return whether something is known to answer the question."""
        return bool(self.chunks or self.spans or self.documents or self.lines)

    @property
    def part(self) -> Part:
        """Return its part of the dataset: half to choose settings, a quarter to report them, and a locked quarter.

        Only the text decides. The locked part is for one measurement at the end.
        """
        first, second = hashlib.sha256(self.text.encode()).digest()[:2]
        return "choose" if first % 2 == 0 else "report" if second % 2 == 0 else "locked"


@dataclass(frozen=True, slots=True)
class DatasetDocument:
    """A document with its ready-made chunks as id -> (start, end); a document without chunks has to be split."""

    id: str
    document: Document
    chunks: Mapping[str, tuple[int, int]]

    def ready_made(self) -> tuple[Chunk, ...]:
        """Return the ready-made chunks as records for the store."""
        return tuple(
            Chunk(position, start, end, self.document.text[start:end])
            for position, (start, end) in enumerate(self.chunks.values())
        )


@dataclass(frozen=True, slots=True)
class Dataset:
    """A loaded dataset; without documents, its questions are asked of a library in use."""

    folder: Path
    documents: tuple[DatasetDocument, ...]
    questions: tuple[Question, ...]


def load_dataset(folder: Path) -> Dataset:
    """Read and check a dataset; raise DatasetError with file and line if it is malformed."""
    documents: tuple[DatasetDocument, ...] = ()
    if (folder / "documents.jsonl").exists() or not (folder / "questions.jsonl").exists():
        lines = _read_lines(folder / "documents.jsonl")
        documents = tuple(_at(location, _read_document, record) for location, record in lines)
        if not documents:
            raise DatasetError(
                f"{folder / 'documents.jsonl'} contains no documents; add some, or delete it to ask a library in use."
            )
    by_path = {document.document.path: document for document in documents}
    chunk_ids = [chunk for document in documents for chunk in document.chunks]
    ids = [*(document.id for document in documents), *chunk_ids]
    if len(by_path) < len(documents) or len(set(ids)) < len(ids):
        twice = next((name for name in ids if ids.count(name) > 1), "a document's")
        raise DatasetError(f"{folder / 'documents.jsonl'} uses the id {twice} twice; make the ids unique.")
    known = {document.id: len(document.document.text) for document in documents}
    chunks = frozenset(chunk_ids)
    questions = tuple(
        _at(location, _read_question, record, known, chunks)
        if documents
        else _at(location, _read_question_of_files, record)
        for location, record in _read_lines(folder / "questions.jsonl")
    )
    return Dataset(folder, documents, questions)


def write_dataset(folder: Path, documents: Sequence[Mapping[str, Any]], questions: Sequence[Mapping[str, Any]]) -> None:
    """Write the two files of a dataset."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, records in (("documents", documents), ("questions", questions)):
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")


def _read_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the location (`file:line`) and the record of each line."""
    try:
        # Not splitlines(): JSON may contain U+2028, which splitlines() treats as the end of a line.
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(
            f"{path} cannot be read ({error}); name a folder with documents.jsonl and questions.jsonl, which "
            "`local-rag eval make` writes."
        ) from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield f"{path}:{number}", _at(f"{path}:{number}", _parse, line)


def _parse(line: str) -> Any:
    """Read a line of JSON; raise ValueError also for an escaped lone surrogate, which cannot be stored."""
    record = json.loads(line)
    json.dumps(record, ensure_ascii=False).encode()
    return record


def _at(location: str, read: Any, *arguments: Any) -> Any:
    """Read one record; raise DatasetError with its location if it is malformed."""
    try:
        return read(*arguments)
    except KeyError as error:
        raise DatasetError(f"{location} has no {error}; add it.") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise DatasetError(f"{location} is malformed ({error}); correct it.") from None


def _read_document(record: Mapping[str, Any]) -> DatasetDocument:
    identifier, text = str(record["id"]), record["text"]
    if not isinstance(text, str):
        raise TypeError("the text is not a string")
    kind = record.get("kind") or None
    if kind not in (None, *get_args(DocumentKind)):
        raise ValueError(f"the kind {kind!r} is not one of {', '.join(get_args(DocumentKind))}")
    document = as_document(Path(identifier), text, kind=kind)
    # Only the title of the dataset counts; ready-made chunks are parts of the unchanged text.
    kept = text if record.get("chunks") else document.text
    document = replace(document, title=str(record.get("title") or ""), text=kept)
    chunks: dict[str, tuple[int, int]] = {}
    position = 0
    for chunk in record.get("chunks") or ():
        start = chunk["start"] if "start" in chunk else text.find(chunk["text"], position)
        end = chunk["end"] if "start" in chunk else start + len(chunk["text"])
        name = str(chunk["id"])
        if not 0 <= start < end <= len(text):
            raise ValueError(f"the chunk {name} is not part of the text")
        if name in chunks:
            raise ValueError(f"the chunk id {name} is used twice")
        chunks[name] = (start, end)
        position = start
    return DatasetDocument(identifier, document, chunks)


def _read_question(record: Mapping[str, Any], documents: Mapping[str, int], chunks: frozenset[str]) -> Question:
    golden_chunks: list[str] = []
    golden_documents: list[str] = []
    spans: list[GoldenSpan] = []
    for golden in record["golden"]:
        if isinstance(golden, str):
            if golden not in chunks and golden not in documents:
                if record.get("answerability"):
                    continue  # a published set may lack a document; the question is still asked
                raise ValueError(f"the golden id {golden} belongs to no chunk or document")
            (golden_chunks if golden in chunks else golden_documents).append(golden)
        else:
            span = GoldenSpan(golden["document"], golden["start"], golden["end"])
            if not 0 <= span.start < span.end <= documents.get(span.document, -1):
                raise ValueError(f"the golden span {golden} is not within a document")
            spans.append(span)
    if sum(map(bool, (golden_chunks, golden_documents, spans))) > 1:
        raise ValueError("golden chunks, documents and spans cannot be mixed in one question")
    return replace(
        _question_without_golden(record),
        chunks=tuple(dict.fromkeys(golden_chunks)),
        spans=tuple(dict.fromkeys(spans)),
        documents=tuple(dict.fromkeys(golden_documents)),
    )


def _read_question_of_files(record: Mapping[str, Any]) -> Question:
    lines: list[GoldenLines] = []
    for golden in record["golden"]:
        if not isinstance(golden, str):
            raise TypeError(
                f"the golden entry {golden} is not a file; without documents.jsonl it must be a path or path:12-14"
            )
        match = _LINES.search(golden)
        first = int(match[1]) if match else 0
        last = int(match[2] or first) if match else 0
        if match and not 1 <= first <= last:
            raise ValueError(f"the line range of the golden entry {golden} is empty")
        lines.append(GoldenLines(golden[: match.start()] if match else golden, first, last))
    return replace(_question_without_golden(record), lines=tuple(dict.fromkeys(lines)))


def _question_without_golden(record: Mapping[str, Any]) -> Question:
    text, must_include = record["question"], record.get("must_include") or ()
    if not text.strip():
        raise ValueError("the question is empty")
    if isinstance(must_include, str):
        raise TypeError("must_include is a string, not a list")
    groups = tuple(map(_read_group, must_include))
    must_not = record.get("must_not") or ()
    if isinstance(must_not, str) or not all(isinstance(one, str) and one.strip() for one in must_not):
        raise ValueError("must_not contains something other than non-empty strings")
    return Question(
        text,
        reviewed=bool(record.get("reviewed", True)),
        must_include=groups,
        must_not=tuple(must_not),
        pairs=tuple((_read_group(name), _read_group(value)) for name, value in record.get("pairs") or ()),
        answer=str(record.get("answer") or ""),
        answerability=str(record.get("answerability") or ("answerable" if record["golden"] else "unanswerable")),
        earlier=_read_history(record.get("history") or ()),
    )


def _read_group(group: Any) -> tuple[str, ...]:
    """Read a string or a list of alternative strings."""
    strings = (group,) if isinstance(group, str) else tuple(group)
    if not strings or not all(isinstance(one, str) and one.strip() for one in strings):
        raise ValueError(f"{group!r} is not a non-empty string or a list of such")
    return strings


def _read_history(history: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    for turn in history:
        if turn["speaker"] not in {"user", "agent"} or not isinstance(turn["text"], str):
            raise ValueError(f"the history contains {turn!r}, which is not a text by user or agent")
    return tuple(turn["text"] for turn in history if turn["speaker"] == "user" and turn["text"].strip())
