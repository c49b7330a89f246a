"""Housekeeping of a store, for `clean`, `repair` and `erase`: find damaged and unwanted rows, delete and compact."""

import shutil
import sqlite3
from collections.abc import Collection
from pathlib import Path

from local_rag.errors import LibraryError
from local_rag.index.protocol import Indexes
from local_rag.machine import free_bytes
from local_rag.store.database import Store
from local_rag.store.schema import STORE_FILE
from local_rag.store.vector_rows import mark_none_embedded

_WORTH_FREEING = 0.1  # of the pages of a file
_COPIES_OF_VACUUM = 2  # of what is kept, in a temporary file and in the log


def orphaned_contexts(store: Store) -> dict[str, int]:
    """Return the key and size in bytes of each context that no chunk wants."""
    query = (
        "SELECT key, length(text) FROM contexts WHERE key NOT IN "
        "(SELECT context_key FROM chunks WHERE context_key IS NOT NULL "
        "UNION SELECT sentence_key FROM chunks WHERE sentence_key IS NOT NULL)"
    )
    return dict(store.connection.execute(query))


def orphaned_vectors(store: Store) -> dict[str, int]:
    """Return the key and size in bytes of each vector that no chunk wants."""
    wanted = "SELECT vector_key FROM chunks WHERE vector_key IS NOT NULL"
    return dict(store.connection.execute(f"SELECT key, length(vector) FROM vectors WHERE key NOT IN ({wanted})"))  # noqa: S608


def find_damage(store: Store) -> dict[str, list[str]]:
    """Return the keys of damaged contexts and vectors, and the ids of damaged documents.

    A document is damaged if its chunks differ from its text. A vector is damaged if its checksum differs, or if its
    size differs from that of most vectors in use.
    """
    # As bytes, because damaged text may no longer be UTF-8.
    contexts = "SELECT key FROM contexts WHERE checksum <> crc32(CAST(kind AS BLOB), CAST(text AS BLOB))"
    vectors = "SELECT key FROM vectors WHERE checksum <> crc32(vector)"
    damaged = {"contexts": store.column(contexts), "vectors": store.column(vectors)}
    of_live = "FROM vectors JOIN chunks ON vector_key = key JOIN documents ON documents.id = document_id WHERE live"
    usual = f"SELECT length(vector) {of_live} GROUP BY length(vector) ORDER BY count(DISTINCT key) DESC LIMIT 1"
    odd = store.column(f"SELECT DISTINCT key {of_live} AND length(vector) <> coalesce(({usual}), 0)")
    damaged["vectors"] += [key for key in odd if key not in damaged["vectors"]]
    documents = store.column("SELECT id FROM documents ORDER BY id")
    damaged["documents"] = [str(key) for key in documents if not _is_whole(store, key)]
    return damaged


def _is_whole(store: Store, document_id: int) -> bool:
    try:
        text = store.document_text(document_id)
        chunks = [stored.chunk for stored in store.chunks(document_id)]
    except (sqlite3.OperationalError, ValueError):  # no longer UTF-8 or JSON
        return False
    return all(chunk.text == text[chunk.start : chunk.end] for chunk in chunks)


def purge_superseded(store: Store, indexes: Indexes) -> None:
    """Delete superseded documents, except those that the live index still holds."""
    if store.superseded():
        live = indexes.live()
        store.purge(live.documents()[0].tolist() if live else ())


def drop(store: Store, rows: dict[str, list[str]], *, wanted: bool = True) -> None:
    """Delete contexts and vectors by key, documents with their chunks by id; `wanted` ones are then made again."""
    with store.transaction():
        for table, column in (("contexts", "key"), ("vectors", "key"), ("documents", "id")):
            delete = f"DELETE FROM {table} WHERE {column} = ?"  # noqa: S608  names of ours
            store.connection.executemany(delete, [(key,) for key in rows.get(table, ())])
        if wanted and any(rows.values()):
            mark_none_embedded(store)


def check_pages(store: Store) -> list[str]:
    """Return what SQLite finds wrong with the file, nothing if it is whole."""
    try:
        found = list(map(str, store.column("PRAGMA integrity_check(10)")))
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [] if found == ["ok"] else found


def shrink(store: Store) -> None:
    """Give the space of deleted rows back to the disk if that is worth it: SQLite writes the whole file again."""
    size, pages, free = (int(store.value(f"PRAGMA {name}")) for name in ("page_size", "page_count", "freelist_count"))
    if free > pages * _WORTH_FREEING and free_bytes(store.folder) > _COPIES_OF_VACUUM * (pages - free) * size:
        store.connection.execute("VACUUM")
    _checkpoint(store)


def compact(store: Store) -> None:
    """Give the space of deleted rows back to the disk, leaving nothing of them in the file."""
    store.connection.execute("VACUUM")
    _checkpoint(store)


def _checkpoint(store: Store) -> None:
    """Move the log into the file and empty it, because it holds deleted rows too."""
    busy, *_ = store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:  # SQLite reports this without an error
        raise LibraryError(
            f"Another program is reading {store.folder}, so deleted text is still in {STORE_FILE}-wal; wait for it or "
            "end it, and run the same command again."
        )


def ocr_folder(library: Path) -> Path:
    """Return the folder of a library; it may not exist."""
    return library / "ocr"


def prune_ocr_pages(library: Path, kept: Collection[str]) -> None:
    """Delete the pages of files whose SHA-256 is not in `kept`."""
    folder = ocr_folder(library)
    for pages in folder.iterdir() if folder.is_dir() else ():
        if pages.name not in kept:
            shutil.rmtree(pages)
