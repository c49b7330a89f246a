"""A library as somebody may see it: search, ask, and read what it holds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from local_rag.answer_records import Answer, BeingRead, Found, Written
from local_rag.answering.pipeline import Telling
from local_rag.asking import (
    EVERYTHING,
    HOST,
    MAX_QUESTION,
    AskOptions,
    FilterFields,
    Filters,
    Person,
    Turn,
    as_filters,
)
from local_rag.catalogue.library_status import Status, collect_status, status_of_part
from local_rag.errors import LocalRagError, ModelError
from local_rag.extraction.columns import Column, parse_columns
from local_rag.extraction.document_asker import DocumentAsker, Search
from local_rag.extraction.extraction import Extraction, Table
from local_rag.files import literal_path
from local_rag.holdings.access import Access, Shared
from local_rag.holdings.answering import Answering
from local_rag.holdings.comparing import Changes
from local_rag.holdings.documents import Documents
from local_rag.holdings.held_tables import Tables
from local_rag.holdings.judging import Feedback
from local_rag.holdings.retrieval import Retrieval
from local_rag.llama.generator import never
from local_rag.models.choice import find, identity_of
from local_rag.passage_records import Passage
from local_rag.plan_records import Plan
from local_rag.progress_records import OnProgress, ignore
from local_rag.retrieval.find_question import FindQuestion, Phrase, any_question, as_words
from local_rag.retrieval.question import Question, read_question
from local_rag.settings import Settings
from local_rag.store.connect import is_library
from local_rag.store.database import NamedDocument, StoredDocument
from local_rag.store.history_file import count_use
from local_rag.understanding.question_reader import read_plan
from local_rag.understanding.replies import reply_to_small_talk
from local_rag.verification.evidence import MOST_PASSAGES
from local_rag.verification.judge import log_odds_of, verify_text
from local_rag.verification.verdicts import Checked, Verification

_EXTRACTED_FROM = 4  # passages of a long document that are read for a question of a table
_NOT_CALIBRATED = (
    "What is close enough is not measured for this embedder, so the documents with these words were found."
)


class View:
    """A library as somebody with limits may see it; without any, all of it. Threads may share a view.

    What it holds and what was said of its answers are parts of their own: `documents`, `tables`, `changes`, `feedback`.
    What searches and answers step by step, for the program itself, is in `retrieval` and `answering`.
    """

    def __init__(self, shared: Shared, limits: Filters = EVERYTHING, person: Person = HOST) -> None:
        self._shared, self._access = shared, Access(shared, limits, person)
        self.documents = Documents(self._access)
        self.tables = Tables(self._access)
        self.changes = Changes(self._access, self.documents)
        self.feedback = Feedback(self._access, self.documents)
        self.retrieval = Retrieval(self._access, self.feedback)
        self.answering = Answering(self._access, self.documents, self.tables, self.feedback, self.retrieval)

    @property
    def folder(self) -> Path:
        """Return the folder of the library."""
        return self._access.folder

    @property
    def settings(self) -> Settings:
        """Return the settings of the library."""
        return self._access.settings

    def status(self) -> Status:
        """Return what the library contains, how it was built, what is stale and why, and what marks come to.

        Of a part of it, return what is known of its documents alone.
        """
        with self._access.reading() as store:
            if self._access.limits:
                found = status_of_part(store, self.settings)
            else:
                found = collect_status(store, self._shared.indexes, self.settings, self._shared.disk)
        with suppress(LocalRagError):
            effect = self.feedback.marks()
            if effect.right or effect.wrong:
                answered_from = found.answered_from
                if answered_from is not None or effect.answer_from != effect.shipped_from:
                    answered_from = effect.answer_from
                return replace(found, answered_from=answered_from, marks=asdict(effect))
        return found

    def plan(self, question: str) -> Plan:
        """Return what a question asks for; no language model takes part, and any thread may ask.

        What rows answer has their query, in SQL.
        """
        asked = read_question(question)
        if not (asked.plan.may_ask_rows and is_library(self.folder)):
            return asked.plan
        found = self.tables.answer(asked.text)
        return replace(asked.plan, kind="rows", query=found.table.sql) if found else asked.plan

    def find(
        self,
        question: str,
        *,
        filters: Filters | FilterFields = EVERYTHING,
        most: int = 0,
        exact: FindQuestion | None = None,
        progress: OnProgress = ignore,
        stop: Callable[[], bool] = never,
    ) -> Found:
        """Return what all documents that pass the filters hold for a question that counts or lists, or for `exact`.

        A question for words needs no model, and any thread may ask it. For a meaning all passages are compared with the
        subject, and those near it are read sentence by sentence, or the `most` nearest of them; once `stop` returns
        True, the result is what was found until then.
        """
        checked = Question(question)
        asked = exact or any_question(question, read_plan(question))
        filters, notes = as_filters(filters), tuple[str, ...]()
        how = dict[str, Any](most=most, progress=progress, stop=stop)
        found = self.retrieval.find(checked, asked, filters, **how) if asked.rule == "names" else None
        if found is None:
            if asked.rule == "names":
                asked = replace(asked, rule="meaning", subject=asked.sort or question, sort="")
            if asked.rule == "meaning" and not self.retrieval.knows_relevance:
                asked, notes = as_words(asked), (_NOT_CALIBRATED,)
            found = self.retrieval.find(checked, asked, filters, **how)
        assert found is not None, "only names may be those of no document"
        return self._access.tell(replace(found, notes=(*found.notes, *notes)))

    def extract(
        self,
        columns: Iterable[Column | Mapping[str, object] | str],
        *,
        filters: Filters | FilterFields = EVERYTHING,
        newest: bool = False,
        most: int = 0,
        ask: bool = True,
        progress: OnProgress = ignore,
        stop: Callable[[], bool] = never,
    ) -> Table:
        """Ask each document that passes the filters the question of each column, and return the answers as a table.

        A column has a name, a question and a type, or is written "Name: Question? (type)". What is stored is not asked
        again, and each cell is stored the moment it exists; once `stop` returns True, the table holds what was asked
        until then. `newest` leaves older versions out, `most` limits the documents, and without `ask` nothing is asked.
        """
        checked, limits, extraction = parse_columns(columns), as_filters(filters), self._extraction()
        if ask:
            table = extraction.run(checked, limits, newest=newest, most=most, progress=progress, stop=stop)
        else:
            table = extraction.stored(checked, limits, newest=newest, most=most)
        with self._access.opened() as (_, seen):
            if seen is None:
                return table
            rows = (replace(row, document=seen.told.get(row.document, 0)) for row in table.rows)
            return replace(table, rows=tuple(rows))

    def verify(
        self,
        text: str,
        *,
        filters: Filters | FilterFields = EVERYTHING,
        model: bool = True,
        first: int = 0,
        seconds: float | None = None,
        progress: OnProgress = ignore,
        on_statement: Callable[[Checked], None] = ignore,
        stop: Callable[[], bool] = never,
    ) -> Verification:
        """Check what a text says against the documents that pass the filters; nothing of it is kept.

        Code compares values, dates, names and quotations. What words leave open, the answer model decides; without
        `model`, or where none is installed, what is likelier. Statements are checked from number `first` on, and
        `on_statement` receives each as soon as it is. What is not checked after `seconds`, or once `stop` returns True,
        is left out.
        """
        limits = as_filters(filters)
        how = dict[str, Any](first=first, seconds=seconds, progress=progress, on_statement=on_statement, stop=stop)
        documents, holds = _LookedUp(self.retrieval, self.documents, limits), self._holds if model else lambda *_: None
        return verify_text(text, documents, holds, **how)

    def _holds(self, quotation: str, statement: str) -> float | None:
        """Return the answer model's log odds that a quotation says a statement; None if no model is installed."""
        with suppress(ModelError), self._shared.one_at_a_time:
            find(self.settings, "answer")
            return log_odds_of(self.answering.answerer().generator, quotation, statement)
        return None

    def _extraction(self) -> Extraction:
        models = [identity_of(self.settings, role) for role in ("answer", "rerank", "embed")]

        @contextmanager
        def open_asker(document: StoredDocument) -> Iterator[tuple[DocumentAsker, Search]]:
            with self._shared.one_at_a_time:
                answerer, opened = self.answering.answerer(), self._access.open_searcher()
                reader = opened.searcher.reader if self.retrieval.reranks else None

                # A cell is told to all who see its document, so it must not depend on what else the asker sees.
                alone = cache(lambda: opened.searcher.showing([document.id]))

                def search(question: str) -> Sequence[Passage]:
                    if self.settings.search_engine.address:  # which cannot show a part
                        only = Filters(within=(literal_path(document.path),))
                        return self.retrieval.ranked(Question(question), top=_EXTRACTED_FROM, filters=only).passages
                    return alone().trace(Question(question), top=_EXTRACTED_FROM).passages

                yield DocumentAsker(answerer.generator, answerer.form, reader), search

        return Extraction(
            self.folder,
            models,
            self._access.reading,
            open_asker,
            self.settings.no_versions,
            self._access.asker.limits,
            None if self.settings.retention.conversations else self._shared.unwritten_cells,
        )

    def search(
        self,
        question: str,
        *,
        top: int | None = None,
        filters: Filters | FilterFields = EVERYTHING,
        rerank: bool = True,
        every: bool = False,
        min_score: float | None = None,
    ) -> list[Passage]:
        """Return the best passages for a question, best first: `top`, or as many as the setting `passages` says.

        `rerank` uses the reader, where the profile has one. With `every`, many more candidates are searched, and all
        that are not weak returned. With `min_score`, passages with a lower score by the reader are left out.
        """
        top = top or (self.settings.all_candidates if every else self.settings.passages)
        how = dict[str, Any](filters=as_filters(filters), rerank=rerank, every=every, min_score=min_score)
        return self.retrieval.trace(question, top=top, **how).passages

    def ask(
        self,
        question: str,
        options: AskOptions | None = None,
        *,
        filters: Filters | FilterFields = EVERYTHING,
        passages: int | None = None,
        rerank: bool = True,
        strict: bool = True,
        anyway: bool = False,
        code_only: bool = False,
        seconds: float | None = None,
        earlier: Sequence[Turn] = (),
        on_text: Callable[[Written], None] = ignore,
        on_passages: Callable[[Sequence[Passage]], None] = ignore,
        on_reading: Callable[[BeingRead], None] = ignore,
        counted: bool = True,
        progress: OnProgress = ignore,
        stop: Callable[[], bool] = never,
    ) -> Answer:
        """Answer a question from the documents, quote them if the answer is doubtful, or report that they say nothing.

        A question that counts or lists is answered by code over all documents, which reports its `progress`. What is no
        question, such as a greeting, gets a reply of the program.

        `passages` is how many of the best passages the model is shown whole; with None it is shown the best parts of
        several. `rerank` uses the reader, where the profile has one. `strict` quotes instead of giving an answer with a
        number or name that its quotation lacks. `anyway` answers even if the answer is doubtful. With `code_only`, no
        model is asked; in so many `seconds`, the model reads what it can read and answer. All of them may be given as
        `options` instead.

        The search for a follow-up also uses the questions of the `earlier` turns. `on_passages` receives the passages
        found, `on_reading` what the model reads next, and `on_text` the text of the answer as it is written. `stop` is
        called between the stages of the search and the operations of the model; when it returns True, the answer ends
        with StoppedError. status() counts the question if `counted`.
        """
        options = options or AskOptions(
            passages=passages,
            rerank=rerank,
            filters=as_filters(filters),
            strict=strict,
            anyway=anyway,
            code_only=code_only,
            seconds=seconds,
        )
        asked = self.retrieval.read(question, options.kind)
        if asked.plan.kind == "chat" and not options.kind and self.documents.is_of_a_title(question):
            asked = read_question(question, kind="passages")
        if asked.plan.kind == "chat":
            reply = reply_to_small_talk(asked.plan)
            on_text(Written(reply))
            return Answer(question, reply, "answered", plan=asked.plan)
        with self._shared.one_at_a_time:
            if asked.plan.kind == "passages" and not options.code_only:
                self._shared.answer_model.begin()
            marking, epoch = self.feedback.marking(question, marked=counted), self.feedback.epoch() if counted else 0
            pipeline = self.answering.pipeline(options, earlier, marking=marking, progress=progress, stop=stop)
            show = Telling(on_text)
            answer = pipeline.ask(
                asked,
                show=show,
                on_passages=lambda passages: on_passages(self._access.tell(passages)),
                on_reading=on_reading,
            )
            show(answer.text)
            if counted and answer.outcome != "left":
                counts = self.settings.retention.counts
                if not self.feedback.record(answer, marking, epoch, counted=counts) and counts:
                    count_use(self.folder, answered=answer.answered, seconds=answer.seconds)
            return self._access.tell(answer)


@dataclass(frozen=True, slots=True)
class _LookedUp:
    """The documents of a view that pass filters, as statements are looked up in them."""

    retrieval: Retrieval
    documents: Documents
    filters: Filters

    def search(self, text: str, within: Sequence[str] = ()) -> Sequence[Passage]:
        """Return the passages that fit a text best, of all documents or of those with these paths.

        It is no question, so no reader is asked.
        """
        places = tuple(map(literal_path, within))
        limits = replace(self.filters, within=places) if places else self.filters
        how = dict[str, Any](top=MOST_PASSAGES, filters=limits, rerank=False)
        return self.retrieval.ranked(Question(text[:MAX_QUESTION]), **how).passages

    def quoting(self, words: str) -> Passage | None:
        """Return the first place of a document that has these words one after the other; None if none has."""
        asked = FindQuestion("documents", "words", phrases=(Phrase(words, exact=True),))
        found = self.retrieval.find(Question(words[:MAX_QUESTION]), asked, self.filters, stop=never)
        return found.places[0].passage if found and found.places else None

    def named(self) -> Sequence[NamedDocument]:
        """Return what the documents are called."""
        return self.documents.names(self.filters)
