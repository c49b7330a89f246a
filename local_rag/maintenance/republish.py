"""Publish the live index without some documents, or with their present paths. No model is needed for that."""

from collections.abc import Collection
from functools import partial

import numpy as np

from local_rag.index.protocol import Contents, Index, Indexes
from local_rag.indexing.embedding import index_rows
from local_rag.indexing.indexer import content_of
from local_rag.store.database import Store
from local_rag.store.published import note_publish
from local_rag.store.vector_rows import count_rows_of


def publish_without(store: Store, indexes: Indexes, paths: Collection[str], *, rebuild: bool = False) -> None:
    """Publish the live index without the documents at these paths, if there is an index that holds any of them.

    What a stopped `index` has left to do stays to be done, under the settings of that run.
    """
    if (live := indexes.live()) is None:
        return
    gone = store.ids_at(paths).intersection(live.documents()[0].tolist())
    if gone or rebuild:
        _publish(store, indexes, live, gone, rebuild=rebuild)


def publish_paths(store: Store, indexes: Indexes) -> None:
    """Publish the live index again if it holds the paths of its documents itself, which have changed."""
    live = indexes.live()
    if live is not None and live.passages() is not None:
        _publish(store, indexes, live, set())


def _publish(store: Store, indexes: Indexes, live: Index, gone: Collection[int], *, rebuild: bool = False) -> None:
    ids, versions = live.documents()
    kept = ~np.isin(ids, list(gone))
    place_of = store.order_by_path()
    order = np.argsort([place_of[one] for one in ids[kept].tolist()])
    ids, versions = ids[kept][order], versions[kept][order]
    said = live.manifest
    lost = count_rows_of(store, gone)
    manifest = {
        **said,
        "content": content_of(said["fingerprint"], ids, versions),
        **{name: said[name] - count for name, count in lost.items()},
    }
    note_publish(store, indexes, manifest)
    rows = partial(index_rows, store, said["fingerprint"]["context"])
    indexes.over(store).publish(Contents(ids, versions, rows), manifest, rebuild=rebuild)
