"""What was asked of a library: whether the answers were right, and what is missing."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.answer_records import Answer
from local_rag.answering.probability import prompt_recipe, valid
from local_rag.asking import Mark, ReadPlace
from local_rag.errors import LibraryError, LocalRagError, MissingError, ModelError
from local_rag.feedback.gaps import Gap, find_gaps
from local_rag.feedback.marks import GateBase, Marked, Marks, MarksEffect, lifted
from local_rag.holdings.access import Access
from local_rag.holdings.documents import Documents
from local_rag.keys import key_of
from local_rag.model_records import PLAIN_FORM, Calibration
from local_rag.models.choice import calibration_of, find, identity_of
from local_rag.retrieval.question import Question
from local_rag.retrieval.searcher import Trace
from local_rag.store.asked_questions import AskedQuestions, lines_of, same_question
from local_rag.store.connect import remembered
from local_rag.store.recorded_questions import (
    QUESTIONS_FILE,
    add_question,
    add_wrong_answer,
    forget_marked,
    wrong_answers,
)
from local_rag.text.tokens import question_terms

_LIFTED_FROM = 60  # passages among which those of marked answers are looked for


@dataclass(slots=True)
class Marking:
    """Put the passages of a search in order by what was said of answers to the same question.

    `words` are those of the question. Whether it is a follow-up, only the search tells; none is the same question as
    another one.
    """

    words: str = ""
    places: Sequence[tuple[ReadPlace, Mark]] = ()

    def __call__(self, search: Callable[..., Trace], question: Question, *, top: int, **how: Any) -> Trace:
        """Search with a function for the question, in whatever words that is done, and put what it finds in order."""
        trace = search(question, top=max(top, _LIFTED_FROM) if self.places else top, **how)
        if trace.follows:
            self.words = ""
        if not self.places:
            return trace
        found = trace.passages[:top] if trace.follows else lifted(trace.passages, self.places, top)
        return replace(trace, passages=found)


UNMARKED = Marking()


class Feedback:
    """What people said of the answers to their questions, and what that changes."""

    def __init__(self, access: Access, documents: Documents) -> None:
        self._access, self._documents = access, documents

    def mark(self, question: str | None, mark: Mark | None, *, chunk_id: int | None = None) -> Marked:
        """Mark the last answer to a question as right or wrong, or with None take its mark back.

        Without a question, the last answer is meant, or the last mark. Marks refit the gate, become questions of
        evaluations, and lift or lower passages of the same question. Raise MissingError if there is no such answer;
        with `chunk_id`, the passage that it stood on or 0 for none, the mark is kept all the same.
        """
        self._require_retention()
        asked, passage = self._asked, self._documents.passage(chunk_id) if chunk_id else None
        try:
            meant = asked.find(question, marked=mark is None)
        except MissingError:
            if mark is None or question is None or chunk_id is None:
                raise
            meant = asked.mark_other(question, mark, passage)
        place = next((one for one in meant.places if one.is_cited), None)
        at = (f"{passage.path}{lines_of(passage)}", passage.sha256) if passage else ("", "")
        if not passage and place:
            at = f"{place.path}{place.lines}", place.sha256
        marked = self._marks.mark(meant, mark)
        if mark == "wrong":
            add_wrong_answer(self._access.folder, meant.question, *at, marked=True)
        elif mark == "right" and at[0]:
            add_question(self._access.folder, meant.question, *at, marked=True)
        else:
            forget_marked(self._access.folder, lambda one: one == meant.question)
        return marked

    def marks(self) -> MarksEffect:
        """Return what the marks of those who may see the same come to: what they changed, and what that gains."""
        return self._marks.effect()

    def ship_gate(self) -> str:
        """Give answers as shipped again, whatever the marks say, until there are enough new ones."""
        self._require_retention()
        return self._marks.ship().sentence

    def gate_notice(self) -> str:
        """Return what marks have done to the gate since that was last told; nothing if it cannot be known."""
        with suppress(LocalRagError):
            return self._marks.take_notice() if self._asked.has_gates() else ""
        return ""

    def gaps(self) -> list[Gap]:
        """Return the questions that were refused or marked as answered wrongly, in groups, newest first.

        An owner is told those of everybody who may see as much or less, without names; others only their own. With the
        embedder they are grouped by meaning, without it by their words.
        """
        found = self._asked.open_questions()
        if not found:
            return []
        paths = self._documents.contents().documents
        with self._access.shared.one_at_a_time, self._access.opened() as (store, seen):
            index = self._access.index_of(store, seen)

            def is_known(word: str, language: str) -> bool:
                terms = question_terms(word, language)
                return not terms or bool(index.keywords(terms, 1, documents=True))

            return find_gaps(found, self._embed, is_known, paths)

    @property
    def questions_file(self) -> Path:
        """Return the file to which `record_question` adds."""
        return self._access.folder / QUESTIONS_FILE

    def record_question(self, question: str, chunk_id: int) -> None:
        """Add a question and the passage that answers it to the library's own evaluation dataset."""
        self._require_retention()
        passage = self._documents.passage(chunk_id)
        add_question(self._access.folder, question, f"{passage.path}{lines_of(passage)}", passage.sha256)

    def wrong_answers(self) -> list[str]:
        """Return the questions that wait for the right passage; who sees only a part sees none of others."""
        return [] if self._access.limits else wrong_answers(self._access.folder)

    def _require_retention(self) -> None:
        if not self._access.settings.retention.conversations:
            raise LibraryError("The setting history is off, so no question is written to a file; turn it on first.")

    def _embed(self, texts: Sequence[str]) -> np.ndarray | None:
        with suppress(ModelError):
            return self._access.open_searcher().searcher.embed(texts)
        return None

    @property
    def _asked(self) -> AskedQuestions:
        return AskedQuestions(self._access.folder, self._access.asker)

    @property
    def _marks(self) -> Marks:
        return Marks(self._asked, self._known_base)

    def marking(self, question: str, *, marked: bool) -> Marking:
        """Return what puts the passages for a question in order, and notes whether it is a follow-up."""
        words = same_question(question)
        return Marking(words, self._asked.marked_places(words) if marked else ())

    def epoch(self) -> int:
        """Return the number of the present answers, which deleting what was asked raises."""
        return self._asked.epoch() if self._access.settings.retention.conversations else 0

    def record_again(self, question: str, answer: Answer, *, follows: bool) -> None:
        """Record that an answer was given again; with earlier turns it may be that to a follow-up."""
        self.record(answer, Marking("" if follows else same_question(question)), self.epoch())

    def record(self, answer: Answer, marking: Marking, epoch: int, *, counted: bool = False) -> bool:
        """Record an answer if questions are kept, and count it if it is `counted`; return whether that was done."""
        if not (self._access.settings.retention.conversations and self._access.has_store):
            return False
        base = self._access.shared.gate_base
        recipe = base.recipe if base else ""
        return self._asked.add(answer, words=marking.words, recipe=recipe, epoch=epoch, counted=counted)

    def _known_base(self) -> GateBase:
        """Return the gate without marks, or while the answer model is missing one that no mark is about."""
        with suppress(ModelError):
            return self.gate_base()
        return GateBase(None, PLAIN_FORM, "")

    def gate_base(self) -> GateBase:
        """Return the gate as it is without marks."""
        shared = self._access.shared
        if shared.gate_base is None:
            model, reader = find(self._access.settings, "answer"), identity_of(self._access.settings, "rerank")
            calibration = calibration_of(model, remembered(self._access.folder, shared.generations))
            recipe = key_of(model.identity, prompt_recipe(reader, model.form))
            shared.gate_base = GateBase(valid(calibration, reader, model.form), model.form, recipe)
        return shared.gate_base

    def calibration(self) -> Calibration | None:
        """Return how answers are judged at present: as the gate is without marks, and as they change it."""
        return self._marks.gated(self.gate_base())
