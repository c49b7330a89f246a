"""The mean vectors of documents: one for each group of consecutive chunks, so a library can be compared quickly.

They are made when a document is compared, from the vectors that it has then, and are kept for the embedder that made
these vectors.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from local_rag.store.database import Store, vector_of

GROUP = 16  # chunks
_OF_LIVE = "FROM mean_vectors JOIN documents ON documents.id = document_id WHERE live AND embedder = ?"


@dataclass(frozen=True, slots=True, eq=False)
class MeanVectors:
    """Mean vectors, float32 of shape (groups, dimension); of each the document, its SHA-256, and its first chunk."""

    vectors: np.ndarray
    documents: list[int]
    sha256: list[str]
    positions: list[int]


@dataclass(frozen=True, slots=True, eq=False)
class GroupVectors:
    """Chunks of a document that have vectors: ids, positions, and vectors, float32 of shape (count, dimension).

    `shifted` says of each whether a context is part of its vector.
    """

    ids: list[int]
    positions: np.ndarray
    vectors: np.ndarray
    shifted: list[bool]


def documents_without_means(store: Store, embedder: str) -> list[int]:
    """Return the live documents whose mean vectors have yet to be made for an embedder."""
    rows = store.connection.execute(
        "SELECT id FROM documents WHERE live AND NOT EXISTS "
        "(SELECT 1 FROM mean_vectors WHERE document_id = documents.id AND embedder = ?) ORDER BY id",
        (embedder,),
    )
    return [row[0] for row in rows]


def put_means(store: Store, embedder: str, document: int, means: Iterable[tuple[int, np.ndarray]]) -> None:
    """Replace the mean vectors of a document, each with the position of its first chunk."""
    store.connection.execute("DELETE FROM mean_vectors WHERE document_id = ?", (document,))
    store.connection.executemany(
        "INSERT INTO mean_vectors VALUES (?, ?, ?, ?)",
        ((document, position, embedder, mean.astype(np.float32).tobytes()) for position, mean in means),
    )


def means_of(store: Store, embedder: str, *, document: int | None = None, most: int = 0) -> MeanVectors:
    """Return the mean vectors of a document, or of all live ones; of more than `most` an even sample."""
    one, parameters = ("", (embedder,)) if document is None else (" AND document_id = ?", (embedder, document))
    (count,) = store.connection.execute(f"SELECT count(*) {_OF_LIVE}{one}", parameters).fetchone()
    rows = store.connection.execute(
        f"SELECT vector, document_id, sha256, position {_OF_LIVE}{one} ORDER BY document_id, position", parameters
    )
    taken = list(islice(rows, 0, None, -(-count // most) if most and count else 1))
    vectors = np.frombuffer(b"".join(row[0] for row in taken), dtype=np.float32)
    return MeanVectors(
        vectors.reshape(len(taken), -1 if taken else 0),
        [row[1] for row in taken],
        [row[2] for row in taken],
        [row[3] for row in taken],
    )


def group_vectors(store: Store, document: int, first: int = 0, end: int = 2**31) -> GroupVectors:
    """Return the vectors of a document's chunks from position `first` to before `end`, those that are stored."""
    rows = store.connection.execute(
        "SELECT id, position, vector, vectors.checksum, EXISTS (SELECT 1 FROM contexts "
        "WHERE contexts.key IN (context_key, sentence_key) AND contexts.text <> '') "
        "FROM chunks JOIN vectors ON vectors.key = vector_key "
        "WHERE document_id = ? AND chunks.kind = 'chunk' AND position >= ? AND position < ? ORDER BY position",
        (document, first, end),
    ).fetchall()
    return GroupVectors(
        [row[0] for row in rows],
        np.array([row[1] for row in rows], dtype=np.int64),
        np.array([vector_of(*row[2:4]) for row in rows], dtype=np.float32),
        [bool(row[4]) for row in rows],
    )
