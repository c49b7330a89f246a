"""The library's truth in SQLite: documents, chunks, contexts and vectors.

Documents and chunks are never changed in place: a changed file becomes a new document, and the old one is marked
superseded until the generation that still names its chunks has been replaced. A reader of the published generation
therefore finds every passage it names while a writer is at work. Contexts and vectors are content-addressed: whatever
asks for the same context or vector again finds it.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from local_rag.errors import LibraryError
from local_rag.records import Chunk, Document

SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE roots (path TEXT PRIMARY KEY);
CREATE TABLE documents (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    kind TEXT NOT NULL,
    split_key TEXT NOT NULL,            -- chunker, sizes and tokenizer that made the chunks
    context_plan TEXT NOT NULL DEFAULT '',  -- context model, prompt and window that made the chunks' context keys
    live INTEGER NOT NULL DEFAULT 1     -- 0: superseded, kept until no published generation names it
);
CREATE UNIQUE INDEX live_paths ON documents (path) WHERE live;
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY,
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    start INTEGER NOT NULL,
    end INTEGER NOT NULL,
    text TEXT NOT NULL,
    headings TEXT NOT NULL,
    page INTEGER,
    line INTEGER,
    end_line INTEGER,
    context_key TEXT
);
CREATE INDEX chunks_of_document ON chunks (document_id, position);
CREATE TABLE contexts (key TEXT PRIMARY KEY, text TEXT NOT NULL, kind TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE vectors (key TEXT PRIMARY KEY, vector BLOB NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """What the store knows of a live document, without its text."""

    id: int
    path: str
    size: int
    modified_ns: int
    sha256: str
    title: str
    split_key: str


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk of a live document with its context, as far as there is one."""

    id: int
    document_id: int
    path: str
    title: str
    chunk: Chunk
    context: str
    context_kind: str


_CHUNK_QUERY = """
SELECT chunks.id, document_id, path, title, position, start, end, chunks.text, headings, page, line, end_line,
       coalesce(contexts.text, ''), coalesce(contexts.kind, '')
FROM chunks JOIN documents ON documents.id = document_id LEFT JOIN contexts ON contexts.key = context_key
"""


class Store:
    """Open the SQLite file of a library; `create` makes it when it is missing."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        if not path.exists() and not create:
            raise LibraryError(f"There is no library in {path.parent}; make one with `local-rag index PATH`.")
        try:
            self._connection = sqlite3.connect(path, timeout=30, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute("PRAGMA foreign_keys = ON")
            self._open_schema(path)
        except sqlite3.Error as error:
            raise LibraryError(
                f"{path} cannot be used ({error}); if it is damaged, delete {path.parent} "
                "and run `local-rag index` again."
            ) from None

    def _open_schema(self, path: Path) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            self._connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
        elif version != SCHEMA_VERSION:
            raise LibraryError(
                f"{path} has schema version {version} and this local-rag knows version {SCHEMA_VERSION}; use the "
                "local-rag that made it, or another folder with `--library`."
            )

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all or nothing."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def roots(self) -> list[Path]:
        """Return the paths that `index` was given so far."""
        return [Path(row[0]) for row in self._connection.execute("SELECT path FROM roots ORDER BY path")]

    def add_roots(self, paths: Iterable[Path]) -> None:
        """Remember paths to index again."""
        self._connection.executemany("INSERT OR IGNORE INTO roots VALUES (?)", [(str(path),) for path in paths])

    def documents(self) -> list[StoredDocument]:
        """Return all live documents."""
        rows = self._connection.execute(
            "SELECT id, path, size, modified_ns, sha256, title, split_key FROM documents WHERE live ORDER BY path"
        )
        return [StoredDocument(*row) for row in rows]

    def document_text(self, document_id: int) -> str:
        """Return the text of a document."""
        row = self._connection.execute("SELECT text FROM documents WHERE id = ?", (document_id,)).fetchone()
        return str(row[0])

    def put_document(
        self, document: Document, chunks: Sequence[Chunk], *, size: int, modified_ns: int, sha256: str, split_key: str
    ) -> None:
        """Store a document with its chunks; one of the same path is superseded."""
        with self.transaction():
            self._connection.execute("UPDATE documents SET live = 0 WHERE path = ? AND live", (str(document.path),))
            cursor = self._connection.execute(
                "INSERT INTO documents (path, size, modified_ns, sha256, title, text, kind, split_key) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    str(document.path),
                    size,
                    modified_ns,
                    sha256,
                    document.title,
                    document.text,
                    document.kind,
                    split_key,
                ),
            )
            self._connection.executemany(
                "INSERT INTO chunks (document_id, position, start, end, text, headings, page, line, end_line) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        cursor.lastrowid, chunk.position, chunk.start, chunk.end, chunk.text,
                        json.dumps(chunk.headings, ensure_ascii=False), chunk.page, chunk.line, chunk.end_line,
                    )
                    for chunk in chunks
                ],
            )  # fmt: skip

    def touch_document(self, document_id: int, modified_ns: int) -> None:
        """Record that an unchanged document's file has another time."""
        self._connection.execute("UPDATE documents SET modified_ns = ? WHERE id = ?", (modified_ns, document_id))

    def supersede(self, document_id: int) -> None:
        """Take a document out of the next generation."""
        self._connection.execute("UPDATE documents SET live = 0 WHERE id = ?", (document_id,))

    def purge(self, published: Iterable[int]) -> None:
        """Delete superseded documents, except those whose chunks the live generation still names."""
        with self.transaction():
            self._connection.execute("CREATE TEMP TABLE published (id INTEGER PRIMARY KEY)")
            self._connection.executemany("INSERT INTO published VALUES (?)", [(int(key),) for key in published])
            self._connection.execute(
                "DELETE FROM documents WHERE NOT live AND NOT EXISTS "
                "(SELECT 1 FROM chunks JOIN published ON published.id = chunks.id WHERE document_id = documents.id)"
            )
            self._connection.execute("DROP TABLE published")

    def chunks(self, document_id: int | None = None) -> Iterator[StoredChunk]:
        """Yield the chunks of one document, or of all live documents, in reading order."""
        where = "live" if document_id is None else "document_id = ?"
        rows = self._connection.execute(
            f"{_CHUNK_QUERY} WHERE {where} ORDER BY path, position", () if document_id is None else (document_id,)
        )
        return (_stored_chunk(row) for row in rows)

    def chunks_by_id(self, ids: Sequence[int]) -> dict[int, StoredChunk]:
        """Return the chunks with these ids."""
        found = {}
        for start in range(0, len(ids), 500):
            part = ids[start : start + 500]
            marks = ",".join("?" * len(part))
            for row in self._connection.execute(f"{_CHUNK_QUERY} WHERE chunks.id IN ({marks})", part):
                found[row[0]] = _stored_chunk(row)
        return found

    def documents_without_contexts(self, plan: str) -> list[StoredDocument]:
        """Return live documents with a chunk whose context, under this plan, is not written yet."""
        rows = self._connection.execute(
            "SELECT id, path, size, modified_ns, sha256, title, split_key FROM documents WHERE live AND "
            "(context_plan <> ? OR EXISTS (SELECT 1 FROM chunks WHERE document_id = documents.id AND NOT EXISTS "
            "(SELECT 1 FROM contexts WHERE contexts.key = context_key))) ORDER BY path",
            (plan,),
        )
        return [StoredDocument(*row) for row in rows]

    def count_missing_contexts(self, plan: str) -> int:
        """Count the chunks of live documents whose context, under this plan, is not written yet."""
        row = self._connection.execute(
            "SELECT count(*) FROM chunks JOIN documents ON documents.id = document_id WHERE live AND "
            "(context_plan <> ? OR NOT EXISTS (SELECT 1 FROM contexts WHERE contexts.key = context_key))",
            (plan,),
        ).fetchone()
        return int(row[0])

    def known_contexts(self, keys: Iterable[str]) -> set[str]:
        """Return those keys whose context is stored."""
        return {
            key for key in keys if self._connection.execute("SELECT 1 FROM contexts WHERE key = ?", (key,)).fetchone()
        }

    def plan_contexts(self, document_id: int, plan: str, keys: Sequence[tuple[int, str]]) -> None:
        """Record which context each chunk of a document wants, as (chunk id, context key)."""
        with self.transaction():
            self._connection.executemany("UPDATE chunks SET context_key = ? WHERE id = ?", [(k, i) for i, k in keys])
            self._connection.execute("UPDATE documents SET context_plan = ? WHERE id = ?", (plan, document_id))

    def put_context(self, key: str, text: str, kind: str) -> None:
        """Store a finished context."""
        self._connection.execute("INSERT OR REPLACE INTO contexts VALUES (?, ?, ?)", (key, text, kind))

    def known_vectors(self, keys: Iterable[str]) -> set[str]:
        """Return those keys whose vector is stored."""
        return {
            key for key in keys if self._connection.execute("SELECT 1 FROM vectors WHERE key = ?", (key,)).fetchone()
        }

    def put_vectors(self, keys: Sequence[str], vectors: np.ndarray) -> None:
        """Store vectors, float32 of shape (len(keys), dimension)."""
        with self.transaction():
            self._connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?)",
                [(key, vector.astype(np.float32).tobytes()) for key, vector in zip(keys, vectors, strict=True)],
            )

    def vector(self, key: str) -> np.ndarray:
        """Return one vector, float32."""
        row = self._connection.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        return np.frombuffer(row[0], dtype=np.float32)


def _stored_chunk(row: tuple[object, ...]) -> StoredChunk:
    identifier, document_id, path, title, position, start, end, text, headings, page, line, end_line, *rest = row
    chunk = Chunk(position, start, end, text, tuple(json.loads(str(headings))), page, line, end_line)  # type: ignore[arg-type]
    return StoredChunk(identifier, document_id, path, title, chunk, *rest)  # type: ignore[arg-type]
