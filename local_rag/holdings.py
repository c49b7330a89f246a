"""What a library holds, as somebody may see it: its documents, their tables and changes, and its state.

A person with limits sees a library that consists of the documents within them. Each view reads a store and an index
that show these documents alone, so no method has to leave anything out, and none can be asked for more.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar, cast

from local_rag.answering.answerer import Answerer, AnswerModel
from local_rag.asking import EVERYTHING, HOST, FilterFields, Filters, Person, as_filters
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
from local_rag.catalogue.links import LinkedDocument, Links
from local_rag.catalogue.overview import Overview, draft_questions, overview
from local_rag.digests.brief import DEFAULT_LINES, Brief, require_lines, write_brief
from local_rag.digests.differences import Difference, compare, require_comparable
from local_rag.digests.named_documents import NamedDocuments, ReadFromDisk, reading_files
from local_rag.display import Name, names_below
from local_rag.errors import LibraryError
from local_rag.extraction.extraction import UnwrittenCells
from local_rag.feedback.marks import GateBase
from local_rag.files import Disk, index_command
from local_rag.index.generations import Generations
from local_rag.index.protocol import Index, Indexes
from local_rag.reading.formats import is_expected
from local_rag.records import Answer, Passage
from local_rag.retrieval.filters import Sight, document_filter
from local_rag.retrieval.live_searcher import LiveSearcher, live_index
from local_rag.retrieval.searcher import Trace
from local_rag.retrieval.version_families import Version, Versions
from local_rag.settings import Settings
from local_rag.store.asked_questions import lines_of
from local_rag.store.connect import is_library
from local_rag.store.database import Store
from local_rag.store.recorded_questions import QUESTIONS_FILE, add_question, wrong_answers
from local_rag.store.relation_query import MAX_ROWS, QueryResult
from local_rag.store.relation_rows import relations_stamp
from local_rag.store.seen import Seen, seen_stamp, show_only
from local_rag.store.storage_errors import storage_errors
from local_rag.tables.relation_set import HeldRows, NamedRelation, RelationSet, relation_set

T = TypeVar("T")


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
    gate_base: GateBase | None = None
    rows: HeldRows = field(default_factory=HeldRows)  # of questions, beside models and index
    queries: HeldRows = field(default_factory=HeldRows)  # of SQL, for which no question waits
    unwritten_cells: UnwrittenCells = field(default_factory=UnwrittenCells)
    overviews: dict[Filters, tuple[object, Overview]] = field(default_factory=dict)
    one_at_a_time: RLock = field(default_factory=RLock)


class Holdings:
    """What is read of a library without a model, as somebody with limits may see it. Threads may share it."""

    def __init__(self, shared: Shared, limits: Filters = EVERYTHING, person: Person = HOST) -> None:
        self._shared, self._limits, self._person = shared, limits, person

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
        with self._reading() as (store, seen):
            found = list_documents(store, self._shared.indexes, as_filters(filters), after=after, most=most)
            return [replace(one, links=_linked(one.links, seen)) for one in found] if seen else found

    def document(self, document_id: int, *, with_text: bool = True) -> WholeDocument:
        """Return a document as it was indexed, or without its text and passages what is known of its file.

        Raise MissingError if there is none.
        """
        with self._reading() as (store, seen):
            meant = seen.document_meant(document_id) if seen else document_id
            found = whole_document(store, meant, self._shared.files, with_text=with_text)
            if with_text:
                links = Links(store)
                linked = _linked(links.of(meant, found.path), seen)
                found = replace(found, names=links.other_names(meant), links=linked)
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
        passage = self.passage(chunk_id)
        add_question(self.folder, question, f"{passage.path}{lines_of(passage)}", passage.sha256)

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

    def require_documents(self) -> None:
        """Raise LibraryError if no document can be searched; the models would be loaded for nothing."""
        if not live_index(self._shared.indexes, self.settings, self.folder).manifest["documents"]:
            index = index_command(self.folder, "PATH")
            raise LibraryError(f"The library {self.folder} holds no documents; index some with `{index}`.")

    def missing_notice(self) -> str:
        """Return how much can be searched so far, if the first index() has not ended, else nothing."""
        manifest = live_index(self._shared.indexes, self.settings, self.folder).manifest
        if expected := manifest.get("expected"):
            so_far = f"{manifest['documents']} of about {expected} documents can be searched so far"
            return f"The first `local-rag index` has not ended: {so_far}."
        return ""

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
                unread = sum(not is_expected(one.reason) for one in store.unread().values())
                made = overview(store.facts(), ids, names_below(store.roots()), unread=unread)
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

    def tables(self, *, filters: Filters | FilterFields = EVERYTHING) -> list[NamedRelation]:
        """Return the tables of the documents that pass the filters, each with its name in SQL and its columns."""
        with self._taken_relations(as_filters(filters)) as taken:
            return list(taken.named)

    def query_tables(self, statement: str, *, most: int = MAX_ROWS) -> QueryResult:
        """Run one SELECT on a copy of the tables that `tables` returns; raise QuestionError for anything else.

        It ends after a limit of time, and returns `most` rows at most.
        """
        with self._taken_relations(EVERYTHING) as taken:
            return taken.query(statement, most=most)

    @contextmanager
    def _taken_relations(self, filters: Filters) -> Iterator[RelationSet]:
        """Yield tables for this caller alone; who asks meanwhile gets others, and waits for no query of anybody."""
        kept, taken, key = self._shared.queries, HeldRows(), (self._limits, filters)
        with kept.alone:
            if held := kept.sets.pop(key, None):
                taken.sets[key] = held
        try:
            yield self._relations(filters, taken)
        finally:
            with kept.alone:
                kept.keep(taken.sets)

    @contextmanager
    def held_rows(self, filters: Filters) -> Iterator[RelationSet]:
        """Yield the tables that questions are asked of, kept from question to question, for one thread at a time."""
        with self._shared.rows.alone:
            yield self._relations(filters, self._shared.rows)
            self._shared.rows.keep({})  # a question may have brought rows for which others make room

    def _relations(self, filters: Filters, held: HeldRows) -> RelationSet:
        """Return the tables of the documents that are seen and pass filters; they stay open while nothing changes."""
        sets = held.sets
        with self._reading() as (store, _seen):
            stamp = relations_stamp(store)
            known = sets.pop((self._limits, filters), None)
            if known is None or known.stamp != stamp:
                if known:
                    known.close()
                known = relation_set(store, stamp, self.reading, self._passing(store, filters))
        held.keep({(self._limits, filters): known})
        return known

    def _passing(self, store: Store, filters: Filters) -> Callable[[int], bool]:
        if not filters:
            return lambda _document: True
        return Versions(store, self.settings.no_versions).passing(filters).__contains__

    def families(self, *, filters: Filters | FilterFields = EVERYTHING) -> list[tuple[Version, ...]]:
        """Return the documents that are versions of each other, newest first; one of them must pass the filters."""
        with self._reading() as (store, seen):
            passes, facts = document_filter(as_filters(filters), store.roots()), {one.id: one for one in store.facts()}
            families = Versions(store, self.settings.no_versions).families()
            found = [family for family in families if any(passes(facts[version.id]) for version in family)]
            return [tuple(replace(one, id=seen.told[one.id]) for one in family) for family in found] if seen else found

    def diff(self, before: Path | str, after: Path | str = "", *, read_files: bool = False) -> Difference:
        """Return what changed between two documents, named by path, file name or title; see `compare`.

        With one name, its two newest versions are compared. With `read_files`, who sees the whole library may also name
        files that are not indexed, or that have changed since, and documents of any length.
        """
        with self._files(read_files) as from_disk:
            if from_disk and after and not is_library(self.folder):
                return compare(*(from_disk(Path(name)) for name in (before, after)))
            with self.named() as named:
                if after:
                    one, other = (named.open(str(name), from_disk) for name in (before, after))
                else:
                    one, other = named.versions_of(str(before))
                if not read_files:
                    require_comparable(one, other)
                return compare(one, other)

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
            with self.named(as_filters(filters)) as named:
                return write_brief(named.texts([str(name) for name in names], from_disk), lines)

    def _files(self, read_files: bool) -> AbstractContextManager[ReadFromDisk | None]:
        """Return what reads files that are not indexed, for who sees the whole library and wishes for it."""
        return reading_files() if read_files and self.is_whole else nullcontext()

    @contextmanager
    def named(self, filters: Filters = EVERYTHING) -> Iterator[NamedDocuments]:
        """Open the documents that are seen by the names that people give them."""
        with self._reading() as (store, _seen):
            yield NamedDocuments(store, Versions(store, self.settings.no_versions), self._shared.files, filters)

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

    @property
    def _has_store(self) -> bool:
        """Whether the documents are here, and not only an index in a search engine."""
        return not self.settings.search_engine.address or is_library(self.folder)


def _linked(links: Sequence[LinkedDocument], seen: Seen | None) -> tuple[LinkedDocument, ...]:
    """Return links with the numbers of documents that are told."""
    return tuple(replace(one, id=seen.told[one.id]) if seen else one for one in links)


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
