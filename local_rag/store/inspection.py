"""Inspect a store and delete rows from it, for `status`, `clean` and `repair`: counts, orphans and damaged rows."""

import json
import sqlite3
from dataclasses import dataclass

from local_rag.errors import LibraryError
from local_rag.index.protocol import Index, Indexes
from local_rag.machine import free_bytes
from local_rag.store.connect import STORE_FILE
from local_rag.store.database import DOCUMENT_COLUMNS, Store, StoredDocument, stored_document
from local_rag.store.embedding_plans import all_embedded, document_versions, mark_none_embedded

_WORTH_FREEING = 0.1  # of the pages of a file
_COPIES_OF_VACUUM = 2  # of what is kept, in a temporary file and in the log
_COUNTS = {
    "documents": "SELECT count(*) FROM documents WHERE live",
    "superseded_documents": "SELECT count(*) FROM documents WHERE NOT live",
    "chunks": "SELECT count(*) FROM chunks JOIN documents ON documents.id = document_id "
    "WHERE live AND chunks.kind = 'chunk'",
    "chunks_with_vectors": "SELECT count(*) FROM chunks JOIN documents ON documents.id = document_id "
    "JOIN vectors ON vectors.key = vector_key WHERE live AND chunks.kind = 'chunk'",
    "cached_contexts": "SELECT count(*) FROM contexts",
    "cached_vectors": "SELECT count(*) FROM vectors",
}


def count_rows(store: Store) -> dict[str, int]:
    """Count live and superseded documents, chunks of live ones, and the rows of both caches."""
    return {name: int(store.connection.execute(query).fetchone()[0]) for name, query in _COUNTS.items()}


def count_contexts(store: Store) -> dict[str, int]:
    """Count the contexts of the chunks of live documents by kind."""
    counts = dict[str, int]()
    for key in ("context_key", "sentence_key"):
        rows = store.connection.execute(
            "SELECT contexts.kind, count(*) FROM chunks JOIN documents ON documents.id = document_id "  # noqa: S608
            f"JOIN contexts ON contexts.key = {key} WHERE live AND chunks.kind = 'chunk' GROUP BY contexts.kind",
        )
        counts |= {str(kind): int(count) for kind, count in rows}
    return counts


@dataclass(frozen=True, slots=True)
class DocumentState:
    """The progress of a live document: its chunks, and how many of them have a vector."""

    document: StoredDocument
    chunks: int
    vectors: int
    notes: tuple[str, ...]


def document_states(store: Store, *, start: int, count: int) -> list[DocumentState]:
    """Return the state of `count` documents, by path from the one at position `start` on."""
    rows = store.connection.execute(
        f"SELECT {DOCUMENT_COLUMNS}, count(chunks.id), count(vectors.key), notes FROM "  # noqa: S608
        "(SELECT * FROM documents WHERE live ORDER BY path LIMIT ? OFFSET ?) AS documents "
        # Not the chunks that are shown of a part (seen.py): SQLite would look for all of them.
        "LEFT JOIN main.chunks ON document_id = documents.id AND chunks.kind = 'chunk' "
        "LEFT JOIN vectors ON vectors.key = vector_key GROUP BY documents.id ORDER BY path",
        (count, start),
    )
    return [DocumentState(stored_document(row), row[9], row[10], tuple(json.loads(row[11]))) for row in rows]


def count_missing_contexts(store: Store, plan: str) -> int:
    """Count the chunks of live documents whose context under this plan is not written yet."""
    # CROSS JOIN, here and below, makes SQLite go through the documents first, in an index with their plans. Starting at
    # the chunks, it would read a document for each of them.
    row = store.connection.execute(
        "SELECT count(*) FROM documents CROSS JOIN chunks ON documents.id = document_id WHERE live AND "
        "(context_plan <> ? OR NOT EXISTS (SELECT 1 FROM contexts WHERE contexts.key = context_key))",
        (plan,),
    ).fetchone()
    return int(row[0])


def is_unfinished(store: Store, live: Index | None) -> bool:
    """Say whether `index` has yet to run to completion: until then it is unknown which contexts and vectors are needed.

    That is so if the live index holds other chunks than the store, or if a chunk lacks its vector or the context that
    the index is made with. A repair that could not save the documents leaves such a library too.
    """
    if live is None or not all_embedded(store):
        return True
    ids, versions = live.documents()
    if dict(zip(ids.tolist(), versions.tolist(), strict=True)) != document_versions(store):
        return True
    if live.manifest["fingerprint"]["context"] != "auto":
        return False
    row = store.connection.execute(
        "SELECT 1 FROM documents CROSS JOIN chunks ON documents.id = document_id LEFT JOIN contexts "
        "ON contexts.key = context_key WHERE live AND (contexts.key IS NULL OR context_plan = '') LIMIT 1"
    ).fetchone()
    return row is not None  # sentences may wait


def orphaned_contexts(store: Store) -> dict[str, int]:
    """Return the key and size in bytes of each context that no chunk wants."""
    rows = store.connection.execute(
        "SELECT key, length(text) FROM contexts WHERE key NOT IN "
        "(SELECT context_key FROM chunks WHERE context_key IS NOT NULL "
        "UNION SELECT sentence_key FROM chunks WHERE sentence_key IS NOT NULL)"
    )
    return dict(rows)


def orphaned_vectors(store: Store) -> dict[str, int]:
    """Return the key and size in bytes of each vector that no chunk wants."""
    rows = store.connection.execute(
        "SELECT key, length(vector) FROM vectors WHERE key NOT IN "
        "(SELECT vector_key FROM chunks WHERE vector_key IS NOT NULL)"
    )
    return dict(rows)


def drop_unused_distinctions(store: Store) -> None:
    """Delete what set documents apart that are gone; a salvaged store has some."""
    store.connection.execute("DELETE FROM distinctions WHERE content_key NOT IN (SELECT content_key FROM documents)")


def find_damage(store: Store) -> dict[str, list[str]]:
    """Return the keys of damaged contexts and vectors, and the ids of damaged documents.

    A document is damaged if its chunks differ from its text. A vector is damaged if its checksum differs, or if its
    size differs from that of most vectors in use.
    """
    # As bytes, because damaged text may no longer be UTF-8.
    contexts = store.connection.execute(
        "SELECT key FROM contexts WHERE checksum <> crc32(CAST(kind AS BLOB), CAST(text AS BLOB))"
    )
    vectors = store.connection.execute("SELECT key FROM vectors WHERE checksum <> crc32(vector)")
    damaged = {"contexts": [row[0] for row in contexts], "vectors": [row[0] for row in vectors]}
    of_live = "FROM vectors JOIN chunks ON vector_key = key JOIN documents ON documents.id = document_id WHERE live"
    usual = store.connection.execute(
        f"SELECT length(vector) {of_live} GROUP BY length(vector) ORDER BY count(DISTINCT key) DESC LIMIT 1"
    ).fetchone()
    odd = store.connection.execute(
        f"SELECT DISTINCT key {of_live} AND length(vector) <> ?",
        usual or (0,),
    )
    damaged["vectors"] += [key for (key,) in odd if key not in damaged["vectors"]]
    identifiers = [row[0] for row in store.connection.execute("SELECT id FROM documents ORDER BY id")]
    damaged["documents"] = [str(key) for key in identifiers if not _is_whole(store, key)]
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
        for statement, name in (
            ("DELETE FROM contexts WHERE key = ?", "contexts"),
            ("DELETE FROM vectors WHERE key = ?", "vectors"),
            ("DELETE FROM documents WHERE id = ?", "documents"),
        ):
            store.connection.executemany(statement, [(key,) for key in rows.get(name, ())])
        if wanted and any(rows.values()):
            mark_none_embedded(store)


def check_pages(store: Store) -> list[str]:
    """Return what SQLite finds wrong with the file, nothing if it is whole."""
    try:
        found = [str(row[0]) for row in store.connection.execute("PRAGMA integrity_check(10)")]
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [] if found == ["ok"] else found


def shrink(store: Store) -> None:
    """Give the space of deleted rows back to the disk if that is worth it: SQLite writes the whole file again."""
    size, pages, free = (
        int(store.connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_size", "page_count", "freelist_count")
    )
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
