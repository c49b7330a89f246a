"""Which indexes were made from a store: their ids of chunks mean something else in any other version of the file.

A store remembers the content of the index that is being published, and of the live one until it is replaced. An index
that it does not know belongs to another version of the file, of before or after a backup that was put back.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from local_rag.errors import DamagedLibraryError, LibraryError
from local_rag.index.protocol import Index, Indexes, PassageStore
from local_rag.store.database import Store

FOREIGN = "library.sqlite3 is not the version that the index was made from"
_NAME = "published"  # among what a store remembers


def note_publish(store: Store, indexes: Indexes, manifest: Mapping[str, Any]) -> None:
    """Record that an index with this manifest is about to replace the live one."""
    live, known = None, _known(store)
    with suppress(DamagedLibraryError):
        live = indexes.live()
    kept = [live.manifest["content"]] if live and made_from(store, live) else []
    if (now := list(dict.fromkeys([manifest["content"], *kept]))) != known:
        store.remember({_NAME: now})


def made_from(store: Store, index: Index) -> bool:
    """Say whether an index was made from this version of a store, as far as is known."""
    known = _known(store)
    return known is None or index.manifest.get("content") in known


def _known(store: Store) -> list[str] | None:
    row = store.connection.execute("SELECT value FROM remembered WHERE name = ?", (_NAME,)).fetchone()
    return list(map(str, json.loads(row[0]))) if row else None


def require_own(passages: PassageStore, index: Index) -> None:
    """Raise LibraryError if a store is not the version of the file that an index was made from."""
    if isinstance(passages, Store) and not made_from(passages, index):
        raise LibraryError(
            f"The {FOREIGN} in {passages.folder} (was a backup put back?); run `local-rag index` to make it again."
        )
