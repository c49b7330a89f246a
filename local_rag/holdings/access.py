"""What somebody may use of a library: its store, index and models, as if it held nothing else than this person sees.

A person with limits sees a library that consists of the documents within them. Each store and index that is opened here
shows these documents alone, so nothing above has to leave anything out, and nothing can be asked for more.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar, cast

from local_rag.answering.answerer import Answerer, AnswerModel
from local_rag.asking import EVERYTHING, HOST, Filters, Person
from local_rag.catalogue.contents import FileStates
from local_rag.catalogue.overview import Overview
from local_rag.errors import LibraryError
from local_rag.extraction.extraction import UnwrittenCells
from local_rag.feedback.marks import GateBase
from local_rag.files import Disk
from local_rag.index.generations import Generations
from local_rag.index.protocol import Index, Indexes
from local_rag.passage_records import Passage
from local_rag.retrieval.filters import Sight
from local_rag.retrieval.live_searcher import LiveSearcher, OpenSearcher, live_index, require_sound
from local_rag.retrieval.searcher import Trace
from local_rag.retrieval.version_families import Versions
from local_rag.settings import Settings
from local_rag.store.asked_questions import Asker
from local_rag.store.connect import is_library
from local_rag.store.database import Store
from local_rag.store.published import require_own
from local_rag.store.seen import Seen
from local_rag.store.storage_errors import storage_errors
from local_rag.tables.relation_set import HeldRows

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


class Access:
    """The store, index and models of a library as somebody with limits may use them. Threads may share it."""

    def __init__(self, shared: Shared, limits: Filters = EVERYTHING, person: Person = HOST) -> None:
        self.shared, self.limits, self.person = shared, limits, person

    @property
    def folder(self) -> Path:
        """Return the folder of the library."""
        return self.shared.folder

    @property
    def settings(self) -> Settings:
        """Return the settings of the library."""
        return self.shared.settings

    @property
    def asker(self) -> Asker:
        """Return who asks, as what is kept of questions knows this person."""
        return Asker.of(self.person, self.limits)

    @property
    def has_store(self) -> bool:
        """Whether the documents are here, and not only an index in a search engine."""
        return not self.settings.search_engine.address or is_library(self.folder)

    @contextmanager
    def reading(self) -> Iterator[Store]:
        """Yield a store that only the caller uses, so it can read while another thread asks; it shows what is seen."""
        with self.opened() as (store, _seen):
            yield store

    @contextmanager
    def opened(self) -> Iterator[tuple[Store, Seen | None]]:
        """Yield such a store with the numbers that are told of what it shows; None where all is seen."""
        if not self.has_store:
            raise LibraryError(
                f"Only the index of this library is here, in {self.settings.search_engine.address}; whole "
                "documents are on the machine that indexed them."
            )
        with storage_errors(self.folder), closing(Store(self.folder)) as store:
            yield store, self.shared.sight.show_only(store, self.limits)

    def versions(self, store: Store) -> Versions:
        """Return which documents are versions of each other."""
        return Versions(store, self.settings.no_versions)

    def passing(self, store: Store, filters: Filters) -> Callable[[int], bool]:
        """Return whether a document passes filters, by its number."""
        return self.versions(store).passing(filters).__contains__ if filters else lambda _document: True

    def tell(self, value: T) -> T:
        """Return what was found with the numbers of passages that are told."""
        if not self.limits:
            return value
        with self.opened() as (store, seen):
            return self.told(value, store, seen)

    def told(self, value: T, store: Store, seen: Seen | None) -> T:
        """Return what was found in an open store with the numbers of passages that are told."""
        return value if seen is None else with_numbers(value, lambda chunks: seen.passages_told(store, chunks))

    def manifest(self) -> Mapping[str, Any]:
        """Return the manifest of the live index, which is not opened."""
        return self._live().manifest

    def live_index(self) -> Index:
        """Return the live index, open; who sees a part of the library cannot search one without its store."""
        index = self._live()
        index = index.showing(()) if self.limits else index
        with storage_errors(self.folder):
            index.open()
        return index

    def open_searcher(self) -> OpenSearcher:
        """Open the live index, or the part of it that is seen, unless it is open already."""
        return self.shared.searcher.open(self.settings, self.shared.given, self.limits)

    def index_of(self, store: Store, seen: Seen | None) -> Index:
        """Return the live index of an open store, open, or the part of it that is seen."""
        index = self._live()
        require_sound(index)
        require_own(index.passages() or store, index)
        index = index.showing(seen.told) if seen else index
        index.open()
        return index

    def _live(self) -> Index:
        return live_index(self.shared.indexes, self.settings, self.folder)


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
