"""Answer by code what needs no language model: rows, all documents together, changes and summaries, by the plan."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from local_rag.answering.compose import REFUSAL
from local_rag.answering.pipeline import answer_of
from local_rag.answering.translations import translated
from local_rag.asking import Filters
from local_rag.digests.digest_answers import answer_digest
from local_rag.judged import Judged
from local_rag.records import Answer, Found
from local_rag.retrieval.find_question import FindQuestion, find_question
from local_rag.retrieval.question import Question
from local_rag.store.relation_rows import is_in_a_text
from local_rag.tables.answer import answer_from_rows, as_answer
from local_rag.understanding.question_reader import read_plan


class CodeAnswers:
    """Answer the questions to a view of a library, within filters; `find` looks through all of its documents.

    An answer comes with whether it is certain: what is refused because of a word that no table has may stand in a text.
    """

    def __init__(self, view: Judged, filters: Filters, find: Callable[[Question, FindQuestion], Found | None]) -> None:
        self._view, self._filters, self._find = view, filters, find

    def __call__(self, question: Question, earlier: Sequence[str]) -> tuple[Answer, bool] | None:
        """Answer a question that follows `earlier` ones; None if its plan is that of none for code, or does not fit.

        A plan does not fit where it names documents that the library does not have.
        """
        plan = question.plan
        if plan.kind in {"changes", "brief"}:
            with self._view.named(self._filters) as named:
                digest = answer_digest(question.text, plan, named)
            if digest:
                return digest, True
        if plan.kind == "documents" and (asked := find_question(plan, question.text)):
            found = self._find(question, asked)
            if found:
                return answer_of(found), True
        if plan.may_ask_rows or (earlier and read_plan(earlier[-1]).may_ask_rows):
            return self._from_rows(question, earlier)
        return None

    def _from_rows(self, question: Question, earlier: Sequence[str]) -> tuple[Answer, bool] | None:
        with self._view.held_rows(self._filters) as held:
            found = answer_from_rows(question.text, held, earlier)
        if found is None:
            return None
        with self._view.reading() as store:
            # What no row has, a text may hold.
            sheets = [one.stored.path for one in held.named if one.stored.cells]  # that hold nothing but rows
            of_time = bool(found.unknown) and all(any(map(str.isdigit, word)) for word in found.unknown)
            # A year in the rows of other sheets says nothing about this one.
            apart = sheets if of_time else [path for path in found.considered if path in sheets]
            if is_in_a_text(store, found.unknown, apart):
                return None
            # A name that no document has needs no reading, nor does what is asked of something that only rows have;
            # another word may stand in a text in another form.
            named = all(word[:1].isupper() or any(map(str.isdigit, word)) for word in found.unknown)
            certain = named or (bool(found.about) and not is_in_a_text(store, found.about, apart))
            if not found.is_asked:  # what a table lacks that the question does not name is no reason to give
                if not (certain and found.unknown):
                    return None
                found = replace(found, refusal=translated(REFUSAL, question.text))
            return as_answer(question.text, found, store), certain
