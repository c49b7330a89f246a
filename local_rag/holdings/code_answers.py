"""Answer by code what needs no language model: rows, all documents together, changes and summaries, by the plan."""

from collections.abc import Callable, Sequence

from local_rag.answer_records import Answer, Found
from local_rag.answering.pipeline import answer_of
from local_rag.asking import Filters
from local_rag.digests.digest_answers import answer_digest
from local_rag.holdings.access import Access
from local_rag.holdings.documents import Documents
from local_rag.holdings.held_tables import Tables
from local_rag.retrieval.find_question import FindQuestion, find_question
from local_rag.retrieval.question import Question
from local_rag.tables.answer import as_answer
from local_rag.understanding.question_reader import read_plan


class CodeAnswers:
    """Answer questions by what somebody sees, within filters; `find` looks through all documents."""

    def __init__(
        self,
        access: Access,
        documents: Documents,
        tables: Tables,
        filters: Filters,
        find: Callable[[Question, FindQuestion], Found | None],
    ) -> None:
        self._access, self._documents, self._tables = access, documents, tables
        self._filters, self._find = filters, find

    def __call__(self, question: Question, earlier: Sequence[str]) -> Answer | None:
        """Answer a question that follows `earlier` ones; None if its plan is that of none for code, or does not fit.

        A plan does not fit where it names documents that the library does not have.
        """
        plan = question.plan
        if plan.kind in {"changes", "brief"}:
            with self._documents.named(self._filters) as named:
                digest = answer_digest(question.text, plan, named)
            if digest:
                return digest
        if plan.kind == "documents" and (asked := find_question(plan, question.text)):
            found = self._find(question, asked)
            if found:
                return answer_of(found)
        if plan.may_ask_rows or (earlier and read_plan(earlier[-1]).may_ask_rows):
            return self._from_rows(question, earlier)
        return None

    def _from_rows(self, question: Question, earlier: Sequence[str]) -> Answer | None:
        found = self._tables.answer(question.text, filters=self._filters, earlier=earlier)
        if found is None:
            return None
        with self._access.reading() as store:
            return as_answer(question.text, found, store)
