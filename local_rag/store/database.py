"""The library's truth in SQLite: documents, chunks, contexts and vectors.

Documents and chunks are never changed in place: a changed file becomes a new document, and the old one is marked
superseded until the generation that still names its chunks has been replaced. A reader of the published generation
therefore finds every passage it names while a writer is at work. Contexts and vectors are content-addressed: whatever
asks for the same context or vector again finds it. Both took long to make, so each commit is on the disk before the
next step, and each row has a checksum.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import DamagedLibraryError
from local_rag.records import UNKNOWN, Chunk, Document, Note, Provenance, RowKind, Skipped
from local_rag.store.connect import connect
from local_rag.store.schema import crc32


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
    """A chunk of a document, or the row that stands for all of it, with its context as far as there is one."""

    id: int
    document_id: int
    path: str
    title: str
    chunk: Chunk
    context: str
    context_kind: str
    provenance: Provenance = UNKNOWN
    kind: RowKind = "chunk"


_DOCUMENT_QUERY = "SELECT id, path, size, modified_ns, sha256, title, split_key FROM documents"
_CHUNK_QUERY = """
SELECT chunks.id, document_id, path, title, position, start, end, chunks.text, headings, page, line, end_line,
       coalesce(contexts.text, ''), coalesce(contexts.kind, ''), chunks.kind, url, date, author, tags
FROM chunks JOIN documents ON documents.id = document_id LEFT JOIN contexts ON contexts.key = context_key
LEFT JOIN provenance USING (document_id)
"""


class Store:
    """Open the SQLite file in a library's folder; `create` makes it when it is missing.

    One that may not be written, on a stick or of another owner, is read in place, or from a copy where that fails.
    """

    def __init__(self, folder: Path, *, create: bool = False) -> None:
        self.folder = folder
        self.connection, self._copy = connect(folder, create=create)

    def close(self) -> None:
        """Close the file."""
        self.connection.close()
        if self._copy:
            self._copy.cleanup()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all or nothing; within another transaction, with that one."""
        if bool(self.connection.in_transaction):
            yield
            return
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            # A full or failing disk makes SQLite itself take the transaction back.
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def roots(self) -> list[Path]:
        """Return the paths that `index` was given so far."""
        return [Path(row[0]) for row in self.connection.execute("SELECT path FROM roots ORDER BY path")]

    def root_devices(self) -> dict[Path, int | None]:
        """Return each root with the device it was last seen on."""
        return {Path(path): device for path, device in self.connection.execute("SELECT path, device FROM roots")}

    def add_roots(self, paths: Iterable[Path]) -> None:
        """Remember paths to index again."""
        rows = [(str(path),) for path in paths]
        with self.transaction():
            self.connection.executemany("INSERT OR IGNORE INTO roots (path) VALUES (?)", rows)

    def see_roots(self, devices: Mapping[Path, int], forgotten: Iterable[Path]) -> None:
        """Record on which device each root is, and forget those that are gone."""
        with self.transaction():
            rows = [(device, str(path)) for path, device in devices.items()]
            self.connection.executemany("UPDATE roots SET device = ?1 WHERE path = ?2 AND device IS NOT ?1", rows)
            self.connection.executemany("DELETE FROM roots WHERE path = ?", [(str(path),) for path in forgotten])

    def remember(self, settings: Mapping[str, Any]) -> None:
        """Store the settings that an index is made with."""
        with self.transaction():
            rows = [(name, json.dumps(value)) for name, value in settings.items()]
            self.connection.executemany("INSERT OR REPLACE INTO remembered VALUES (?, ?)", rows)

    def documents(self) -> list[StoredDocument]:
        """Return all live documents."""
        query = f"{_DOCUMENT_QUERY} INDEXED BY live_documents WHERE live ORDER BY path"  # which passes over no text
        return [StoredDocument(*row) for row in self.connection.execute(query)]

    def document(self, document_id: int) -> StoredDocument | None:
        """Return a document, also one that was superseded; None where there is no such one any more."""
        row = self.connection.execute(f"{_DOCUMENT_QUERY} WHERE id = ?", (document_id,)).fetchone()
        return StoredDocument(*row) if row else None

    def document_text(self, document_id: int) -> str:
        """Return the text of a document."""
        row = self.connection.execute("SELECT text FROM documents WHERE id = ?", (document_id,)).fetchone()
        return str(row[0])

    def put_document(
        self, document: Document, chunks: Sequence[Chunk], *, size: int, modified_ns: int, sha256: str, split_key: str
    ) -> int:
        """Store a document with its chunks and return its id; one of the same path is superseded."""
        with self.transaction():
            return self._put_document(document, chunks, (size, modified_ns, sha256, split_key))

    def put_documents(self, read: Iterable[tuple[Document, Sequence[Chunk], tuple[int, int, str, str]]]) -> list[int]:
        """Store documents as `put_document` does, all in one commit; each with size, time, SHA-256 and split key."""
        with self.transaction():
            return [self._put_document(*one) for one in read]

    def _put_document(self, document: Document, chunks: Sequence[Chunk], file: tuple[int, int, str, str]) -> int:
        size, modified_ns, sha256, split_key = file
        self.connection.execute("UPDATE documents SET live = 0 WHERE path = ? AND live", (str(document.path),))
        cursor = self.connection.execute(
            "INSERT INTO documents (path, size, modified_ns, sha256, title, text, kind, split_key, note) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                str(document.path),
                size,
                modified_ns,
                sha256,
                document.title,
                document.text,
                document.kind,
                split_key,
                document.note,
            ),
        )
        if said := document.provenance:
            self.connection.execute(
                "INSERT INTO provenance VALUES (?, ?, ?, ?, ?)",
                (cursor.lastrowid, said.url, said.date, said.author, json.dumps(said.tags, ensure_ascii=False)),
            )
        self.connection.executemany(
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
        return int(cursor.lastrowid or 0)

    def touch_documents(self, times: Iterable[tuple[int, int]]) -> None:
        """Record that files of unchanged documents have other times, as (document id, nanoseconds)."""
        with self.transaction():
            self.connection.executemany("UPDATE documents SET modified_ns = ?2 WHERE id = ?1", times)

    def supersede(self, documents: Iterable[StoredDocument]) -> None:
        """Take documents out of the next generation."""
        with self.transaction():
            self._supersede(documents)

    def _supersede(self, documents: Iterable[StoredDocument]) -> None:
        """Supersede documents within the caller's transaction."""
        self.connection.executemany("UPDATE documents SET live = 0 WHERE id = ?", [(one.id,) for one in documents])

    def superseded(self) -> list[int]:
        """Return the ids of the documents that are superseded."""
        return [row[0] for row in self.connection.execute("SELECT id FROM documents WHERE NOT live")]

    def purge(self, published: Iterable[int]) -> None:
        """Delete superseded documents, except those whose chunks the live generation still names."""
        named = set(published)
        query = "SELECT id FROM chunks WHERE document_id = ?"
        superseded = [(document,) for document in self.superseded()]
        gone = [one for one in superseded if not any(row[0] in named for row in self.connection.execute(query, one))]
        with self.transaction():
            self.connection.executemany("DELETE FROM documents WHERE id = ?", gone)

    def chunks(self, document_id: int | None = None) -> Iterator[StoredChunk]:
        """Yield the chunks of one document, or of all live documents, in reading order."""
        return (row for row in self.rows(document_id) if row.kind == "chunk")

    def rows(self, document_id: int | None = None) -> Iterator[StoredChunk]:
        """Yield what an index is made of: before the chunks of each document the row that stands for all of it."""
        where = "live" if document_id is None else "document_id = ?"
        rows = self.connection.execute(
            f"{_CHUNK_QUERY} WHERE {where} ORDER BY path, position", () if document_id is None else (document_id,)
        )
        return (_stored_chunk(row) for row in rows)

    def chunks_by_id(self, ids: Sequence[int]) -> dict[int, StoredChunk]:
        """Return the chunks with these ids."""
        found = {}
        for start in range(0, len(ids), 500):
            part = ids[start : start + 500]
            marks = ",".join("?" * len(part))
            for row in self.connection.execute(f"{_CHUNK_QUERY} WHERE chunks.id IN ({marks})", part):
                found[row[0]] = _stored_chunk(row)
        return found

    def document_rows(self) -> set[int]:
        """Return the ids of all rows that stand for documents, superseded ones too; their index tells them."""
        query = "SELECT id FROM chunks INDEXED BY document_rows WHERE kind = 'document'"
        return {row[0] for row in self.connection.execute(query)}

    def documents_without_contexts(self, plan: str) -> list[StoredDocument]:
        """Return live documents with a chunk whose context, under this plan, is not written yet."""
        return self._documents(
            "live AND (context_plan <> ? OR EXISTS (SELECT 1 FROM chunks WHERE document_id = documents.id AND "
            "NOT EXISTS (SELECT 1 FROM contexts WHERE contexts.key = context_key)))",
            plan,
        )

    def documents_without_a_plan(self, plan: str) -> list[StoredDocument]:
        """Return live documents of which is not known yet, under this plan, which contexts they want."""
        return self._documents("id IN (SELECT id FROM documents WHERE live AND context_plan <> ?)", plan)

    def _documents(self, where: str, *parameters: str) -> list[StoredDocument]:
        """Return the documents that meet a condition of ours, in the order of their paths."""
        rows = self.connection.execute(f"{_DOCUMENT_QUERY} WHERE {where} ORDER BY path", parameters)
        return [StoredDocument(*row) for row in rows]

    def has_contexts(self) -> bool:
        """Say whether any context is stored."""
        return self.connection.execute("SELECT 1 FROM contexts LIMIT 1").fetchone() is not None

    def known_contexts(self, keys: Iterable[str]) -> set[str]:
        """Return those keys whose context is stored."""
        return {
            key for key in keys if self.connection.execute("SELECT 1 FROM contexts WHERE key = ?", (key,)).fetchone()
        }

    def plan_contexts(self, document_id: int, plan: str, keys: Sequence[tuple[int, str]]) -> None:
        """Record which context each chunk of a document wants, as (chunk id, context key)."""
        with self.transaction():
            changed = self.connection.executemany(
                "UPDATE chunks SET context_key = ?2 WHERE id = ?1 AND context_key IS NOT ?2", keys
            ).rowcount
            if changed > 0:  # contexts that are stored already are news to what was made without them
                self.connection.execute("UPDATE made SET plan = '' WHERE document_id = ?", (document_id,))
            self.connection.execute("UPDATE documents SET context_plan = ? WHERE id = ?", (plan, document_id))

    def put_context(self, key: str, text: str, kind: str) -> None:
        """Store a finished context; if it is another than before, the documents that want it are to be made again."""
        if self.connection.execute("SELECT text, kind FROM contexts WHERE key = ?", (key,)).fetchone() == (text, kind):
            return
        with self.transaction():
            self.connection.execute(
                "INSERT OR REPLACE INTO contexts (key, text, kind, checksum) VALUES (?, ?, ?, ?)",
                (key, text, kind, crc32(kind, text)),
            )
            wanted = "document_id IN (SELECT document_id FROM chunks WHERE context_key = ?)"
            self.connection.execute(f"UPDATE made SET plan = '' WHERE plan <> '' AND {wanted}", (key,))  # noqa: S608

    def known_vectors(self, keys: Iterable[str]) -> set[str]:
        """Return those keys whose vector is stored."""
        return {
            key for key in keys if self.connection.execute("SELECT 1 FROM vectors WHERE key = ?", (key,)).fetchone()
        }

    def put_vectors(self, keys: Sequence[str], vectors: np.ndarray) -> None:
        """Store vectors, float32 of shape (len(keys), dimension)."""
        rows = [(key, vector.astype(np.float32).tobytes()) for key, vector in zip(keys, vectors, strict=True)]
        with self.transaction():
            self.connection.executemany(
                "INSERT OR REPLACE INTO vectors (key, vector, checksum) VALUES (?, ?, ?)",
                [(key, vector, crc32(vector)) for key, vector in rows],
            )

    def vector(self, key: str) -> np.ndarray:
        """Return one vector, float32."""
        row = self.connection.execute("SELECT vector, checksum FROM vectors WHERE key = ?", (key,)).fetchone()
        if crc32(row[0]) != row[1]:
            raise DamagedLibraryError("A stored vector is damaged", "run `local-rag repair` to have it made again")
        return np.frombuffer(row[0], dtype=np.float32)

    def notes(self) -> list[Note]:
        """Return what is missing of live documents, by path."""
        query = "SELECT path, note FROM documents WHERE live AND note <> '' ORDER BY path"
        return [Note(Path(path), note) for path, note in self.connection.execute(query)]

    def put_skipped(self, looked_at: Iterable[str], skipped: Iterable[tuple[Skipped, int, int, str]]) -> None:
        """Remember which of the files looked at could not be read, each with size, time and the reader that failed."""
        with self.transaction():
            self.connection.executemany("DELETE FROM skipped WHERE path = ?", [(path,) for path in looked_at])
            self.connection.executemany(
                "INSERT OR REPLACE INTO skipped (path, size, modified_ns, reason, split_key) VALUES (?, ?, ?, ?, ?)",
                [(str(item.path), size, time, item.reason, split_key) for item, size, time, split_key in skipped],
            )

    def skipped(self) -> dict[str, tuple[int, int, str, str]]:
        """Return size, time, reader and reason of the files that could not be read, by path."""
        rows = self.connection.execute("SELECT path, size, modified_ns, split_key, reason FROM skipped")
        return {path: (size, time, split_key, reason) for path, size, time, split_key, reason in rows}

    def excluded(self) -> list[Path]:
        """Return the paths below a root that were removed from the library."""
        return [Path(row[0]) for row in self.connection.execute("SELECT path FROM excluded ORDER BY path")]

    def include(self, paths: Iterable[Path]) -> None:
        """Let removed paths be indexed again."""
        self.connection.executemany("DELETE FROM excluded WHERE path = ?", [(str(path),) for path in paths])

    def remove(self, documents: Iterable[StoredDocument], roots: Iterable[Path], excluded: Iterable[Path]) -> None:
        """Supersede documents, forget roots and exclude paths, all or nothing."""
        with self.transaction():
            self._supersede(documents)
            self.connection.executemany("DELETE FROM roots WHERE path = ?", [(str(path),) for path in roots])
            self.connection.executemany("INSERT OR IGNORE INTO excluded VALUES (?)", [(str(p),) for p in excluded])


def _stored_chunk(row: tuple[object, ...]) -> StoredChunk:
    identifier, document_id, path, title, position, start, end, text, headings, page, line, end_line, *rest = row
    context, context_kind, kind, url, date, author, tags = rest
    said = UNKNOWN if url is None else Provenance(url, date, author, tuple(json.loads(str(tags))))  # type: ignore[arg-type]
    chunk = Chunk(position, start, end, text, tuple(json.loads(str(headings))), page, line, end_line)  # type: ignore[arg-type]
    return StoredChunk(identifier, document_id, path, title, chunk, context, context_kind, said, kind)  # type: ignore[arg-type]
