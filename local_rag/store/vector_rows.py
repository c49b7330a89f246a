"""Vectors, and what of each document is ready to be published: the vectors that its chunks want, and their version.

A document is embedded under a plan, which names everything apart from the document that decides which vectors its
chunks want. A run therefore asks only for documents that are not embedded yet, and an index takes over only documents
whose version it does not hold.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from local_rag.errors import DamagedLibraryError
from local_rag.store.database import Store
from local_rag.store.schema import crc32

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
    return store.column(f"SELECT documents.id {_OF_LIVE} AND plan IS NOT ? ORDER BY path", plan)


def count_chunks(store: Store, documents: Iterable[int]) -> int:
    """Count the chunks of some documents."""
    return sum(store.value("SELECT count(*) FROM chunks WHERE document_id = ?", document) for document in documents)


def put_plans(store: Store, planned: Iterable[EmbeddingPlan]) -> None:
    """Record which vectors documents want; the documents are not embedded yet."""
    with store.transaction():
        for plan in planned:
            update = "UPDATE chunks SET vector_key = ?2 WHERE id = ?1 AND vector_key IS NOT ?2"
            store.connection.executemany(update, plan.keys)
            row = plan.document_id, plan.version, plan.chunks, plan.generated
            store.connection.execute("INSERT OR REPLACE INTO embedding_plans VALUES (?, '', ?, ?, ?)", row)


def vector_keys_of(store: Store, document: int) -> list[str]:
    """Return the vector key of each row of a document, in reading order."""
    return store.column("SELECT vector_key FROM chunks WHERE document_id = ? ORDER BY position", document)


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
    rows = [store.connection.execute(query, (document,)).fetchone() for document in documents]
    chunks, generated = (sum(row[column] for row in rows) for column in (0, 1))
    return {"documents": len(rows), "chunks": chunks, "generated_contexts": generated}


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
    return store.column(query, key)


GROUP = 16  # chunks
_MEANS_OF_LIVE = "FROM mean_vectors JOIN documents ON documents.id = document_id WHERE live AND embedder = ?"


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
    made = "SELECT 1 FROM mean_vectors WHERE document_id = documents.id AND embedder = ?"
    return store.column(f"SELECT id FROM documents WHERE live AND NOT EXISTS ({made}) ORDER BY id", embedder)  # noqa: S608


def put_means(store: Store, embedder: str, document: int, means: Iterable[tuple[int, np.ndarray]]) -> None:
    """Replace the mean vectors of a document, each with the position of its first chunk."""
    store.connection.execute("DELETE FROM mean_vectors WHERE document_id = ?", (document,))
    store.connection.executemany(
        "INSERT INTO mean_vectors VALUES (?, ?, ?, ?)",
        ((document, position, embedder, mean.astype(np.float32).tobytes()) for position, mean in means),
    )


def means_of(store: Store, embedder: str, *, document: int | None = None, most: int = 0) -> MeanVectors:
    """Return the mean vectors of a document, or of all live ones; of more than `most` an even sample."""
    wanted, parameters = ("", [embedder]) if document is None else (" AND document_id = ?", [embedder, document])
    count = store.value(f"SELECT count(*) {_MEANS_OF_LIVE}{wanted}", *parameters)
    query = f"SELECT vector, document_id, sha256, position {_MEANS_OF_LIVE}{wanted} ORDER BY document_id, position"
    rows = store.connection.execute(query, parameters)
    taken = list(islice(rows, 0, None, -(-count // most) if most and count else 1))
    vectors, documents, sha256, positions = zip(*taken, strict=True) if taken else ((), (), (), ())
    means = np.frombuffer(b"".join(vectors), dtype=np.float32).reshape(len(taken), -1 if taken else 0)
    return MeanVectors(means, list(documents), list(sha256), list(positions))


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


def known_vectors(store: Store, keys: Iterable[str]) -> set[str]:
    """Return the keys whose vector is stored."""
    return {key for key in keys if store.connection.execute("SELECT 1 FROM vectors WHERE key = ?", (key,)).fetchone()}


def put_vectors(store: Store, keys: Sequence[str], vectors: np.ndarray) -> None:
    """Store vectors, float32 of shape (len(keys), dimension)."""
    contents = [vector.astype(np.float32).tobytes() for vector in vectors]
    rows = [(key, content, crc32(content)) for key, content in zip(keys, contents, strict=True)]
    with store.transaction():
        store.connection.executemany("INSERT OR REPLACE INTO vectors (key, vector, checksum) VALUES (?, ?, ?)", rows)


def stored_vector(store: Store, key: str) -> np.ndarray:
    """Return one vector, float32."""
    return vector_of(*store.connection.execute("SELECT vector, checksum FROM vectors WHERE key = ?", (key,)).fetchone())


def vector_of(content: bytes, checksum: int) -> np.ndarray:
    """Return a stored vector, float32; raise DamagedLibraryError if it is not as it was written."""
    if crc32(content) != checksum:
        raise DamagedLibraryError("A stored vector is damaged", "run `local-rag repair` to make it again")
    return np.frombuffer(content, dtype=np.float32)
