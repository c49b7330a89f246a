"""What of each document is ready to be published: which vectors its chunks want, and the version of its rows.

A document is embedded under a plan, which names everything apart from the document that decides which vectors its
chunks want. A run therefore asks only for documents that are not embedded yet, and an index takes over only documents
whose version it does not hold.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from local_rag.store.database import Store

_OF_LIVE = "FROM documents LEFT JOIN embedding_plans ON document_id = documents.id WHERE live"


@dataclass(frozen=True, slots=True)
class EmbeddingPlan:
    """The vectors that the rows of a document want, as (chunk id, vector key), and the version of these rows.

    `chunks` counts its chunks without the row that stands for the whole document, `generated` those with a generated
    context.
    """

    document_id: int
    keys: Sequence[tuple[int, str]]
    version: int
    chunks: int
    generated: int


def documents_to_embed(store: Store, plan: str) -> list[int]:
    """Return the live documents that are not embedded under this plan, by path."""
    query = f"SELECT documents.id {_OF_LIVE} AND plan IS NOT ? ORDER BY path"
    return [row[0] for row in store.connection.execute(query, (plan,))]


def count_chunks(store: Store, documents: Iterable[int]) -> int:
    """Count the chunks of some documents."""
    query = "SELECT count(*) FROM chunks WHERE document_id = ?"
    return sum(store.connection.execute(query, (document,)).fetchone()[0] for document in documents)


def put_plans(store: Store, planned: Iterable[EmbeddingPlan]) -> None:
    """Record which vectors documents want; the documents are not embedded yet."""
    with store.transaction():
        for one in planned:
            store.connection.executemany(
                "UPDATE chunks SET vector_key = ?2 WHERE id = ?1 AND vector_key IS NOT ?2", one.keys
            )
            store.connection.execute(
                "INSERT OR REPLACE INTO embedding_plans VALUES (?, '', ?, ?, ?)",
                (one.document_id, one.version, one.chunks, one.generated),
            )


def vector_keys_of(store: Store, document: int) -> list[str]:
    """Return the vector key of each row of a document, in reading order."""
    query = "SELECT vector_key FROM chunks WHERE document_id = ? ORDER BY position"
    return [row[0] for row in store.connection.execute(query, (document,))]


def mark_embedded(store: Store, documents: Iterable[int], plan: str) -> None:
    """Record that all vectors that documents want are stored."""
    with store.transaction():
        rows = [(plan, document) for document in documents]
        store.connection.executemany("UPDATE embedding_plans SET plan = ? WHERE document_id = ?", rows)


def mark_none_embedded(store: Store) -> None:
    """Have every document checked again, because contexts or vectors were deleted; the stored ones are reused."""
    store.connection.execute("UPDATE embedding_plans SET plan = ''")


def embedded_versions(store: Store, plan: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids and versions of the live documents with chunks that are embedded under a plan; both int64."""
    query = f"SELECT documents.id, version {_OF_LIVE} AND plan = ? AND chunks ORDER BY path"
    rows = np.array(store.connection.execute(query, (plan,)).fetchall(), dtype=np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def count_embedded(store: Store, plan: str) -> tuple[int, int, int]:
    """Count the live documents with chunks embedded under a plan, their chunks, and chunks with generated contexts."""
    query = f"SELECT count(*), coalesce(sum(chunks), 0), coalesce(sum(generated), 0) {_OF_LIVE} AND plan = ? AND chunks"
    documents, chunks, generated = store.connection.execute(query, (plan,)).fetchone()
    return documents, chunks, generated


def count_rows_of(store: Store, documents: Collection[int]) -> dict[str, int]:
    """Count some documents, their chunks, and chunks with generated contexts, under the names of a manifest."""
    query = "SELECT chunks, generated FROM embedding_plans WHERE document_id = ?"
    rows = [store.connection.execute(query, (one,)).fetchone() for one in documents]
    return {
        "documents": len(rows),
        "chunks": sum(chunks for chunks, _ in rows),
        "generated_contexts": sum(generated for _, generated in rows),
    }


def all_embedded(store: Store) -> bool:
    """Say whether all live documents are embedded under one plan."""
    query = f"SELECT count(DISTINCT coalesce(plan, '')), coalesce(min(coalesce(plan, '')), 'none') {_OF_LIVE}"
    plans, first = store.connection.execute(query).fetchone()
    return bool(plans <= 1 and first)


def document_versions(store: Store) -> dict[int, int]:
    """Return the version of each live document with chunks."""
    return dict(store.connection.execute(f"SELECT documents.id, version {_OF_LIVE} AND chunks"))


def documents_wanting(store: Store, key: str) -> list[str]:
    """Return the paths of the live documents with a chunk that wants this context or vector."""
    query = (
        "SELECT DISTINCT path FROM documents JOIN chunks ON document_id = documents.id "
        "WHERE live AND ?1 IN (context_key, sentence_key, vector_key) ORDER BY path"
    )
    return [str(row[0]) for row in store.connection.execute(query, (key,))]
