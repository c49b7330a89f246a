"""Open the live index of a library for search, with the settings and models it was made with."""

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from local_rag.asking import EVERYTHING, Filters
from local_rag.errors import ClusterError, DamagedLibraryError, LibraryError
from local_rag.files import command_for, no_library
from local_rag.index.protocol import Index, Indexes, PassageStore
from local_rag.model_records import InstalledModel
from local_rag.models.choice import chosen, find
from local_rag.models.embedder import Embedder, is_frequent_word
from local_rag.models.reader import Reader
from local_rag.retrieval.filters import Sight
from local_rag.retrieval.searcher import FollowUpTuning, Searcher
from local_rag.retrieval.version_families import Versions
from local_rag.settings import REMEMBERED, Settings
from local_rag.store.connect import is_library
from local_rag.store.database import Store
from local_rag.store.published import require_own
from local_rag.store.seen import Seen

_MOST_VIEWS = 8  # of an index that stay open


@dataclass(frozen=True, slots=True)
class OpenSearcher:
    """A searcher, and what must be closed after it; `is_overtaken` says that its passages may be written meanwhile."""

    searcher: Searcher
    close: Callable[[], None]
    is_overtaken: Callable[[], bool]


class LiveSearcher:
    """Keep the live index open for search; an index published since the last question replaces it.

    `require_compatible` raises LibraryError if the manifest of the index does not allow the settings and the embedder.
    """

    def __init__(
        self,
        folder: Path,
        indexes: Indexes,
        sight: Sight,
        *,
        require_compatible: Callable[[Mapping[str, Any], Settings, InstalledModel], None],
        load_embedder: Callable[[InstalledModel], Embedder],
        load_reader: Callable[[InstalledModel], Reader],
    ) -> None:
        self._folder, self._indexes, self._require_compatible = folder, indexes, require_compatible
        self._sight = sight
        # A new index needs no new models: each is loaded once, until another one is asked for.
        self._load_embedder, self._load_reader = lru_cache(1)(load_embedder), lru_cache(1)(load_reader)
        self._opened = dict[Filters, OpenSearcher]()  # by the limits of who searches, in the order of their last use

    @property
    def is_open(self) -> bool:
        """Return whether an index is open, with its models."""
        return bool(self._opened)

    def open(self, settings: Settings, explicit: Collection[str], limits: Filters = EVERYTHING) -> OpenSearcher:
        """Return the searcher of the live index, opened if that is not open.

        It has the settings that the index was made with, except the `explicit` ones, which keep their value, and with
        limits it shows only what they let somebody see. Raises LibraryError, ClusterError or OSError if there is no
        index, or if it cannot be opened.
        """
        while True:
            stamp = self._indexes.live_stamp()
            before = self._opened.pop(limits, None)
            if before is not None and _is_current(before, stamp):
                self._opened[limits] = before
                return before
            try:
                opened = self._open(settings, explicit, limits)
            except (LibraryError, OSError):
                # A writer may have replaced and removed this index while it was being opened.
                if self._indexes.live_stamp() == stamp:
                    raise
            else:
                self._opened[limits] = opened
                self._close_others(stamp)
            finally:
                if before is not None:
                    before.close()

    def _open(self, settings: Settings, explicit: Collection[str], limits: Filters) -> OpenSearcher:
        index = live_index(self._indexes, settings, self._folder)
        used = settings_of(index.manifest, settings, explicit)
        embed_model = find(used, "embed")
        self._require_compatible(index.manifest, used, embed_model)
        require_sound(index)
        with ExitStack() as stack:
            passages: PassageStore | None = index.passages()
            store, seen, versions = None, None, None
            if passages is None:
                passages = store = stack.enter_context(closing(Store(self._folder)))
                require_own(store, index)
                seen = self._sight.show_only(store, limits)
                versions = Versions(store, settings.no_versions)
            if limits:
                index = index.showing(seen.told if seen else ())
            index.open()
            rerank_model = find(used, "rerank") if "rerank" in chosen(used) else None
            searcher = Searcher(
                index,
                passages,
                settings,
                self._load_embedder(embed_model),
                partial(self._load_reader, rerank_model) if rerank_model else None,
                rerank_model.weak_below if rerank_model else None,
                FollowUpTuning(new_subject_below=embed_model.new_subject_below),
                versions,
                embed_model.about_from,
                partial(is_frequent_word, embed_model),
                of_part=bool(limits),
            )
            return OpenSearcher(searcher, stack.pop_all().close, partial(_is_overtaken, store, seen))

    def is_current(self, opened: OpenSearcher) -> bool:
        """Return whether an index is still the live one, and its passages those that it was made of."""
        return _is_current(opened, self._indexes.live_stamp())

    def close(self) -> None:
        """Close the index and free the models; it can be opened again."""
        while self._opened:
            self._opened.popitem()[1].close()
        self._load_embedder.cache_clear()
        self._load_reader.cache_clear()

    def _close_others(self, stamp: str) -> None:
        """Close the views of earlier indexes, and those used longest ago."""
        views = [limits for limits in self._opened if limits]
        outdated = {limits for limits in views if not _is_current(self._opened[limits], stamp)}
        for limits in outdated.union(views[:-_MOST_VIEWS]):
            self._opened.pop(limits).close()


def _is_current(opened: OpenSearcher, stamp: str) -> bool:
    return bool(stamp) and opened.searcher.index.stamp == stamp and not opened.is_overtaken()


def require_sound(index: Index) -> None:
    """Raise DamagedLibraryError if an index is damaged, since it would count and find too little."""
    if damage := index.damage(hash_all=False):
        raise DamagedLibraryError(f"The index is damaged: {damage[0]}", "run `local-rag repair` to build it again")


def _is_overtaken(store: Store | None, seen: Seen | None) -> bool:
    return store is not None and (store.is_overtaken or (seen is not None and store.version() != seen.version))


def live_index(indexes: Indexes, settings: Settings, folder: Path) -> Index:
    """Return the live index; raise LibraryError or ClusterError if nothing was published yet."""
    if (index := indexes.live()) is not None:
        return index
    if settings.search_engine.address:
        raise ClusterError(
            f"There is no library in {settings.search_engine.address}; run `local-rag index FOLDER`, or "
            "`local-rag cluster copy` if it is already indexed."
        )
    if is_library(folder):
        command = command_for(folder, "index")
        raise LibraryError(f"The library in {folder} has no index yet; run `{command}` to make it.")
    raise LibraryError(no_library(folder))


def settings_of(manifest: Mapping[str, Any], settings: Settings, explicit: Collection[str]) -> Settings:
    """Return the settings with the values that an index was made with, except for the `explicit` ones."""
    made = {name: value for name, value in manifest.get("settings", {}).items() if name in REMEMBERED}
    return settings.model_copy(update={name: value for name, value in made.items() if name not in explicit})
