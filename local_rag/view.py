"""A library as somebody may see it: search, ask, and read what it holds.

A person with limits sees a library that consists of the documents within them. Each view reads a store and an index
that show these documents alone, so no method has to leave anything out, and none can be asked for more.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar, cast

from local_rag.answering.answerer import Answerer, AnswerModel
from local_rag.answering.pipeline import AnswerPipeline, Telling
from local_rag.answering.probability import valid
from local_rag.answering.question_parts import read_question
from local_rag.asking import DEFAULT_OPTIONS, EVERYTHING, AskOptions, FilterFields, Filters, Turn, as_filters
from local_rag.catalogue.browsing import Listing, Look, browse, look
from local_rag.catalogue.contents import (
    Contents,
    FileStates,
    IndexProgress,
    ListedDocument,
    Location,
    WholeDocument,
    find_passage,
    index_progress,
    list_documents,
    locate,
    whole_document,
)
from local_rag.catalogue.library_status import Status, collect_status, status_of_part
from local_rag.catalogue.overview import Overview, overview
from local_rag.catalogue.question_drafts import draft_questions
from local_rag.digests.brief import DEFAULT_LINES, Brief, require_lines, write_brief
from local_rag.digests.differences import Difference, compare
from local_rag.digests.digest_answers import answer_digest
from local_rag.digests.digest_questions import digest_question
from local_rag.digests.named_documents import NamedDocuments, ReadFromDisk, reading_files
from local_rag.display import Name, names_below
from local_rag.errors import LibraryError, StoppedError
from local_rag.extraction.asking import DocumentAsker
from local_rag.extraction.cells import Cell
from local_rag.extraction.columns import Column, parse_columns
from local_rag.extraction.extraction import Extraction, Table
from local_rag.extraction.saved_tables import SavedTables
from local_rag.files import Disk
from local_rag.index.generations import Generations
from local_rag.index.protocol import Index, Indexes
from local_rag.llama.generator import never
from local_rag.models.choice import calibration_of, chosen, find, identity_of
from local_rag.models.reader import Reader
from local_rag.records import Answer, Found, Passage, Progress, Written
from local_rag.retrieval.counting_questions import FindQuestion, any_question, as_words, asks_for_documents
from local_rag.retrieval.exhaustive import find_meaning, find_names, find_words, scope_of
from local_rag.retrieval.filters import Sight, document_filter, literal_path, outdated_of
from local_rag.retrieval.live_searcher import LiveSearcher, OpenSearcher, live_index, require_sound
from local_rag.retrieval.question import Question
from local_rag.retrieval.searcher import Trace, search_keywords
from local_rag.retrieval.version_families import Version, Versions
from local_rag.settings import Settings
from local_rag.store.connect import is_library, remembered
from local_rag.store.database import Store
from local_rag.store.history_file import count_use
from local_rag.store.published import require_own
from local_rag.store.recorded_questions import QUESTIONS_FILE, add_question, add_wrong_answer, wrong_answers
from local_rag.store.relation_query import MAX_ROWS, QueryResult
from local_rag.store.relation_rows import is_in_a_text, relations_stamp
from local_rag.store.seen import Seen, seen_stamp, show_only
from local_rag.store.storage_errors import storage_errors
from local_rag.tables.answer import answer_from_rows
from local_rag.tables.as_answer import as_answer
from local_rag.tables.relation_set import NamedRelation, RelationSet, relation_set
from local_rag.text.small_talk import reply_to_small_talk

OnProgress = Callable[[Progress], None]
_MOST_RELATION_SETS = 4  # of different filters and limits, whose tables stay in memory
T = TypeVar("T")
_EXTRACTED_FROM = 4  # passages of a long document that are read for a question of a table
_NOT_CALIBRATED = (
    "What is close enough is not measured for this embedder, so the documents with these words were found."
)


def ignore(_event: object) -> None:
    """Do nothing with what is told."""


@dataclass(slots=True)
class Shared:
    """What a library shares with its views; models and index serve one thread at a time."""

    folder: Path
    settings: Settings
    given: Collection[str]  # the names of the settings that were given explicitly
    generations: Generations
    indexes: Indexes
    disk: Disk
    files: FileStates
    searcher: LiveSearcher
    answer_model: AnswerModel
    sight: Sight
    answerer: Answerer | None = None
    relations: dict[tuple[Filters, Filters], RelationSet] = field(default_factory=dict)
    rows_alone: RLock = field(default_factory=RLock)  # one question about rows at a time, beside models and index
    overviews: dict[Filters, tuple[object, Overview]] = field(default_factory=dict)
    one_at_a_time: RLock = field(default_factory=RLock)


class View:
    """A library as somebody with limits may see it; without any, all of it. Threads may share a view."""

    def __init__(self, shared: Shared, limits: Filters = EVERYTHING) -> None:
        self._shared, self._limits = shared, limits

    @property
    def folder(self) -> Path:
        """Return the folder of the library."""
        return self._shared.folder

    @property
    def settings(self) -> Settings:
        """Return the settings of the library."""
        return self._shared.settings

    @property
    def is_whole(self) -> bool:
        """Whether all of the library is seen."""
        return not self._limits

    def status(self) -> Status:
        """Return what the library contains, how it was built, and what is stale and why.

        Of a part of it, return what is known of its documents alone.
        """
        with self.reading() as store:
            if self._limits:
                return status_of_part(store, self.settings)
            return collect_status(store, self._shared.indexes, self.settings, self._shared.disk)

    def documents(
        self, *, filters: Filters | FilterFields = EVERYTHING, after: str = "", most: int | None = None
    ) -> list[ListedDocument]:
        """Return the documents that match the filters: what each is about, its state, dates and size.

        They are ordered by path: the first `most` whose path comes after `after`, or all.
        """
        with self.reading() as store:
            return list_documents(store, self._shared.indexes, as_filters(filters), after=after, most=most)

    def document(self, document_id: int, *, with_text: bool = True) -> WholeDocument:
        """Return a document as it was indexed, or without its text and passages what is known of its file.

        Raise MissingError if there is none.
        """
        with self._reading() as (store, seen):
            meant = seen.document_meant(document_id) if seen else document_id
            found = whole_document(store, meant, self._shared.files, with_text=with_text)
            return self._told(replace(found, id=document_id), store, seen)

    def passage(self, chunk_id: int) -> Passage:
        """Return the passage with this number; raise MissingError if there is none."""
        with self._reading() as (store, seen):
            found = find_passage(store, seen.passage_meant(store, chunk_id) if seen else chunk_id)
            return replace(found, chunk_id=chunk_id)

    @property
    def questions_file(self) -> Path:
        """Return the file to which `record_question` adds."""
        return self.folder / QUESTIONS_FILE

    def record_question(self, question: str, chunk_id: int) -> None:
        """Add a question and the passage that answers it to the library's own evaluation dataset."""
        self._require_retention()
        add_question(self.folder, question, self.passage(chunk_id))

    def record_wrong_answer(self, question: str, chunk_id: int | None) -> None:
        """Add a question that was answered wrongly, perhaps from a passage, to those that wait for the right one."""
        self._require_retention()
        add_wrong_answer(self.folder, question, self.passage(chunk_id) if chunk_id else None)

    def wrong_answers(self) -> list[str]:
        """Return the questions that wait for the right passage; who sees only a part sees none of others."""
        return [] if self._limits else wrong_answers(self.folder)

    def _require_retention(self) -> None:
        if not self.settings.retention.conversations:
            raise LibraryError("The setting history is off, so no question is written to a file; turn it on first.")

    def locate(self, passages: Sequence[Passage]) -> list[Location]:
        """Return the document that each passage leads to, and whether its file has changed."""
        if not self._has_store:
            return [Location() for _ in passages]
        with self._reading() as (store, seen):
            if seen is None:
                return locate(store, passages, self._shared.files)
            meant = [replace(one, chunk_id=seen.passage_meant(store, one.chunk_id)) for one in passages]
            found = locate(store, meant, self._shared.files)
            return [replace(one, document=seen.told.get(one.document or 0)) for one in found]

    def changed(self, answer: Answer) -> list[str]:
        """Return the paths of the cited documents whose files have changed or gone since they were indexed."""
        cited = {one.passage.path: one.passage for one in answer.citations}
        states = [one.state for one in self.locate(list(cited.values()))]
        return [path for path, state in zip(cited, states, strict=True) if state in {"changed", "missing"}]

    def contents(self) -> Contents:
        """Return the paths of the documents with their ids, and the roots that hold any."""
        if self._has_store:
            with self._reading() as (store, seen):
                ids = {one.path: one.id for one in store.documents()}
                told = {path: seen.told[one] for path, one in ids.items()} if seen else ids
                return Contents(told, tuple(store.roots()))
        passages = self._live_index().passages()
        assert passages is not None, "without a store, the search engine holds the passages"
        return Contents({one.path: one.id for one in passages.facts()}, tuple(passages.roots()))

    def overview(self) -> Overview:
        """Return what the library holds at a glance."""
        if not self._has_store:
            contents, passages = self.contents(), self._live_index().passages()
            assert passages is not None, "without a store, the search engine holds the passages"
            return overview(passages.facts(), contents.documents, names_below(contents.roots), unread=0)
        with self._reading() as (store, seen):
            known, stamp = self._shared.overviews.get(self._limits), seen_stamp(store)
            if known is None or known[0] != stamp:
                ids = {one.path: seen.told[one.id] if seen else one.id for one in store.documents()}
                made = overview(store.facts(), ids, names_below(store.roots()), unread=len(store.unread()))
                known = self._shared.overviews[self._limits] = stamp, made
            return known[1]

    def draft_questions(self, *, most: int) -> list[str]:
        """Return at most so many questions that the documents may answer; nothing has checked whether they do."""
        with self.reading() as store:
            return draft_questions(store, most=most)

    def place_names(self) -> Name:
        """Return a function that names places from their indexed folder on, for programs on other machines."""
        if not self._has_store:
            return names_below(self.contents().roots)
        with self.reading() as store:
            return names_below(store.roots())

    def browse(self, wanted: Look = Look(), *, start: int = 0, count: int = 100) -> Listing:  # noqa: B008
        """Return `count` of the documents that are looked at, from `start` on, and how far each is indexed."""
        with self._reading() as (store, seen):
            found = browse(store, self._shared.files, wanted, start=start, count=count)
            if seen is None:
                return found
            return replace(found, documents=tuple(replace(one, id=seen.told[one.id]) for one in found.documents))

    def looked_at(self, wanted: Look) -> list[str]:
        """Return the paths of all documents that are looked at."""
        with self.reading() as store:
            return [one.path for one in look(store, wanted)]

    def unread(self) -> list[tuple[str, str]]:
        """Return the files that could not be read, with the reasons."""
        with self.reading() as store:
            return [(path, one.reason) for path, one in sorted(store.unread().items())]

    def index_progress(self) -> IndexProgress:
        """Return how far the documents are indexed, perhaps by another process.

        Whether others are being indexed is nothing that who sees a part is told.
        """
        with self.reading() as store:
            found = index_progress(store)
        return replace(found, running=found.running and found.vectors < found.chunks) if self._limits else found

    def search_keywords(self, question: str, *, top: int, filters: Filters = EVERYTHING) -> list[Passage]:
        """Return the best passages for the words of a question; no model is loaded, and any thread may call it."""
        asked = Question(question)
        if not self._has_store:
            index = self._live_index()
            passages = index.passages()
            assert passages is not None, "without a store, the search engine holds the passages"
            return search_keywords(asked, index, passages, top=top, filters=filters)
        with self._reading() as (store, seen):
            index = self._index_of(store, seen)
            found = search_keywords(asked, index, index.passages() or store, top=top, filters=filters)
            versions = Versions(store, self.settings.no_versions)
            return self._told([versions.marked(passage) for passage in found], store, seen)

    def find(
        self,
        question: str,
        *,
        filters: Filters | FilterFields = EVERYTHING,
        most: int = 0,
        progress: OnProgress = ignore,
        stop: Callable[[], bool] = never,
    ) -> Found:
        """Return what all documents that pass the filters hold for a question that counts or lists.

        A question for words needs no model, and any thread may ask it. For a meaning all passages are compared with the
        subject, and those near it are read sentence by sentence, or the `most` nearest of them; once `stop` returns
        True, the result is what was found until then.
        """
        checked, asked, notes = Question(question), any_question(question), tuple[str, ...]()
        filters, how = as_filters(filters), dict[str, Any](most=most, progress=progress, stop=stop)
        found = self._find(checked, asked, filters, **how) if asked.rule == "names" else None
        if found is None:
            if asked.rule == "names":
                asked = replace(asked, rule="meaning", subject=asked.sort or asked.subject, sort="")
            if asked.rule == "meaning" and not self._knows_relevance:
                asked, notes = as_words(asked), (_NOT_CALIBRATED,)
            found = self._find(checked, asked, filters, **how)
        assert found is not None, "only names may be those of no document"
        return self._tell(replace(found, notes=(*found.notes, *notes)))

    def _find(
        self, question: Question, asked: FindQuestion, filters: Filters, *, stop: Callable[[], bool], **how: Any
    ) -> Found | None:
        """Find what a question asks of all documents; None if it asks for names that none has."""
        with self._reading() as (store, seen):
            versions = Versions(store, self.settings.no_versions)
            if asked.rule == "meaning":
                with self._shared.one_at_a_time:
                    searcher = self._open_searcher().searcher
                    scope = scope_of(asked, searcher.index, store, versions, filters)
                    return find_meaning(question, asked, scope, searcher, stop=stop, **how)
            scope = scope_of(asked, self._index_of(store, seen), store, versions, filters)
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
        with self._reading() as (_, seen):
            if seen is None:
                return table
            rows = (replace(row, document=seen.told.get(row.document, 0)) for row in table.rows)
            return replace(table, rows=tuple(rows))

    def correct_cell(self, document_id: int, column: Column, cell: Cell | None) -> None:
        """Keep a person's cell of a document in place of what the model said; None lets the model's count again."""
        with self._reading() as (_, seen):
            meant = seen.document_meant(document_id) if seen else document_id
        self._extraction().correct(meant, column, cell)

    def tables_of(self, person: str = "") -> SavedTables:
        """Return the tables that a person has saved; without an id, those of who serves the library."""
        return SavedTables(self.folder, person, kept=self.settings.retention.conversations)

    def _extraction(self) -> Extraction:
        models = [identity_of(self.settings, role) for role in ("answer", "rerank", "embed")]

        @contextmanager
        def open_asker(path: str) -> Iterator[tuple[DocumentAsker, Callable[[str], Sequence[Passage]]]]:
            with self._shared.one_at_a_time:
                answerer, opened = self._open_answerer(), self._open_searcher()
                reader = opened.searcher.reader if self.reranks else None

                def search(question: str) -> Sequence[Passage]:
                    only = Filters(within=(literal_path(path),))
                    return self._trace(Question(question), top=_EXTRACTED_FROM, filters=only).passages

                yield DocumentAsker(answerer.generator, answerer.form, reader), search

        return Extraction(self.folder, models, self.reading, open_asker, self.settings.no_versions)

    def tables(self, *, filters: Filters | FilterFields = EVERYTHING) -> list[NamedRelation]:
        """Return the tables of the documents that pass the filters, each with its name in SQL and its columns."""
        with self._shared.rows_alone:
            return list(self._relations(as_filters(filters)).named)

    def query_tables(self, statement: str, *, most: int = MAX_ROWS) -> QueryResult:
        """Run one SELECT on a copy of the tables that `tables` returns; raise QuestionError for anything else.

        It ends after a limit of time, and returns `most` rows at most.
        """
        with self._shared.rows_alone:
            return self._relations(EVERYTHING).query(statement, most=most)

    def _relations(self, filters: Filters) -> RelationSet:
        """Return the tables of the documents that are seen and pass filters; they stay open while nothing changes."""
        sets = self._shared.relations
        with self._reading() as (store, _seen):
            stamp = relations_stamp(store)
            known = sets.pop((self._limits, filters), None)
            if known is None or known.stamp != stamp:
                if known:
                    known.close()
                known = relation_set(store, stamp, self.reading, self._passing(store, filters))
        sets[self._limits, filters] = known
        while len(sets) > _MOST_RELATION_SETS:
            sets.pop(next(iter(sets))).close()
        return known

    def _passing(self, store: Store, filters: Filters) -> Callable[[int], bool]:
        if not filters:
            return lambda _document: True
        passes, versions = document_filter(filters, store.roots()), Versions(store, self.settings.no_versions)
        outdated = outdated_of(filters, versions.outdated)
        passing = {facts.id for facts in store.facts() if passes(facts) and facts.id not in outdated}
        return passing.__contains__

    def families(self, *, filters: Filters | FilterFields = EVERYTHING) -> list[tuple[Version, ...]]:
        """Return the documents that are versions of each other, newest first; one of them must pass the filters."""
        with self.reading() as store:
            passes, facts = document_filter(as_filters(filters), store.roots()), {one.id: one for one in store.facts()}
            families = Versions(store, self.settings.no_versions).families()
            return [family for family in families if any(passes(facts[version.id]) for version in family)]

    def diff(self, before: Path | str, after: Path | str = "", *, read_files: bool = False) -> Difference:
        """Return what changed between two documents, named by path, file name or title; see `compare`.

        With one name, its two newest versions are compared. With `read_files`, who sees the whole library may also name
        files that are not indexed, or that have changed since.
        """
        with self._files(read_files) as from_disk:
            if from_disk and after and not is_library(self.folder):
                return compare(*(from_disk(Path(name)) for name in (before, after)))
            with self._named() as named:
                if not after:
                    return compare(*named.versions_of(str(before)))
                return compare(*(named.open(str(name), from_disk) for name in (before, after)))

    def brief(
        self,
        names: Sequence[Path | str] = (),
        *,
        lines: int = DEFAULT_LINES,
        filters: Filters | FilterFields = EVERYTHING,
        read_files: bool = False,
    ) -> Brief:
        """Return what documents say in quotations; see `write_brief`.

        The documents are those with these paths, folders, names or titles, or all that pass the filters. `read_files`
        is as in `diff`.
        """
        require_lines(lines)
        with self._files(read_files) as from_disk:
            if from_disk and names and not is_library(self.folder):
                return write_brief([from_disk(Path(name)) for name in names], lines)
            with self._named(as_filters(filters)) as named:
                return write_brief(named.texts([str(name) for name in names], from_disk), lines)

    def _files(self, read_files: bool) -> AbstractContextManager[ReadFromDisk | None]:
        """Return what reads files that are not indexed, for who sees the whole library and wishes for it."""
        return reading_files() if read_files and self.is_whole else nullcontext()

    @contextmanager
    def _named(self, filters: Filters = EVERYTHING) -> Iterator[NamedDocuments]:
        """Open the documents that are seen by the names that people give them."""
        with self._reading() as (store, _seen):
            yield NamedDocuments(store, Versions(store, self.settings.no_versions), self._shared.files, filters)

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
        how = {"filters": as_filters(filters), "rerank": rerank, "every": every, "min_score": min_score}
        return self.trace(question, top=top, **how).passages

    def trace(self, question: str, *, top: int, **how: Any) -> Trace:
        """Search, and record the ranking and the time of every stage; see `Searcher.trace` for `how`."""
        return self._tell(self._trace(Question(question), top=top, **how))

    def _trace(self, question: Question, *, top: int, **how: Any) -> Trace:
        with self._shared.one_at_a_time, storage_errors(self.folder):
            while True:
                opened = self._open_searcher()
                trace = opened.searcher.trace(question, top=top, **how)
                # The store keeps all chunks of the live generation, so if it is still live, no chunk was missing.
                if self._shared.searcher.is_current(opened):
                    return trace

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
        earlier: Sequence[Turn] = (),
        on_text: Callable[[Written], None] = ignore,
        on_passages: Callable[[Sequence[Passage]], None] = ignore,
        counted: bool = True,
        progress: OnProgress = ignore,
        stop: Callable[[], bool] = never,
    ) -> Answer:
        """Answer a question from the documents, quote them if the answer is doubtful, or report that they say nothing.

        A question that counts or lists is answered by code over all documents, which reports its `progress`. What is no
        question, such as a greeting, gets a reply of the program.

        `passages` is how many of the best passages the model is shown whole; with None it is shown the best parts of
        several. `rerank` uses the reader, where the profile has one. `strict` quotes instead of giving an answer with a
        number or name that its quotation lacks. `anyway` answers even if the answer is doubtful. All of them may be
        given as `options` instead.

        The search for a follow-up also uses the questions of the `earlier` turns. `on_passages` receives the passages
        found, and `on_text` the text of the answer as it is written. `stop` is called between the stages of the search
        and the operations of the model; when it returns True, the answer ends with StoppedError. status() counts the
        question if `counted`.
        """
        if reply := reply_to_small_talk(question):
            on_text(Written(reply))
            return Answer(question, reply, "answered")
        options = options or AskOptions(
            passages=passages, rerank=rerank, filters=as_filters(filters), strict=strict, anyway=anyway
        )
        with self._shared.one_at_a_time:
            pipeline, show = self.pipeline(options, earlier, progress=progress, stop=stop), Telling(on_text)
            tell = on_passages if self.is_whole else lambda passages: on_passages(self._tell(passages))
            answer = self._tell(pipeline.ask(read_question(question), show=show, on_passages=tell))
            show(answer.text)
            if counted and self.settings.retention.counts:
                count_use(self.folder, answered=answer.answered, seconds=answer.seconds)
            return answer

    def read_ahead(self, question: str, options: AskOptions = DEFAULT_OPTIONS, *, stop: Callable[[], bool]) -> None:
        """Let the model read what it would be shown for a question, until `stop`, so that the answer begins sooner."""
        with self._shared.one_at_a_time, suppress(StoppedError):
            self.pipeline(options, stop=stop).read_ahead(read_question(question))

    def pipeline(
        self,
        options: AskOptions = DEFAULT_OPTIONS,
        earlier: Sequence[Turn] = (),
        *,
        progress: OnProgress = ignore,
        stop: Callable[[], bool] = never,
    ) -> AnswerPipeline:
        """Return a pipeline that answers questions step by step, for one thread, until `stop` returns true."""

        def open_reader() -> Reader | None:
            with storage_errors(self.folder):
                return self._open_searcher().searcher.reader if options.rerank else None

        def search_all(question: Question, asked: FindQuestion) -> Found | None:
            if not self._has_store or (asked.rule == "meaning" and not self._knows_relevance):
                return None
            most = self.settings.find_passages
            return self._find(question, asked, options.filters, most=most, progress=progress, stop=stop)

        def answer_whole(question: Question) -> Answer | None:
            asked = digest_question(question.text)
            if asked is None or not self._has_store:
                return None
            with self._named(options.filters) as named:
                return answer_digest(question.text, asked, named)

        def ask_rows(question: Question, asked: Sequence[str]) -> tuple[Answer, bool] | None:
            if not self._has_store or asks_for_documents(question.text):
                return None
            with self._shared.rows_alone:
                found = answer_from_rows(question.text, self._relations(options.filters), asked)
            if found is None:
                return None
            with self.reading() as store:
                # What no row has, a text may hold.
                if is_in_a_text(store, found.unknown):
                    return None
                return as_answer(question.text, found, store), not found.unknown

        @contextmanager
        def open_versions() -> Iterator[Versions]:
            with self.reading() as store:
                yield Versions(store, self.settings.no_versions)

        return AnswerPipeline(
            partial(
                self._trace,
                top=options.passages or self.settings.passages,
                rerank=options.rerank,
                filters=options.filters,
                of_asked_versions=True,
            ),
            self._open_answerer,
            self._shared.answer_model.count_tokens,
            options,
            earlier=earlier,
            open_reader=open_reader,
            search_all=search_all,
            answer_whole=answer_whole,
            ask_rows=ask_rows,
            open_versions=open_versions if self._has_store else None,
            stop=stop,
        )

    @contextmanager
    def reading(self) -> Iterator[Store]:
        """Yield a store that only the caller uses, so it can read while another thread asks; it shows what is seen."""
        with self._reading() as (store, _seen):
            yield store

    @contextmanager
    def _reading(self) -> Iterator[tuple[Store, Seen | None]]:
        if not self._has_store:
            raise LibraryError(
                f"Only the index of this library is here, in {self.settings.search_engine.address}; whole "
                "documents are on the machine that indexed them."
            )
        with storage_errors(self.folder), closing(Store(self.folder)) as store:
            seen = self._shared.sight.of(store, self._limits) if self._limits else None
            if seen:
                show_only(store, seen)
            yield store, seen

    def _tell(self, value: T) -> T:
        """Return what was found with the numbers of passages that are told."""
        if not self._limits:
            return value
        with self._reading() as (store, seen):
            return self._told(value, store, seen)

    def _told(self, value: T, store: Store, seen: Seen | None) -> T:
        return value if seen is None else with_numbers(value, lambda chunks: seen.passages_told(store, chunks))

    def _live_index(self) -> Index:
        """Return the live index, open; who sees a part of the library cannot search one without its store."""
        index = live_index(self._shared.indexes, self.settings, self.folder)
        index = index.showing(()) if self._limits else index
        with storage_errors(self.folder):
            index.open()
        return index

    def _index_of(self, store: Store, seen: Seen | None) -> Index:
        """Return the live index of an open store, open, or the part of it that is seen."""
        index = live_index(self._shared.indexes, self.settings, self.folder)
        require_sound(index)
        require_own(index.passages() or store, index)
        index = index.showing(seen.told) if seen else index
        index.open()
        return index

    @property
    def _has_store(self) -> bool:
        """Whether the documents are here, and not only an index in a search engine."""
        return not self.settings.search_engine.address or is_library(self.folder)

    def manifest(self) -> Mapping[str, Any]:
        """Return the manifest of the live index."""
        with self._shared.one_at_a_time:
            return self._open_searcher().searcher.index.manifest

    def facts_version(self) -> object:
        """Return a value that changes with the paths and times of documents, which an index need not hold."""
        with self._shared.one_at_a_time, storage_errors(self.folder):
            return self._open_searcher().searcher.facts_version

    @property
    def reranks(self) -> bool:
        """Return whether the profile has a reader."""
        return "rerank" in chosen(self.settings)

    @property
    def _knows_relevance(self) -> bool:
        """Return whether it is known from which closeness on a passage is about a subject, by the embedder."""
        return find(self.settings, "embed").about_from is not None

    def _open_answerer(self) -> Answerer:
        """Return what answers, with the answer model, which is loaded when it is needed."""
        shared = self._shared
        if shared.answerer is None:
            model = find(self.settings, "answer")
            calibration = calibration_of(model, remembered(self.folder, shared.generations))
            calibration = valid(calibration, identity_of(self.settings, "rerank"), model.form)
            close_from = find(self.settings, "embed").close_from
            shared.answerer = Answerer(shared.answer_model.open, calibration, form=model.form, close_from=close_from)
        return shared.answerer

    def _open_searcher(self) -> OpenSearcher:
        """Open the live index, or the part of it that is seen, unless it is open already."""
        return self._shared.searcher.open(self.settings, self._shared.given, self._limits)


def with_numbers(value: T, told: Callable[[Sequence[int]], Mapping[int, int]]) -> T:
    """Return a record with other numbers of passages; `told` gives them for those that there are."""
    chunks = dict[int, None]()

    def note(passage: Passage) -> Passage:
        chunks[passage.chunk_id] = None
        return passage

    _with_passages(value, note)
    rankings = value.rankings if isinstance(value, Trace) else {}
    chunks |= dict.fromkeys(one for ranking in rankings.values() for one in ranking)
    numbers = told([*chunks])
    changed = _with_passages(value, lambda passage: replace(passage, chunk_id=numbers.get(passage.chunk_id, 0)))
    if isinstance(changed, Trace):
        ranked = {name: [numbers.get(one, 0) for one in ranking] for name, ranking in rankings.items()}
        return cast(T, replace(changed, rankings=ranked))
    return cast(T, changed)


def _with_passages(value: Any, change: Callable[[Passage], Passage]) -> Any:
    """Return a record, or a sequence of records, with its passages changed."""
    if isinstance(value, Passage):
        return change(value)
    if isinstance(value, tuple | list):
        return type(value)(_with_passages(one, change) for one in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _with_passages(getattr(value, one.name), change) for one in fields(value)})
    return value
