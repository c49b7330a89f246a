"""The search of a library as somebody may use it: by meaning and words, by words alone, and through all documents."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from local_rag.answer_records import Found
from local_rag.asking import EVERYTHING, Filters
from local_rag.catalogue.links import without_copies
from local_rag.holdings.access import Access
from local_rag.holdings.judging import Feedback
from local_rag.models.choice import chosen, find
from local_rag.passage_records import Passage
from local_rag.plan_records import Kind
from local_rag.retrieval.exhaustive import find_meaning, find_names, find_words, scope_of
from local_rag.retrieval.find_question import FindQuestion
from local_rag.retrieval.question import Question, read_question
from local_rag.retrieval.searcher import Trace, search_keywords
from local_rag.store.storage_errors import storage_errors


class Retrieval:
    """Find the passages for questions. Threads may share it; the index and its models serve one at a time."""

    def __init__(self, access: Access, feedback: Feedback) -> None:
        self._access, self._feedback = access, feedback

    def trace(self, question: str, *, top: int, marked: bool = True, **how: Any) -> Trace:
        """Search, and record the ranking and the time of every stage; see `Searcher.trace` for `how`.

        Passages that answered the same question before come first if they were `marked` as right, and last as wrong.
        The same mail in several places is one passage.
        """
        found = self._feedback.marking(question, marked=marked)(self.ranked, self.read(question), top=top, **how)
        if self._access.has_store:
            with self._access.reading() as store:
                found = replace(found, passages=without_copies(store, found.passages))
        return self._access.tell(found)

    def ranked(self, question: Question, *, top: int, **how: Any) -> Trace:
        """Search as `trace` does, for what goes on inside: no mark counts, and no number is one that is told."""
        with self._access.shared.one_at_a_time, storage_errors(self._access.folder):
            while True:
                opened = self._access.open_searcher()
                trace = opened.searcher.trace(question, top=top, **how)
                # The store keeps all chunks of the live generation, so if it is still live, no chunk was missing.
                if self._access.shared.searcher.is_current(opened):
                    return trace

    def read(self, question: str, kind: Kind | None = None) -> Question:
        """Read a question; the first one, while a thread opens the index with its embedder."""
        if self._access.shared.searcher.is_open:
            return read_question(question, kind=kind)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self._open_ahead)  # whoever searches afterwards meets its errors again
            return read_question(question, kind=kind)

    def _open_ahead(self) -> None:
        if self._access.shared.one_at_a_time.acquire(blocking=False):
            try:
                self._access.open_searcher()
            finally:
                self._access.shared.one_at_a_time.release()

    def search_keywords(self, question: str, *, top: int, filters: Filters = EVERYTHING) -> list[Passage]:
        """Return the best passages for the words of a question; no model is loaded, and any thread may call it."""
        asked = read_question(question)
        if not self._access.has_store:
            index = self._access.live_index()
            passages = index.passages()
            assert passages is not None, "without a store, the search engine holds the passages"
            return search_keywords(asked, index, passages, top=top, filters=filters)
        with self._access.opened() as (store, seen):
            index = self._access.index_of(store, seen)
            found = search_keywords(asked, index, index.passages() or store, top=top, filters=filters)
            versions = self._access.versions(store)
            return self._access.told([versions.marked(passage) for passage in found], store, seen)

    def find(
        self, question: Question, asked: FindQuestion, filters: Filters, *, stop: Callable[[], bool], **how: Any
    ) -> Found | None:
        """Find what a question asks of all documents; None if it asks for names that none has."""
        with self._access.opened() as (store, seen):
            versions = self._access.versions(store)
            if asked.rule == "meaning":
                with self._access.shared.one_at_a_time:
                    searcher = self._access.open_searcher().searcher
                    scope = scope_of(asked, searcher.index, store, versions, filters)
                    return find_meaning(question, asked, scope, searcher, stop=stop, **how)
            scope = scope_of(asked, self._access.index_of(store, seen), store, versions, filters)
            if asked.rule == "names":
                return find_names(question, asked, scope)
            return find_words(question, asked, scope, stop=stop)

    def share_known(self, question: Question, filters: Filters) -> float:
        """Return the share of a question's words that the documents have; see `Searcher.share_known`."""
        with self._access.shared.one_at_a_time, storage_errors(self._access.folder):
            return self._access.open_searcher().searcher.share_known(question, filters)

    def load(self) -> None:
        """Load the models that search before the first question."""
        with self._access.shared.one_at_a_time, storage_errors(self._access.folder):
            self._access.open_searcher().searcher.load()

    def manifest(self) -> Mapping[str, Any]:
        """Return the manifest of the live index."""
        with self._access.shared.one_at_a_time:
            return self._access.open_searcher().searcher.index.manifest

    def facts_version(self) -> object:
        """Return a value that changes with the paths and times of documents, which an index need not hold."""
        with self._access.shared.one_at_a_time, storage_errors(self._access.folder):
            return self._access.open_searcher().searcher.facts_version

    @property
    def reranks(self) -> bool:
        """Return whether the profile has a reader."""
        return "rerank" in chosen(self._access.settings)

    @property
    def knows_relevance(self) -> bool:
        """Return whether it is known from which closeness on a passage is about a subject, by the embedder."""
        return find(self._access.settings, "embed").about_from is not None
