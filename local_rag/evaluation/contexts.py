"""Measure what contexts gain in a library: ask questions with its index and with the same index without contexts.

The questions come from a dataset: the reviewed ones, or all if none is reviewed. Without a dataset the model drafts
questions from chunks all over the library. The result says so because no user has asked them.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from local_rag.catalogue.library_status import GAIN
from local_rag.document_records import Chunk
from local_rag.errors import DatasetError, LibraryError
from local_rag.evaluation.calibrate import documents_of_library
from local_rag.evaluation.dataset import Dataset, GoldenSpan, Question, load_dataset
from local_rag.evaluation.draft_questions import choose_chunks, draft, reason_to_drop
from local_rag.evaluation.evaluate import Ranker, ask_all, compare_reports, find_golden_files
from local_rag.library import Library, Parts
from local_rag.progress_records import OnProgress
from local_rag.settings import Settings
from local_rag.store.published import copy_store

_DRAFTS_PER_QUESTION = 2
_FEWEST = 4  # questions that allow a conclusion

Chunks = Mapping[int, tuple[str, Chunk]]  # chunk id -> (document, chunk)


def measure_gain(
    library: Library, dataset: Path | None, *, count: int, parts: Parts, progress: OnProgress
) -> dict[str, Any]:
    """Ask at most `count` questions with and without contexts, and store in the library what contexts gain."""
    manifest = library.retrieval.manifest()
    if manifest["fingerprint"]["context"] != "auto" or not manifest["generated_contexts"]:
        raise LibraryError(
            f"The index in {library.folder} has no contexts to measure; run `local-rag index --context auto` to "
            "write them."
        )
    if dataset:
        questions, chunks = _questions_of(library, load_dataset(dataset), count)
    else:
        questions, chunks = _draft(library, count, progress)
    if len(questions) < _FEWEST:
        raise DatasetError(
            f"Only {len(questions)} questions can be asked, but {_FEWEST} are needed; draft a dataset with `local-rag "
            "eval make DOCUMENTS` and name it, or index more documents."
        )
    settings = {name: getattr(library.settings, name) for name in Settings.model_fields} | {"context": "headings"}
    with tempfile.TemporaryDirectory(prefix="local-rag-") as folder:
        with library.documents.reading() as store:
            copy_store(store, Path(folder))
        with Library(folder, parts=parts, **settings) as plain:
            with plain.upkeep.writing(progress) as (_, indexer):
                indexer.publish(rebuild=True)
            pair = [
                ask_all(one, questions, Ranker(*chunks), rerank=one.retrieval.reranks, progress=progress)
                for one in (library, plain)
            ]
    compared = compare_reports(*({"per_question": rows} for rows, _ in pair))["stages"]
    stage = list(compared)[-1]
    recall, mrr = compared[stage]["recall@5"], compared[stage]["mrr@10"]
    gain = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "context": manifest["fingerprint"]["context"],
        "chunks": manifest["chunks"],
        "contexts": manifest["generated_contexts"],
        "questions": len(questions),
        "drafted": dataset is None,
        "unreviewed": not all(question.reviewed for question in questions),
        "stage": stage,
        "recall_with": recall["this"],
        "recall_without": recall["other"],
        "recall_p": recall["p"],
        "mrr_with": mrr["this"],
        "mrr_without": mrr["other"],
        "mrr_p": mrr["p"],
    }
    with library.upkeep.writing() as (store, _):
        store.remember({GAIN: gain})
    return gain


def _questions_of(library: Library, dataset: Dataset, count: int) -> tuple[list[Question], tuple[Dataset, Chunks]]:
    """Return the questions of a dataset that the library can answer: the reviewed ones, or all if none is reviewed."""
    if dataset.documents:
        with library.documents.reading() as store:
            stored = {one.id: (one.path, one.chunk) for one in store.chunks()}
        names = {}
        for path in {path for path, _ in stored.values()}:
            own = [one.id for one in dataset.documents if path == str(Path(one.id).absolute()) or _ends(path, one.id)]
            names[path] = own[0] if len(own) == 1 else path
        known = set(names.values())
        # The ready-made chunks of a dataset are not the chunks of the library.
        asked = [
            one
            for one in dataset.questions
            if not one.chunks and known >= {*one.documents, *(span.document for span in one.spans)}
        ]
        chunks: Chunks = {key: (names[path], chunk) for key, (path, chunk) in stored.items()}
        dataset = replace(dataset, documents=())
    else:
        dataset, chunks = find_golden_files(dataset, library)
        asked = list(dataset.questions)
    asked = [one for one in asked if one.has_golden]
    return ([one for one in asked if one.reviewed] or asked)[:count], (dataset, chunks)


def _ends(path: str, name: str) -> bool:
    return path.endswith(f"/{name.removeprefix('./')}")


def _draft(library: Library, count: int, progress: OnProgress) -> tuple[list[Question], tuple[Dataset, Chunks]]:
    """Let the answer model draft questions from chunks; each chunk is the golden passage of its question."""
    with library.upkeep.calibrating() as (store, answerer, _):
        chunks: Chunks = {one.id: (one.path, one.chunk) for one in store.chunks()}
        asked, texts = list[Question](), list[str]()
        drafts = draft(
            choose_chunks(documents_of_library(store), _DRAFTS_PER_QUESTION * count), answerer.generator, progress
        )
        for document, chunk, question in drafts:
            if len(asked) < count and not reason_to_drop(question, chunk.text, texts):
                texts.append(question)
                golden = GoldenSpan(str(document.path), chunk.start, chunk.end)
                asked.append(Question(question, spans=(golden,), reviewed=False))
    return asked, (Dataset(library.folder, (), tuple(asked)), chunks)
