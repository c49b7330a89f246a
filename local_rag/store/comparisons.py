"""What was said of documents when they were first compared with others, and what comparing them needs."""

from collections.abc import Sequence

import numpy as np

from local_rag.store.database import Store, StoredDocument

_AT_ONCE = 500  # ids in one query


def documents_to_tell(store: Store, plan: str) -> list[StoredDocument]:
    """Return the live documents that were never compared, but for those whose contexts were planned without that."""
    untold = {
        row[0]
        for row in store.connection.execute(
            "SELECT id FROM documents WHERE live AND told IS NULL AND context_plan <> ?", (plan,)
        )
    }
    return [document for document in store.documents() if document.id in untold] if untold else []


def put_told(store: Store, document_id: int, told: str) -> None:
    """Store what was said of a document."""
    store.connection.execute("UPDATE documents SET told = ? WHERE id = ?", (told, document_id))


def told_of(store: Store, document_id: int) -> str:
    """Return what was said of a document, empty where it was not compared."""
    row = store.connection.execute("SELECT told FROM documents WHERE id = ?", (document_id,)).fetchone()
    return str(row[0] or "") if row else ""


def told_before(store: Store, document: StoredDocument) -> tuple[str, bool]:
    """Return what was said of the same content, or else of what stood under this path before; and whether the former.

    Both may be superseded documents, which the store keeps until the next run. Empty where nothing was said.
    """
    row = store.connection.execute(
        "SELECT told, 1 AS same, id FROM documents "
        "WHERE sha256 = ?1 AND split_key = ?2 AND title = ?3 AND told IS NOT NULL AND id <> ?4 "
        "UNION ALL SELECT told, 0, id FROM documents WHERE path = ?5 AND NOT live AND told IS NOT NULL AND id <> ?4 "
        "ORDER BY same DESC, id DESC LIMIT 1",
        (document.sha256, document.split_key, document.title, document.id, document.path),
    ).fetchone()
    return (str(row[0]), bool(row[1])) if row else ("", False)


def forget_told(store: Store) -> None:
    """Forget what was said of all documents, so that they are compared anew and their contexts planned anew."""
    with store.transaction():
        store.connection.execute("UPDATE documents SET told = NULL")
        store.connection.execute("UPDATE documents SET context_plan = '' WHERE live")


def document_kind(store: Store, document_id: int) -> str:
    """Return what kind of text a document is."""
    return str(store.connection.execute("SELECT kind FROM documents WHERE id = ?", (document_id,)).fetchone()[0])


def vectors_of(store: Store, document_id: int) -> list[np.ndarray | None]:
    """Return the vectors of a document's chunks in reading order, None for those that are not stored."""
    rows = store.connection.execute(
        "SELECT vectors.key FROM chunks LEFT JOIN vectors ON vectors.key = vector_key WHERE document_id = ? "
        "AND kind = 'chunk' ORDER BY position",
        (document_id,),
    ).fetchall()
    return [store.vector(row[0]) if row[0] else None for row in rows]


def documents_of(store: Store, chunks: Sequence[int]) -> dict[int, tuple[int, str]]:
    """Return id and SHA-256 of the document of each chunk."""
    found: dict[int, tuple[int, str]] = {}
    for start in range(0, len(chunks), _AT_ONCE):
        part = chunks[start : start + _AT_ONCE]
        rows = store.connection.execute(
            "SELECT chunks.id, document_id, sha256 FROM chunks JOIN documents ON documents.id = document_id "  # noqa: S608
            f"WHERE chunks.kind = 'chunk' AND chunks.id IN ({','.join('?' * len(part))})",
            part,
        )
        found |= {row[0]: (row[1], row[2]) for row in rows}
    return found
