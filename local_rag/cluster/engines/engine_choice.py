"""Choose the indexes that the setting `search_engine.address` names."""

from collections.abc import Callable, Mapping
from typing import Any

from local_rag.cluster.hosts import engine_of, not_an_engine
from local_rag.index.protocol import Indexes
from local_rag.settings import Settings


def _qdrant(setting: str, **how: Any) -> Indexes:
    # Imported here because few libraries have a search engine, and all others start sooner without its code.
    from local_rag.cluster.engines.qdrant_indexes import QdrantIndexes

    return QdrantIndexes(setting, **how)


# By the kind of engine with which the setting begins: `qdrant:https://HOST:PORT/NAME`.
ENGINES: Mapping[str, Callable[..., Indexes]] = {"qdrant": _qdrant}


def indexes_of(settings: Settings, local: Indexes) -> Indexes:
    """Return the indexes in the search engine if the settings name one, else the local ones."""
    return _indexes_in(settings) if settings.search_engine.address else local


def _indexes_in(settings: Settings) -> Indexes:
    address = settings.search_engine.address
    if (kind := engine_of(address).kind) not in ENGINES:
        raise not_an_engine(address)
    return ENGINES[kind](address, access=settings.search_engine)


def check_engine(settings: Settings) -> tuple[str, list[str]]:
    """Return a sentence about the library in the search engine, and what is wrong with it."""
    live = _indexes_in(settings).live()
    if live is None:
        return f"{settings.search_engine.address} answers and holds no library of that name yet", []
    return f"{settings.search_engine.address} holds {live.stamp}, {live.manifest['chunks']:,} chunks", live.damage()
