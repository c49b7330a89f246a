"""What of each document is ready to be published: which vectors its chunks want, and the version of its rows.

A document is made under a plan, which names all that decides about its vectors apart from itself. So a run asks only
for those that are not made yet, and an index only for those whose version it does not hold.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from local_rag.store.database import Store

# By this index no text is passed over.
_OF_LIVE = "FROM documents INDEXED BY live_documents LEFT JOIN made ON document_id = documents.id WHERE live"


@dataclass(frozen=True, slots=True)
class Planned:
    """The vector that each row of a document wants, as (chunk id, vector key), and what is told of the document.

    `chunks` counts its chunks, without the row that stands for all of it, `generated` those with a generated context.
    """

    document_id: int
    keys: Sequence[tuple[int, str]]
    version: int
    chunks: int
    generated: int


def documents_to_make(store: Store, plan: str) -> list[int]:
    """Return the live documents that are not made under this plan, by path."""
    query = f"SELECT documents.id {_OF_LIVE} AND plan IS NOT ? ORDER BY path"
    return [row[0] for row in store.connection.execute(query, (plan,))]


def count_chunks(store: Store, documents: Iterable[int]) -> int:
    """Count the chunks of some documents."""
    query = "SELECT count(*) FROM chunks WHERE document_id = ?"
    return sum(store.connection.execute(query, (document,)).fetchone()[0] for document in documents)


def put_plans(store: Store, planned: Iterable[Planned]) -> None:
    """Record which vectors documents want; they are not made yet."""
    with store.transaction():
        for one in planned:
            store.connection.executemany(
                "UPDATE chunks SET vector_key = ?2 WHERE id = ?1 AND vector_key IS NOT ?2", one.keys
            )
            store.connection.execute(
                "INSERT OR REPLACE INTO made VALUES (?, '', ?, ?, ?)",
                (one.document_id, one.version, one.chunks, one.generated),
            )


def vector_keys_of(store: Store, document: int) -> list[str]:
    """Return which vector each chunk of a document wants, in reading order."""
    query = "SELECT vector_key FROM chunks WHERE document_id = ? ORDER BY position"
    return [row[0] for row in store.connection.execute(query, (document,))]


def mark_made(store: Store, documents: Iterable[int], plan: str) -> None:
    """Record that all vectors which documents want are stored."""
    with store.transaction():
        rows = [(plan, document) for document in documents]
        store.connection.executemany("UPDATE made SET plan = ? WHERE document_id = ?", rows)


def mark_nothing_made(store: Store) -> None:
    """Forget what is made, after vectors or contexts were dropped: what is still there is found again."""
    store.connection.execute("UPDATE made SET plan = ''")


def made_versions(store: Store, plan: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the live documents made under a plan that have chunks, by path, and their versions; both int64.

    What stands for a whole document follows, with its id negated: it is no neighbour of the document's chunks.
    """
    query = f"SELECT documents.id, version {_OF_LIVE} AND plan = ? AND chunks ORDER BY path"
    rows = np.array(store.connection.execute(query, (plan,)).fetchall(), dtype=np.int64).reshape(-1, 2)
    return np.concatenate([rows[:, 0], -rows[:, 0]]), np.concatenate([rows[:, 1], rows[:, 1]])


def count_made(store: Store, plan: str) -> tuple[int, int, int]:
    """Count the live documents made under a plan that have chunks, their chunks, and those with generated contexts."""
    query = f"SELECT count(*), coalesce(sum(chunks), 0), coalesce(sum(generated), 0) {_OF_LIVE} AND plan = ? AND chunks"
    documents, chunks, generated = store.connection.execute(query, (plan,)).fetchone()
    return documents, chunks, generated


def is_made(store: Store) -> bool:
    """Say whether all live documents are made, under one plan."""
    query = f"SELECT count(DISTINCT coalesce(plan, '')), coalesce(min(coalesce(plan, '')), 'none') {_OF_LIVE}"
    plans, first = store.connection.execute(query).fetchone()
    return bool(plans <= 1 and first)


def all_versions(store: Store) -> dict[int, int]:
    """Return the version of each live document that has chunks."""
    return dict(store.connection.execute(f"SELECT documents.id, version {_OF_LIVE} AND chunks"))


def documents_wanting(store: Store, key: str) -> list[str]:
    """Return the paths of live documents with a chunk that wants this context or vector."""
    query = (
        "SELECT DISTINCT path FROM documents JOIN chunks ON document_id = documents.id "
        "WHERE live AND ?1 IN (context_key, vector_key) ORDER BY path"
    )
    return [str(row[0]) for row in store.connection.execute(query, (key,))]
