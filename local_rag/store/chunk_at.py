"""Read what a count over all documents needs: names of documents, their texts, and the chunk at a place."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from local_rag.records import StoredChunk
from local_rag.store.database import CHUNK_QUERY, Store, stored_chunk

_AT_ONCE = 500  # ids in one query


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """What a document is called by."""

    id: int
    path: str
    title: str
    tags: tuple[str, ...]


def named_documents(store: Store, ids: Collection[int]) -> list[NamedDocument]:
    """Return the documents with these ids, by path."""
    rows = store.connection.execute(
        "SELECT id, path, title, coalesce(tags, '[]') FROM documents LEFT JOIN provenance ON document_id = id "
        "ORDER BY path, id"
    )
    return [NamedDocument(one, path, title, tuple(json.loads(tags))) for one, path, title, tags in rows if one in ids]


def documents_of(store: Store, chunks: Sequence[int]) -> set[int]:
    """Return the documents of some chunks."""
    found: set[int] = set()
    for start in range(0, len(chunks), _AT_ONCE):
        part = chunks[start : start + _AT_ONCE]
        query = f"SELECT DISTINCT document_id FROM chunks WHERE id IN ({','.join('?' * len(part))})"  # noqa: S608
        found.update(row[0] for row in store.connection.execute(query, part))
    return found


def documents_with_cut_words(store: Store) -> set[int]:
    """Return the documents in which a chunk ends where the next one begins, perhaps within a word."""
    query = (
        "SELECT DISTINCT one.document_id FROM chunks AS one JOIN chunks AS next ON next.document_id = one.document_id "
        "AND next.position = one.position + 1 AND next.start = one.end WHERE one.kind = 'chunk' AND next.kind = 'chunk'"
    )
    return {row[0] for row in store.connection.execute(query)}


def chunk_at(store: Store, document: int, offset: int) -> StoredChunk | None:
    """Return the chunk in which an offset of a document's text lies, else the last one before it."""
    where = "document_id = ?1 AND chunks.kind = 'chunk'"
    for part, order in ((" AND start <= ?2", "start DESC"), ("", "start")):
        query = f"{CHUNK_QUERY} WHERE {where}{part} ORDER BY {order} LIMIT 1"
        parameters = (document, offset) if part else (document,)
        if row := store.connection.execute(query, parameters).fetchone():
            return stored_chunk(row)
    return None
