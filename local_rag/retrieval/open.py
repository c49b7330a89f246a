"""Open the live index of a library for search, with the settings and models it was made with."""

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from local_rag.errors import ClusterError, DamagedLibraryError, LibraryError
from local_rag.index.protocol import Index, Indexes, PassageStore
from local_rag.models.choice import chosen, find
from local_rag.models.embedder import Embedder
from local_rag.models.reader import Reader
from local_rag.records import InstalledModel
from local_rag.retrieval.follow_ups import FollowUpTuning
from local_rag.retrieval.search import Searcher
from local_rag.retrieval.versions import Versions
from local_rag.settings import REMEMBERED, Settings
from local_rag.store.database import Store
from local_rag.store.published import require_own


@dataclass(frozen=True, slots=True)
class OpenSearcher:
    """A searcher, and what must be closed after it; `is_overtaken` says that its passages may be written meanwhile."""

    searcher: Searcher
    close: Callable[[], None]
    is_overtaken: Callable[[], bool]


def open_searcher(
    folder: Path,
    indexes: Indexes,
    settings: Settings,
    explicit: Collection[str],
    *,
    require_compatible: Callable[[Mapping[str, Any], Settings, InstalledModel], None],
    load_embedder: Callable[[InstalledModel], Embedder],
    load_reader: Callable[[InstalledModel], Reader],
) -> OpenSearcher:
    """Open the live index with the settings it was made with, except the `explicit` ones, which keep their value.

    `require_compatible` raises LibraryError if the manifest of the index does not allow these settings and this
    embedder. Raises LibraryError, ClusterError or OSError if there is no index, or if it cannot be opened.
    """
    index = live_index(indexes, settings, folder)
    used = settings_of(index.manifest, settings, explicit)
    embed_model = find(used, "embed")
    require_compatible(index.manifest, used, embed_model)
    if damage := index.damage(hash_all=False):
        raise DamagedLibraryError(f"The index is damaged: {damage[0]}", "run `local-rag repair` to build it again")
    index.open()
    with ExitStack() as stack:
        passages: PassageStore | None = index.passages()
        is_overtaken, versions = lambda: False, None
        if passages is None:
            passages = store = stack.enter_context(closing(Store(folder)))
            require_own(store, index)
            is_overtaken, versions = lambda: store.is_overtaken, Versions(store, settings.no_versions)
        rerank_model = find(used, "rerank") if "rerank" in chosen(used) else None
        searcher = Searcher(
            index,
            passages,
            settings,
            load_embedder(embed_model),
            partial(load_reader, rerank_model) if rerank_model else None,
            rerank_model.weak_below if rerank_model else None,
            FollowUpTuning(new_subject_below=embed_model.new_subject_below),
            versions,
            embed_model.about_from,
        )
        return OpenSearcher(searcher, stack.pop_all().close, is_overtaken)


def live_index(indexes: Indexes, settings: Settings, folder: Path) -> Index:
    """Return the live index; raise LibraryError or ClusterError if nothing was published yet."""
    if (index := indexes.live()) is not None:
        return index
    if settings.search_engine:
        raise ClusterError(
            f"There is no library in {settings.search_engine}; run `local-rag index FOLDER`, or `local-rag cluster "
            "copy` if it is already indexed."
        )
    raise LibraryError(f"There is no index in {folder}; make one with `local-rag index FOLDER`.")


def settings_of(manifest: Mapping[str, Any], settings: Settings, explicit: Collection[str]) -> Settings:
    """Return the settings with the values that an index was made with, except for the `explicit` ones."""
    made = {name: value for name, value in manifest.get("settings", {}).items() if name in REMEMBERED}
    return settings.model_copy(update={name: value for name, value in made.items() if name not in explicit})
