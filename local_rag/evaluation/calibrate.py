"""Calibrate on a library's own documents how probable it is that an answer is right, without labelled questions.

The model drafts questions from chunks all over the library. Each is asked twice: normally, and with its document
removed from the search results. An answer is taken for right if it stands on the chunk that the question was drafted
from, and without the document for wrong. A question is dropped if another document contains most of what its chunk
says.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path

from local_rag.answering.answerer import Draft
from local_rag.answering.pipeline import AnswerPipeline, Candidates
from local_rag.answering.probability import Signals, fit, log_odds, probability, prompt_recipe, valid
from local_rag.document_records import Chunk, Document
from local_rag.errors import LibraryError
from local_rag.evaluation.draft_questions import choose_chunks, draft, reason_to_drop
from local_rag.library import Library
from local_rag.model_records import Calibration
from local_rag.models.choice import find, identity_of, with_calibration
from local_rag.passage_records import Passage
from local_rag.progress_records import Progress
from local_rag.retrieval.question import read_question
from local_rag.store.connect import remembered_settings
from local_rag.store.database import Store
from local_rag.text.tokens import keyword_tokens

_FEWEST = 8  # questions that allow a conclusion
_DRAFTS_PER_QUESTION = 2
_MOST_DOCUMENTS = 500
_SIGNALS = tuple(field.name for field in fields(Signals))

Judged = tuple[Signals, bool]
"""The signals of an answer, and whether it was right."""


def calibrate(
    library: Library, *, count: int, wrong: float, progress: Callable[[Progress], None]
) -> dict[str, str | float]:
    """Ask drafted questions with and without their document, and store the calibration in the library.

    At most the share `wrong` of the questions without their document is answered. Raises LibraryError if the documents
    yield too few questions.
    """
    model = find(library.settings, "answer")
    with library.upkeep.calibrating() as (store, answerer, pipeline):
        chunks = choose_chunks(documents_of_library(store), _DRAFTS_PER_QUESTION * count)
        kept, asked = list[str](), list[tuple[Judged, Judged]]()
        # A batch is drafted completely before its questions are asked because the same model does both.
        batches = (
            list(draft(chunks[start : start + count], answerer.generator, progress))
            for start in range(0, len(chunks), count)
        )
        for document, chunk, question in itertools.chain.from_iterable(batches):
            if len(asked) == count:
                break
            if not reason_to_drop(question, chunk.text, kept):
                kept.append(question)
                progress(Progress("check", len(asked), count))
                asked += _ask_twice(pipeline, question, document, chunk)
        if len(asked) < _FEWEST:
            raise LibraryError(
                f"Only {len(asked)} questions could be drafted from the documents, but {_FEWEST} are needed; index "
                "more documents, or measure your own questions with `local-rag eval DATASET --answers`."
            )
        reranker = identity_of(library.settings, "rerank")
        base, recipe = valid(model.calibration, reranker, model.form), prompt_recipe(reranker, model.form)
        calibration = calibration_from(asked, wrong, base, recipe)
        answerer.calibration = calibration
        store.remember(with_calibration(model, remembered_settings(library.folder), calibration))
    answered = [sum(_likely(pair[side], calibration) >= calibration.answer_from for pair in asked) for side in (0, 1)]
    return {
        "model": model.name,
        "threshold": calibration.answer_from,  # the least probability of an answer that is given
        "questions": len(asked),
        "answered_with": answered[0],
        "answered_without": answered[1],
        "wrong": wrong,
    }


def calibration_from(
    asked: Sequence[tuple[Judged, Judged]], wrong: float, base: Calibration | None, recipe: str
) -> Calibration:
    """Fit a calibration to questions asked with and without their document: signals, and whether the answer was right.

    A few drafted questions say less about the signals than those that the `base` was fitted to, so of a base only the
    scale and the bias are fitted again.
    """
    rows = [one for pair in asked for one in pair]
    signals, right = [one for one, _ in rows], [ok for _, ok in rows]
    if base:
        odds = [Signals(log_odds(one, base)) for one in signals]
        bias, scale = fit(odds, right, ["right"])
        weights = {name: scale["right"] * weight for name, weight in base.weights.items()}
        bias += scale["right"] * base.bias
    else:
        names = [name for name in _SIGNALS if not any(_is_missing(getattr(one, name)) for one in signals)]
        bias, weights = fit(signals, right, names)
    fitted = Calibration(recipe, bias, weights, 0.0, base.quote_from if base else 0.0)
    return replace(fitted, answer_from=threshold_for([_likely(without, fitted) for _, without in asked], wrong))


def _is_missing(signal: float | None) -> bool:
    """Return whether there is no reader for a signal, or an engine that does not tell it."""
    return signal is None or math.isnan(signal)


def _likely(judged: Judged, calibration: Calibration) -> float:
    return probability(judged[0], calibration) or 0.0


def threshold_for(values: Sequence[float], wrong: float) -> float:
    """Return the lowest threshold that at most the share `wrong` of these values reaches."""
    ordered = sorted(values, reverse=True)
    allowed = int(wrong * len(ordered))
    if allowed >= len(ordered):
        return ordered[-1]
    above = ordered[allowed - 1] if allowed else 1.0
    return (above + ordered[allowed]) / 2 if above > ordered[allowed] else above + 1e-6


def documents_of_library(store: Store) -> list[tuple[Document, Sequence[Chunk]]]:
    """Return a sample of documents from all over the library, without their text but with their chunks."""
    documents = store.documents()
    return [
        (Document(Path(stored.path), stored.title, "", "text"), [one.chunk for one in store.chunks(stored.id)])
        for stored in documents[:: len(documents) // _MOST_DOCUMENTS + 1]
    ]


def _ask_twice(
    pipeline: AnswerPipeline, question: str, document: Document, chunk: Chunk
) -> list[tuple[Judged, Judged]]:
    """Return the answers to a question with and without its document, or nothing if the question is not fair."""
    path, found = str(document.path), pipeline.find(read_question(question))
    others = [[passage for passage in passages if passage.path != path] for passages in found.lists]
    found_at_all = any(passage.path == path for passage in found.lists[0])
    if not found_at_all or any(_repeats(passage, chunk) for passages in others for passage in passages):
        return []
    drafts = [pipeline.draft(one) for one in (found, Candidates(found.question, others))]
    judged = [(draft.signals, _stands_on(draft, path, chunk)) for draft in drafts if draft]
    return [(judged[0], judged[1])] if len(judged) == len(drafts) else []


def _stands_on(answer: Draft, path: str, chunk: Chunk) -> bool:
    """Return whether every sentence of an answer stands on a chunk and on nothing that is missing there."""
    passages = [source.passage for source in answer.sources]
    return bool(answer.sentences) and all(
        not sentence.missing
        and any(
            passages[number].path == path and passages[number].start < chunk.end and chunk.start < passages[number].end
            for number, _ in sentence.units[:1]
        )
        for sentence in answer.sentences
    )


def _repeats(passage: Passage, chunk: Chunk) -> bool:
    """Return whether a passage of another document contains most words of a chunk."""
    wanted = set(keyword_tokens(chunk.text))
    return len(wanted & set(keyword_tokens(passage.text))) > len(wanted) / 2
