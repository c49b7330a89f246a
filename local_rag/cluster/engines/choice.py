"""Choose the indexes that the setting `search_engine` names."""

from pathlib import Path

from local_rag.cluster.engines.qdrant_index import QdrantIndex
from local_rag.cluster.engines.qdrant_indexes import QdrantIndexes
from local_rag.errors import ClusterError, LibraryError
from local_rag.index.protocol import Index, Indexes
from local_rag.settings import Settings
from local_rag.store.database import Store


def indexes_of(settings: Settings, usual: Indexes) -> Indexes:
    """Return the indexes: those in the search engine, where the settings name one."""
    return QdrantIndexes(settings.search_engine) if settings.search_engine else usual


def publishing(indexes: Indexes, store: Store) -> Indexes:
    """Return the indexes as they publish what a store holds."""
    return indexes.over(store) if isinstance(indexes, QdrantIndexes) else indexes


def prune(indexes: Indexes, *, erase: bool) -> None:
    """Let nothing of what was erased stay in a generation that readers of a search engine may still ask."""
    if erase and isinstance(indexes, QdrantIndexes):
        indexes.prune()


def own_passages(index: Index) -> QdrantIndex | None:
    """Return an index that holds its passages itself, None where they lie in a store."""
    return index if isinstance(index, QdrantIndex) else None


def live_index(indexes: Indexes, settings: Settings, folder: Path) -> Index:
    """Return what is searched; raise LibraryError or ClusterError where there is nothing yet."""
    if (index := indexes.live()) is not None:
        return index
    if settings.search_engine:
        raise ClusterError(
            f"There is no library in {settings.search_engine}; run `local-rag index FOLDER`, or `local-rag cluster "
            "copy` where it is indexed already."
        )
    raise LibraryError(f"There is no index in {folder}; make one with `local-rag index FOLDER`.")


def check_engine(settings: Settings) -> tuple[str, list[str]]:
    """Return a sentence about the library in the search engine, and what is wrong with it."""
    live = QdrantIndexes(settings.search_engine).live()
    if live is None:
        return f"{settings.search_engine} answers and holds no library of that name yet", []
    return f"{settings.search_engine} holds {live.stamp}, {live.manifest['chunks']:,} chunks", live.damage()
