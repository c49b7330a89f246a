"""Choose the confidence threshold of `ask` on a library's own documents, without questions labelled by hand.

The model drafts questions from chunks all over the library. Each is asked twice: normally, and with its document
removed from the search results. The first should be answered and the second should not. A question is dropped if
another document contains most of what its chunk says.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from local_rag.answering.pipeline import AnswerPipeline, Candidates
from local_rag.errors import LibraryError
from local_rag.evaluation.draft_questions import choose_chunks, draft, reason_to_drop
from local_rag.index.keyword_index import keyword_tokens
from local_rag.library import Library
from local_rag.models.choice import find, with_threshold
from local_rag.records import Chunk, Document, Passage, Progress
from local_rag.store.connect import remembered_settings
from local_rag.store.database import Store

_FEWEST = 8  # questions that allow a conclusion
_DRAFTS_PER_QUESTION = 2
_MOST_DOCUMENTS = 500


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result: how many of the `questions` reach the threshold with their document, and how many without it."""

    model: str
    threshold: float
    questions: int
    answered_with: int
    answered_without: int
    wrong: float


def calibrate(library: Library, *, count: int, wrong: float, progress: Callable[[Progress], None]) -> Calibration:
    """Ask drafted questions with and without their document, and store the threshold in the library.

    At most the share `wrong` of the questions without their document reaches it. Raises LibraryError if the documents
    yield too few questions.
    """
    model = find(library.settings, "answer")
    with library.calibrating() as (store, answerer, pipeline):
        chunks = choose_chunks(documents_of_library(store), _DRAFTS_PER_QUESTION * count)
        kept, odds = list[str](), list[tuple[float, float]]()
        # A batch is drafted completely before its questions are asked because the same model does both.
        batches = (
            list(draft(chunks[start : start + count], answerer.generator, progress))
            for start in range(0, len(chunks), count)
        )
        for document, chunk, question in itertools.chain.from_iterable(batches):
            if len(odds) == count:
                break
            if not reason_to_drop(question, chunk.text, kept):
                kept.append(question)
                progress(Progress("check", len(odds), count))
                odds += _odds(pipeline, question, document, chunk)
        if len(odds) < _FEWEST:
            raise LibraryError(
                f"Only {len(odds)} questions could be drafted from the documents, but {_FEWEST} are needed; index more "
                "documents, or measure your own questions with `local-rag eval DATASET --answers`."
            )
        without = [pair[1] for pair in odds]
        answerer.threshold = threshold = threshold_for(without, wrong)
        store.remember(with_threshold(model, remembered_settings(library.folder), threshold))
    answered = [sum(pair[side] >= threshold for pair in odds) for side in (0, 1)]
    return Calibration(model.name, threshold, len(odds), answered[0], answered[1], wrong)


def threshold_for(odds: Sequence[float], wrong: float) -> float:
    """Return the lowest threshold that at most the share `wrong` of these log odds reaches."""
    ordered = sorted(odds, reverse=True)
    allowed = int(wrong * len(ordered))
    if allowed >= len(ordered):
        return ordered[-1]
    above = ordered[allowed - 1] if allowed else ordered[0] + 1.0
    return (above + ordered[allowed]) / 2 if above > ordered[allowed] else above + 1e-6


def documents_of_library(store: Store) -> list[tuple[Document, Sequence[Chunk]]]:
    """Return a sample of documents from all over the library, without their text but with their chunks."""
    documents = store.documents()
    return [
        (Document(Path(stored.path), stored.title, "", "text"), [one.chunk for one in store.chunks(stored.id)])
        for stored in documents[:: len(documents) // _MOST_DOCUMENTS + 1]
    ]


def _odds(pipeline: AnswerPipeline, question: str, document: Document, chunk: Chunk) -> list[tuple[float, float]]:
    """Return the log odds of a question with and without its document, or nothing if the question is not fair."""
    path, found = str(document.path), pipeline.find(question)
    others = [[passage for passage in passages if passage.path != path] for passages in found.lists]
    found_at_all = any(passage.path == path for passage in found.lists[0])
    if not found_at_all or any(_repeats(passage, chunk) for passages in others for passage in passages):
        return []
    pair = [pipeline.read(question, one).log_odds for one in (found, Candidates(others))]
    return [(pair[0], pair[1])] if pair[0] is not None and pair[1] is not None else []


def _repeats(passage: Passage, chunk: Chunk) -> bool:
    """Return whether a passage of another document contains most words of a chunk."""
    wanted = set(keyword_tokens(chunk.text))
    return len(wanted & set(keyword_tokens(passage.text))) > len(wanted) / 2
