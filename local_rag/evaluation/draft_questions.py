"""Draft an evaluation dataset from a user's documents: the local model writes questions, and a person reviews them.

The model reads a chunk and writes a question that it answers. A draft is dropped if it is not a question, mentions "the
passage", copies it, repeats another question, or if the model itself cannot answer it from the chunk.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local_rag.answering.answerer import Answerer, answer_room
from local_rag.answering.selection import whole_sources
from local_rag.display import display_path
from local_rag.document_records import Chunk, Document, Skipped, heading_path
from local_rag.errors import DatasetError, ReadError
from local_rag.evaluation.dataset import write_dataset
from local_rag.indexing.situating_prompts import WINDOW_TOKENS, context_room
from local_rag.indexing.vectors import default_chunk_tokens
from local_rag.indexing.workers import OpenEngine
from local_rag.llama.generator import Generator, Request
from local_rag.llama.models_in_use import open_answer_engine, open_engine
from local_rag.model_records import InstalledModel
from local_rag.models.own_models import TOKENIZER_FILE
from local_rag.passage_records import Passage
from local_rag.progress_records import Progress
from local_rag.reading.isolate import IsolatedReader, ReadFile
from local_rag.reading.split import Splitting
from local_rag.reading.walk import Walk
from local_rag.retrieval.question import read_question

_SYSTEM = "You write questions for testing a search engine."
_INSTRUCTION = (
    "Write one question that this passage answers and that a person who has never seen it might type into a search "
    "engine. Name what it is about, in words other than the passage's where there are some. Never mention the passage, "
    "the text or the document. Reply with the question only."
)
_MAX_TOKENS = 60
_MIN_PASSAGE_WORDS = 20
_QUESTION_WORDS = range(4, 41)
_COPIED_WORDS = 8  # a sequence this long is not equal by chance
_DRAFTS_PER_QUESTION = 1.5  # about a third is dropped
_MENTION = re.compile(r"\b(?:the|this|that|above|given) (?:passage|text|document|excerpt|chunk|section|author)\b", re.I)


@dataclass(slots=True)
class DraftReport:
    """The result of drafting: how many drafts were kept, how many dropped by reason, and which files were skipped."""

    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)


def draft_dataset(
    paths: Sequence[Path],
    output: Path,
    *,
    answer_model: InstalledModel,
    embed_model: InstalledModel,
    count: int,
    progress: Callable[[Progress], None],
    open_engine: OpenEngine = open_engine,
) -> DraftReport:
    """Write a dataset with about `count` questions about these files and folders.

    The golden passages are spans, so the same questions can measure other chunk sizes. If the run is stopped while it
    checks the drafts, the questions kept so far are written.
    """
    if (output / "questions.jsonl").exists():
        raise DatasetError(f"{output} already contains questions; name another folder with `--output`.")
    report = DraftReport()
    splitting = Splitting(embed_model.path / TOKENIZER_FILE, default_chunk_tokens(embed_model))
    documents = list(_read_documents(paths, splitting, report.skipped))
    chunks = choose_chunks([(read.document, read.chunks) for read in documents], int(count * _DRAFTS_PER_QUESTION) + 1)
    if not chunks:
        raise DatasetError("The documents contain no passage that is long enough for a question; name others.")
    progress(Progress("draft", 0, len(chunks), f"loading {answer_model.name}"))
    questions: list[dict[str, Any]] = []
    try:
        with open_answer_engine(answer_model, context_tokens=_room, open_engine=open_engine) as generator:
            drafts = list(draft(chunks, generator, progress))
            answerer = Answerer(lambda: generator, form=answer_model.form)
            for kept in _check(drafts, answerer, report.dropped, progress):
                questions.append(kept)
                if len(questions) == count:
                    break
    finally:
        report.kept = len(questions)
        write_dataset(output, [_document_record(read.document) for read in documents], questions)
    return report


def _check(
    drafts: Sequence[tuple[Document, Chunk, str]],
    answerer: Answerer,
    dropped: dict[str, int],
    progress: Callable[[Progress], None],
) -> Iterator[dict[str, Any]]:
    """Yield the usable drafts as lines of a dataset, and count the others by reason."""
    kept: list[str] = []
    for number, (document, chunk, question) in enumerate(drafts):
        progress(Progress("check", number, len(drafts)))
        reason = reason_to_drop(question, chunk.text, kept)
        sources = [] if reason else whole_sources(question, [[_passage(document, chunk)]])
        answer = None if reason else answerer.answer(read_question(question), sources)
        if answer is None or not answer.answered:
            reason = reason or "not answered"
            dropped[reason] = dropped.get(reason, 0) + 1
            continue
        kept.append(question)
        span = {"document": display_path(document.path), "start": chunk.start, "end": chunk.end}
        yield {
            "question": question,
            "golden": [span],
            "reviewed": False,
            "passage": chunk.text,
            "answer": answer.text,
        }


def _room(context_length: int, sequences: int) -> int:
    """Return the context length for drafting many questions at a time and for checking one answer."""
    return max(context_room(context_length, sequences), answer_room(context_length, 1))


def reason_to_drop(question: str, passage: str, others: Sequence[str]) -> str:
    """Return in a few words why a draft cannot be used, or an empty string."""
    words = _words(question)
    if not question.endswith("?") or len(words) not in _QUESTION_WORDS:
        return "not a question"
    if _MENTION.search(question):
        return "about the passage"
    if any(words == _words(other) for other in others):
        return "duplicate"
    text = f" {' '.join(_words(passage))} "
    runs = (words[start : start + _COPIED_WORDS] for start in range(len(words) - _COPIED_WORDS + 1))
    return "copied" if any(f" {' '.join(run)} " in text for run in runs) else ""


def _read_documents(paths: Sequence[Path], splitting: Splitting, skipped: list[Skipped]) -> Iterator[ReadFile]:
    with IsolatedReader(splitting) as reader:
        for item in Walk().files(paths):
            if isinstance(item, Skipped):
                skipped.append(item)
                continue
            try:
                yield reader.read(Path(item.path))
            except ReadError as error:
                skipped.append(Skipped(Path(item.path), str(error)))


def choose_chunks(documents: Sequence[tuple[Document, Sequence[Chunk]]], count: int) -> list[tuple[Document, Chunk]]:
    """Choose chunks from all over the documents; the choice is deterministic."""
    found = [
        (document, chunk)
        for document, chunks in documents
        for chunk in chunks
        if len(_words(chunk.text)) >= _MIN_PASSAGE_WORDS
    ]
    return sorted(found, key=lambda item: hashlib.sha256(item[1].text.encode()).digest())[:count]


def draft(
    chunks: Sequence[tuple[Document, Chunk]], generator: Generator, progress: Callable[[Progress], None]
) -> Iterator[tuple[Document, Chunk, str]]:
    """Let the model write a question for each chunk, without an adapter, which was trained for answers."""
    model = generator.model
    head, tail = model.chat_frame(_SYSTEM)
    before = model.tokenize(f"{head}Passage:\n", special=True)
    after = model.tokenize(f"\n\n{_INSTRUCTION}{tail}", special=True)
    quoted = (f"{heading_path(document.title, chunk.headings)}\n{chunk.text}" for document, chunk in chunks)
    requests = [
        Request(str(number), before, model.tokenize(text)[:WINDOW_TOKENS] + after, _MAX_TOKENS)
        for number, text in enumerate(quoted)
    ]
    with generator.adapted(None):
        for done, (key, tokens, _) in enumerate(generator.complete(requests), start=1):
            progress(Progress("draft", done, len(chunks)))
            yield *chunks[int(key)], _first_line(model.detokenize(tokens))


def _first_line(text: str) -> str:
    """Return the question without the label and the quotation marks that small models add."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return re.sub(r"^(?:question|q)\s*:\s*", "", line, flags=re.IGNORECASE).strip(" \"'`*")


def _passage(document: Document, chunk: Chunk) -> Passage:
    return Passage(
        chunk_id=0,
        path=str(document.path),
        title=document.title,
        text=chunk.text,
        terms="",
        sentence="",
        headings=chunk.headings,
        page=chunk.page,
        line=chunk.line,
        end_line=chunk.end_line,
        score=0.0,
    )


def _document_record(document: Document) -> Mapping[str, Any]:
    return {
        "id": display_path(document.path),
        "title": document.title,
        "kind": document.kind,
        "text": document.text,
    }


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
