"""What of a cluster the settings ask for: indexes, workers and network. Without them nothing else of it is loaded."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from local_rag.offline import Cluster, Network
from local_rag.settings import Settings

if TYPE_CHECKING:  # every command with a settings file comes here, and these take long to import
    from local_rag.index.protocol import Indexes
    from local_rag.indexing.workers import Workers


def _qdrant(setting: str, **how: Any) -> "Indexes":
    from local_rag.cluster.engines.qdrant_indexes import QdrantIndexes

    return QdrantIndexes(setting, **how)


# By the kind of engine with which the setting begins: `qdrant:https://HOST:PORT/NAME`.
ENGINES: Mapping[str, Callable[..., "Indexes"]] = {"qdrant": _qdrant}


def indexes_of(settings: Settings, local: "Indexes") -> "Indexes":
    """Return the indexes in the search engine if the settings name one, else the local ones."""
    return _indexes_in(settings) if settings.search_engine.address else local


def workers_of(settings: Settings, local: "Callable[..., Workers]") -> "Callable[..., Workers]":
    """Return what makes the workers: those of the cluster if the settings name one, else the local ones."""
    if not settings.cluster.address:
        return local
    from local_rag.cluster.workers.ray_workers import RayWorkers

    return partial(RayWorkers, settings.cluster.address)


def network_of(settings: Settings) -> Network | Cluster:
    """Return what a command may reach under these settings: nothing, or the hosts in them."""
    if not settings.cluster.address and not settings.search_engine.address:
        return Network.NONE
    from local_rag.cluster.hosts import engine_of, head_of, private_addresses

    named = [head_of(settings.cluster.address)[0]] if settings.cluster.address else []
    named += [engine_of(settings.search_engine.address).host] if settings.search_engine.address else []
    return Cluster(frozenset(named).union(*map(private_addresses, named)))


def check_engine(settings: Settings) -> tuple[str, list[str]]:
    """Return a sentence about the library in the search engine, and what is wrong with it."""
    live, address = _indexes_in(settings).live(), settings.search_engine.address
    if live is None:
        return f"{address} answers and holds no library of that name yet", []
    return f"{address} holds {live.stamp}, {live.manifest['chunks']:,} chunks", live.damage()


def _indexes_in(settings: Settings) -> "Indexes":
    from local_rag.cluster.hosts import engine_of, not_an_engine

    address = settings.search_engine.address
    if (kind := engine_of(address).kind) not in ENGINES:
        raise not_an_engine(address)
    return ENGINES[kind](address, access=settings.search_engine)
