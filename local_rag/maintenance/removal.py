"""Publish the live index without some documents. No model is needed, and nothing else of the index changes."""

from collections.abc import Collection
from functools import partial

import numpy as np

from local_rag.index.protocol import Contents, Indexes
from local_rag.indexing.embedding import index_rows
from local_rag.indexing.indexer import content_of
from local_rag.store.database import Store
from local_rag.store.embedding_plans import count_rows_of


def publish_without(store: Store, indexes: Indexes, paths: Collection[str], *, rebuild: bool = False) -> None:
    """Publish the live index without the documents at these paths, if there is an index that holds any of them.

    What a stopped `index` has left to do stays to be done, under the settings of that run.
    """
    if (live := indexes.live()) is None:
        return
    ids, versions = live.documents()
    gone = store.ids_at(paths)
    kept = ~np.isin(ids, list(gone))
    if kept.all() and not rebuild:
        return
    place_of = store.order_by_path()
    order = np.argsort([place_of[one] for one in ids[kept].tolist()])
    ids, versions = ids[kept][order], versions[kept][order]
    said = live.manifest
    lost = count_rows_of(store, gone & set(live.documents()[0].tolist()))
    manifest = {
        **said,
        "content": content_of(said["fingerprint"], ids, versions),
        **{name: said[name] - count for name, count in lost.items()},
    }
    rows = partial(index_rows, store, said["fingerprint"]["context"])
    indexes.over(store).publish(Contents(ids, versions, rows), manifest, rebuild=rebuild)
