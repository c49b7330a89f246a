"""What keeps a library in order: erase, clean, repair, move, and write the contexts that are still missing."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from local_rag.answering.answerer import Answerer
from local_rag.answering.pipeline import AnswerPipeline
from local_rag.holdings.access import Access
from local_rag.holdings.answering import Answering
from local_rag.indexing.indexer import Indexer, IndexReport
from local_rag.indexing.sentence_writer import plan_of
from local_rag.llama.generator import never
from local_rag.maintenance.moved_roots import Root, list_roots, move_root
from local_rag.maintenance.removal import Cleaning, clean, erase_ordered, finish_erasing
from local_rag.maintenance.restore import repair_index, repair_store
from local_rag.models.choice import find_for_index
from local_rag.progress_records import OnProgress, ignore
from local_rag.store.connect import remembered
from local_rag.store.context_rows import count_unwritten
from local_rag.store.counts import is_unfinished
from local_rag.store.database import Store, library_lock, locked_store
from local_rag.store.erasing import erasing, order_erasing, ordered_erasures
from local_rag.store.storage_errors import storage_errors


class Upkeep:
    """What keeps a library in order; who uses it sees all of the library. `make_indexer` is that of the library."""

    def __init__(self, access: Access, answering: Answering, make_indexer: Callable[..., Indexer]) -> None:
        self._access, self._answering, self._make_indexer = access, answering, make_indexer

    def write_contexts(self, *, stop: Callable[[], bool] = never, progress: OnProgress = ignore) -> IndexReport:
        """Write the sentences about chunks that are missing; `stop` is asked at each token and ends it."""
        with locked_store(self._access.folder) as store:
            indexer = self._make_indexer(store, progress)
            indexer.write_contexts(math.inf, stop)
            return indexer.report

    def count_unwritten(self) -> int:
        """Return how many sentences about chunks are missing, 0 if none are wanted."""
        if not (
            self._access.settings.context == "auto" and self._access.settings.context_minutes and self._access.has_store
        ):
            return 0
        _, model = find_for_index(self._access.settings)
        with self._access.reading() as store:
            return count_unwritten(store, plan_of(model)) if model else 0

    @contextmanager
    def writing(
        self, progress: OnProgress = ignore, *, create: bool = False, here: bool = False
    ) -> Iterator[tuple[Store, Indexer]]:
        """Hold the lock; yield the store and an indexer for it, which publishes in the library folder if `here`."""
        with locked_store(self._access.folder, create=create) as store:
            yield store, self._make_indexer(store, progress, self._access.shared.generations if here else None)

    @contextmanager
    def calibrating(self) -> Iterator[tuple[Store, Answerer, AnswerPipeline]]:
        """Hold the lock; yield the store, the answerer and the pipeline, to calibrate answers."""
        with locked_store(self._access.folder) as store:
            yield store, self._answering.answerer(), self._answering.pipeline()
        self._access.shared.answerer = self._access.shared.gate_base = None

    def order_erasing(self, paths: Iterable[Path | str]) -> None:
        """Record what is to be erased, also while another process writes: who writes next begins with it."""
        with storage_errors(self._access.folder), closing(Store(self._access.folder, write=True)) as store:
            order_erasing(store, map(str, paths))

    def erases_later(self) -> bool:
        """Return whether something is to be erased that was ordered, or begun and not finished."""
        with self._access.reading() as store:
            return bool(erasing(store) or ordered_erasures(store))

    def erase_ordered(self) -> None:
        """Erase what was ordered, and finish what was begun."""
        with locked_store(self._access.folder) as store:
            self.erase(store)

    def erase(self, store: Store) -> None:
        """Erase what was ordered, and finish what was begun, in an open store; the caller holds the lock."""
        if erasing(store):
            finish_erasing(store, self._access.shared.indexes)
        erase_ordered(store, self._access.shared.indexes, self._access.shared.disk)

    def erase_if_finished(self, store: Store) -> None:
        """Erase what was ordered, unless an `index` is unfinished, which comes first."""
        if not is_unfinished(store, self._access.shared.indexes.live()):
            self.erase(store)

    def clean(self, *, dry_run: bool = False) -> Cleaning:
        """Delete what is no longer needed: old indexes, orphaned contexts and vectors, leftovers."""
        with library_lock(self._access.folder), storage_errors(self._access.folder):
            return clean(self._access.folder, self._access.shared.indexes, dry_run=dry_run)

    def repair(self, *, progress: OnProgress = ignore) -> list[str]:
        """Repair what a crash or a failing disk damaged; return one sentence for each repair."""
        with library_lock(self._access.folder):
            settings = remembered(self._access.folder, self._access.shared.generations)
            done = repair_store(self._access.folder)
            with closing(Store(self._access.folder, write=True)) as store:
                store.remember(settings)
                return done + repair_index(store, self._access.shared.indexes, self._make_indexer(store, progress))

    def move_root(self, old: Path | str, new: Path | str) -> int:
        """Record that an indexed folder has moved; return the number of its documents."""
        with locked_store(self._access.folder) as store:
            return move_root(store, self._access.shared.indexes, old, new)

    def roots(self) -> Sequence[Root]:
        """Return the folders and files that were given to index() and not removed since."""
        with self._access.reading() as store:
            return list_roots(store)

    def live_stamp(self) -> str:
        """Return a value that changes with every publish."""
        return self._access.shared.indexes.live_stamp()
