"""A library as somebody may see it: search, ask, and read what it holds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from local_rag.answer_records import Answer, BeingRead, Found, Written
from local_rag.answering.answerer import Answerer
from local_rag.answering.pace import pace_of
from local_rag.answering.pipeline import AnswerPipeline, Telling
from local_rag.asking import (
    DEFAULT_OPTIONS,
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
from local_rag.catalogue.links import without_copies
from local_rag.code_answers import CodeAnswers
from local_rag.errors import LocalRagError, ModelError, StoppedError
from local_rag.extraction.asking import DocumentAsker, Search
from local_rag.extraction.cells import Cell
from local_rag.extraction.columns import Column, parse_columns
from local_rag.extraction.extraction import Extraction, Table
from local_rag.files import literal_path
from local_rag.holdings.access import Access, Shared
from local_rag.holdings.comparing import Changes
from local_rag.holdings.documents import Documents
from local_rag.holdings.held_tables import Tables
from local_rag.holdings.judging import UNMARKED, Feedback, Marking
from local_rag.llama.generator import never
from local_rag.models.choice import chosen, find, identity_of
from local_rag.models.reader import Reader
from local_rag.passage_records import Passage
from local_rag.plan_records import Kind, Plan
from local_rag.progress_records import OnProgress, ignore
from local_rag.retrieval.exhaustive import find_meaning, find_names, find_words, scope_of
from local_rag.retrieval.find_question import FindQuestion, Phrase, any_question, as_words
from local_rag.retrieval.question import Question, read_question
from local_rag.retrieval.searcher import Trace, search_keywords
from local_rag.retrieval.version_families import Versions
from local_rag.settings import Settings
from local_rag.store.asked_questions import Asker
from local_rag.store.connect import is_library
from local_rag.store.database import NamedDocument, StoredDocument
from local_rag.store.history_file import count_use
from local_rag.store.storage_errors import storage_errors
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
    """

    def __init__(self, shared: Shared, limits: Filters = EVERYTHING, person: Person = HOST) -> None:
        self._access = Access(shared, limits, person)
        self.documents = Documents(self._access)
        self.tables = Tables(self._access)
        self.changes = Changes(self._access, self.documents)
        self.feedback = Feedback(self._access, self.documents)

    @property
    def folder(self) -> Path:
        """Return the folder of the library."""
        return self._access.folder

    @property
    def settings(self) -> Settings:
        """Return the settings of the library."""
        return self._access.settings

    @property
    def is_whole(self) -> bool:
        """Whether all of the library is seen."""
        return not self._access.limits

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
        found = self._find(checked, asked, filters, **how) if asked.rule == "names" else None
        if found is None:
            if asked.rule == "names":
                asked = replace(asked, rule="meaning", subject=asked.sort or question, sort="")
            if asked.rule == "meaning" and not self._knows_relevance:
                asked, notes = as_words(asked), (_NOT_CALIBRATED,)
            found = self._find(checked, asked, filters, **how)
        assert found is not None, "only names may be those of no document"
        return self._access.tell(replace(found, notes=(*found.notes, *notes)))

    def _find(
        self, question: Question, asked: FindQuestion, filters: Filters, *, stop: Callable[[], bool], **how: Any
    ) -> Found | None:
        """Find what a question asks of all documents; None if it asks for names that none has."""
        with self._access.opened() as (store, seen):
            versions = self._access.versions(store)
            if asked.rule == "meaning":
                with self._shared.one_at_a_time:
                    searcher = self._access.open_searcher().searcher
                    scope = scope_of(asked, searcher.index, store, versions, filters)
                    return find_meaning(question, asked, scope, searcher, stop=stop, **how)
            scope = scope_of(asked, self._access.index_of(store, seen), store, versions, filters)
            if asked.rule == "names":
                return find_names(question, asked, scope)
            return find_words(question, asked, scope, stop=stop)

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
        return verify_text(text, _LookedUp(self, limits), self._holds if model else lambda *_: None, **how)

    def _holds(self, quotation: str, statement: str) -> float | None:
        """Return the answer model's log odds that a quotation says a statement; None if no model is installed."""
        with suppress(ModelError), self._shared.one_at_a_time:
            find(self.settings, "answer")
            return log_odds_of(self._open_answerer().generator, quotation, statement)
        return None

    def correct_cell(self, document_id: int, column: Column, cell: Cell | None) -> None:
        """Keep a person's cell of a document in place of what the model said; None lets the model's count again."""
        with self._access.opened() as (_, seen):
            meant = seen.document_meant(document_id) if seen else document_id
        self._extraction().correct(meant, column, cell)

    def _extraction(self) -> Extraction:
        models = [identity_of(self.settings, role) for role in ("answer", "rerank", "embed")]

        @contextmanager
        def open_asker(document: StoredDocument) -> Iterator[tuple[DocumentAsker, Search]]:
            with self._shared.one_at_a_time:
                answerer, opened = self._open_answerer(), self._access.open_searcher()
                reader = opened.searcher.reader if self.reranks else None

                # A cell is told to all who see its document, so it must not depend on what else the asker sees.
                alone = cache(lambda: opened.searcher.showing([document.id]))

                def search(question: str) -> Sequence[Passage]:
                    if self.settings.search_engine.address:  # which cannot show a part
                        only = Filters(within=(literal_path(document.path),))
                        return self._trace(Question(question), top=_EXTRACTED_FROM, filters=only).passages
                    return alone().trace(Question(question), top=_EXTRACTED_FROM).passages

                yield DocumentAsker(answerer.generator, answerer.form, reader), search

        return Extraction(
            self.folder,
            models,
            self._access.reading,
            open_asker,
            self.settings.no_versions,
            Asker.of(self._access.person, self._access.limits).limits,
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
        return self.trace(question, top=top, **how).passages

    def trace(self, question: str, *, top: int, marked: bool = True, **how: Any) -> Trace:
        """Search, and record the ranking and the time of every stage; see `Searcher.trace` for `how`.

        Passages that answered the same question before come first if they were `marked` as right, and last as wrong.
        The same mail in several places is one passage.
        """
        found = self.feedback.marking(question, marked=marked)(self._trace, self._read(question), top=top, **how)
        if self._access.has_store:
            with self._access.reading() as store:
                found = replace(found, passages=without_copies(store, found.passages))
        return self._access.tell(found)

    def _read(self, question: str, kind: Kind | None = None) -> Question:
        """Read a question; the first one, while a thread opens the index with its embedder."""
        if self._shared.searcher.is_open:
            return read_question(question, kind=kind)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self._open_ahead)  # whoever searches afterwards meets its errors again
            return read_question(question, kind=kind)

    def _open_ahead(self) -> None:
        if self._shared.one_at_a_time.acquire(blocking=False):
            try:
                self._access.open_searcher()
            finally:
                self._shared.one_at_a_time.release()

    def _trace(self, question: Question, *, top: int, **how: Any) -> Trace:
        with self._shared.one_at_a_time, storage_errors(self.folder):
            while True:
                opened = self._access.open_searcher()
                trace = opened.searcher.trace(question, top=top, **how)
                # The store keeps all chunks of the live generation, so if it is still live, no chunk was missing.
                if self._shared.searcher.is_current(opened):
                    return trace

    def _share_known(self, question: Question, filters: Filters) -> float:
        with self._shared.one_at_a_time, storage_errors(self.folder):
            return self._access.open_searcher().searcher.share_known(question, filters)

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
        asked = self._read(question, options.kind)
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
            pipeline = self.pipeline(options, earlier, marking=marking, progress=progress, stop=stop)
            show = Telling(on_text)
            tell = on_passages if self.is_whole else lambda passages: on_passages(self._access.tell(passages))
            answer = pipeline.ask(asked, show=show, on_passages=tell, on_reading=on_reading)
            show(answer.text)
            if counted and answer.outcome != "left":
                counts = self.settings.retention.counts
                if not self.feedback.record(answer, marking, epoch, counted=counts) and counts:
                    count_use(self.folder, answered=answer.answered, seconds=answer.seconds)
            return self._access.tell(answer)

    def read_ahead(self, question: str, options: AskOptions = DEFAULT_OPTIONS, *, stop: Callable[[], bool]) -> None:
        """Let the model read what it would be shown for a question, until `stop`, so that the answer begins sooner."""
        with self._shared.one_at_a_time, suppress(StoppedError):
            self.pipeline(options, stop=stop).read_ahead(read_question(question))

    def pipeline(
        self,
        options: AskOptions = DEFAULT_OPTIONS,
        earlier: Sequence[Turn] = (),
        *,
        marking: Marking = UNMARKED,
        progress: OnProgress = ignore,
        stop: Callable[[], bool] = never,
    ) -> AnswerPipeline:
        """Return a pipeline that answers questions step by step, for one thread, until `stop` returns true.

        `marking` puts the passages that it finds for a question in order by the marks of the same question.
        """
        how = dict[str, Any](
            top=options.passages or self.settings.passages,
            rerank=options.rerank,
            filters=options.filters,
            of_asked_versions=True,
        )

        def open_reader() -> Reader | None:
            with storage_errors(self.folder):
                return self._access.open_searcher().searcher.reader if options.rerank else None

        def find(question: Question, asked: FindQuestion) -> Found | None:
            if asked.rule == "meaning" and not self._knows_relevance:
                return None
            most = self.settings.find_passages
            return self._find(question, asked, options.filters, most=most, progress=progress, stop=stop)

        @contextmanager
        def open_versions() -> Iterator[Versions]:
            with self._access.reading() as store:
                yield self._access.versions(store)

        by_code = CodeAnswers(self._access, self.documents, self.tables, options.filters, find)
        return AnswerPipeline(
            partial(marking, self._trace, **how),
            cache(self._open_answerer),
            self._shared.answer_model.count_tokens,
            options,
            search_part=partial(self._trace, **how),
            earlier=earlier,
            open_reader=open_reader,
            by_code=by_code if self._access.has_store else None,
            open_versions=open_versions if self._access.has_store else None,
            share_known=lambda question: self._share_known(question, options.filters),
            stop=stop,
        )

    def manifest(self) -> Mapping[str, Any]:
        """Return the manifest of the live index."""
        with self._shared.one_at_a_time:
            return self._access.open_searcher().searcher.index.manifest

    def facts_version(self) -> object:
        """Return a value that changes with the paths and times of documents, which an index need not hold."""
        with self._shared.one_at_a_time, storage_errors(self.folder):
            return self._access.open_searcher().searcher.facts_version

    @property
    def reranks(self) -> bool:
        """Return whether the profile has a reader."""
        return "rerank" in chosen(self.settings)

    @property
    def _shared(self) -> Shared:
        return self._access.shared

    def _open_answerer(self) -> Answerer:
        """Return what answers, with the answer model, which is loaded when it is needed, and the present gate."""
        shared, base = self._shared, self.feedback.gate_base()
        if shared.answerer is None:
            embedder, model = find(self.settings, "embed"), find(self.settings, "answer")
            shared.answerer = Answerer(
                shared.answer_model.open,
                form=base.form,
                close_from=embedder.close_from,
                translates=model.translates,
                pace=pace_of(model),
            )
        shared.answerer.calibration = self.feedback.calibration()
        return shared.answerer

    @property
    def _knows_relevance(self) -> bool:
        """Return whether it is known from which closeness on a passage is about a subject, by the embedder."""
        return find(self.settings, "embed").about_from is not None


@dataclass(frozen=True, slots=True)
class _LookedUp:
    """The documents of a view that pass filters, as statements are looked up in them."""

    view: View
    filters: Filters

    def search(self, text: str, within: Sequence[str] = ()) -> Sequence[Passage]:
        """Return the passages that fit a text best, of all documents or of those with these paths.

        It is no question, so no reader is asked.
        """
        places, trace = tuple(map(literal_path, within)), self.view._trace
        limits = replace(self.filters, within=places) if places else self.filters
        return trace(Question(text[:MAX_QUESTION]), top=MOST_PASSAGES, filters=limits, rerank=False).passages

    def quoting(self, words: str) -> Passage | None:
        """Return the first place of a document that has these words one after the other; None if none has."""
        asked = FindQuestion("documents", "words", phrases=(Phrase(words, exact=True),))
        found = self.view._find(Question(words[:MAX_QUESTION]), asked, self.filters, stop=never)
        return found.places[0].passage if found and found.places else None

    def named(self) -> Sequence[NamedDocument]:
        """Return what the documents are called."""
        return self.view.documents.names(self.filters)
