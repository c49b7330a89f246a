"""Counts for `status`: how many documents, chunks, contexts and vectors a store holds, and what is still to be made."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from local_rag.index.protocol import Index
from local_rag.store.database import DOCUMENT_COLUMNS, Store, StoredDocument, stored_document
from local_rag.store.vector_rows import all_embedded, document_versions

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


def count_rows(store: Store, names: Iterable[str] = tuple(_COUNTS)) -> dict[str, int]:
    """Count live and superseded documents, chunks of live ones, and the rows of both caches, or what is named."""
    return {name: int(store.value(_COUNTS[name])) for name in names}


def count_contexts(store: Store) -> dict[str, int]:
    """Count the contexts of the chunks of live documents by kind."""
    query = (
        "SELECT contexts.kind, count(*) FROM chunks JOIN documents ON documents.id = document_id "
        "JOIN contexts ON contexts.key = {} WHERE live AND chunks.kind = 'chunk' GROUP BY contexts.kind"
    )
    rows = [row for key in ("context_key", "sentence_key") for row in store.connection.execute(query.format(key))]
    return {str(kind): int(count) for kind, count in rows}


@dataclass(frozen=True, slots=True)
class DocumentState:
    """The progress of a live document: its chunks, and how many of them have a vector."""

    document: StoredDocument
    chunks: int
    vectors: int
    notes: tuple[str, ...]


def document_states(store: Store, documents: Sequence[int]) -> list[DocumentState]:
    """Return the state of each of these documents that is live, in their order."""
    rows = store.connection.execute(
        f"SELECT {DOCUMENT_COLUMNS}, count(chunks.id), count(vectors.key), notes FROM "  # noqa: S608
        "(SELECT * FROM documents WHERE live AND id IN (SELECT value FROM json_each(?))) AS documents "
        # Not the chunks that are shown of a part (seen.py): SQLite would look for all of them.
        "LEFT JOIN main.chunks ON document_id = documents.id AND chunks.kind = 'chunk' "
        "LEFT JOIN vectors ON vectors.key = vector_key GROUP BY documents.id",
        (json.dumps(list(documents)),),
    )
    states = {row[0]: DocumentState(stored_document(row), row[9], row[10], tuple(json.loads(row[11]))) for row in rows}
    return [states[one] for one in documents if one in states]


def count_missing_contexts(store: Store, plan: str) -> int:
    """Count the chunks of live documents whose context under this plan is not written yet."""
    # CROSS JOIN, here and below, makes SQLite go through the documents first, in an index with their plans. Starting at
    # the chunks, it would read a document for each of them.
    query = (
        "SELECT count(*) FROM documents CROSS JOIN chunks ON documents.id = document_id WHERE live AND "
        "(context_plan <> ? OR NOT EXISTS (SELECT 1 FROM contexts WHERE contexts.key = context_key))"
    )
    return int(store.value(query, plan))


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
    lacking = (
        "SELECT 1 FROM documents CROSS JOIN chunks ON documents.id = document_id LEFT JOIN contexts "
        "ON contexts.key = context_key WHERE live AND (contexts.key IS NULL OR context_plan = '') LIMIT 1"
    )
    return bool(store.column(lacking))  # sentences may wait
