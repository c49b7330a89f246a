"""What a library stores in SQLite: roots, documents, chunks, contexts and vectors.

Documents and chunks are never changed in place: a changed file becomes a new document, and the old one is marked as
superseded until no published generation names its chunks. A reader of the published generation therefore finds every
passage that it names, even during a write. Contexts and vectors are stored under a key of everything they depend on, so
the same one is never made twice. Both are slow to make: each commit is on the disk before the next step, and each row
has a checksum.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from local_rag.asking import Filters
from local_rag.errors import DamagedLibraryError
from local_rag.files import FileStamp
from local_rag.index.protocol import AllowedDocuments
from local_rag.keys import key_of
from local_rag.records import UNKNOWN, Chunk, Document, DocumentFacts, Note, Provenance, RowKind, StoredChunk
from local_rag.store.connect import connect, in_use
from local_rag.store.hidden_paths import hidden_among
from local_rag.store.schema import crc32


class StoredDocument(NamedTuple):
    """What the store knows of a document, without its text; the stamp is that of the file that was read."""

    id: int
    path: str
    stamp: FileStamp
    sha256: str
    title: str
    split_key: str

    @property
    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self.stamp.size

    @property
    def modified_ns(self) -> int:
        """Return when the file was written, in nanoseconds."""
        return self.stamp.modified_ns


@dataclass(frozen=True, slots=True)
class UnreadFile:
    """A file that could not be read: its stamp then, and why; no `split_key` if another attempt may succeed.

    `waiting` is the number of its pages that wait for OCR.
    """

    stamp: FileStamp
    reason: str
    split_key: str
    waiting: int = 0


_AT_ONCE = 500  # ids in one query
# At a path or below it; ?1 is the path.
BELOW = "(path = ?1 OR substr(path, 1, length(?1) + 1) = ?1 || '/')"
DOCUMENT_COLUMNS = "documents.id, path, size, modified_ns, changed_ns, inode, sha256, title, split_key"
_DOCUMENT_QUERY = f"SELECT {DOCUMENT_COLUMNS} FROM documents"  # noqa: S608
CHUNK_QUERY = """
SELECT chunks.id, document_id, path, title, position, start, end, chunks.text, headings, page, line, end_line,
       table_header, ocr, coalesce(said.text, ''), coalesce(written.text, ''), chunks.kind, url, date, author, tags,
       sha256
FROM chunks JOIN documents ON documents.id = document_id LEFT JOIN contexts AS said ON said.key = context_key
LEFT JOIN contexts AS written ON written.key = sentence_key
LEFT JOIN provenance USING (document_id)
"""


class Store:
    """The SQLite file in a library's folder; `create` makes it if it is missing.

    Unless it is opened to `write`, a file that cannot be written (read-only or full disk, another owner) is read.
    """

    def __init__(self, folder: Path, *, create: bool = False, write: bool = False) -> None:
        self.folder = folder
        self.connection, self._unlocked = connect(folder, create=create, write=write)

    @property
    def is_overtaken(self) -> bool:
        """Whether the file is read without locks, because nobody could write, and somebody writes now."""
        return self._unlocked and in_use(self.folder)

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    @contextmanager
    def transaction(self, *, keep: bool = True) -> Iterator[None]:
        """Write all or nothing; inside another transaction, join it. Without `keep`, nothing is written in the end."""
        if bool(self.connection.in_transaction):
            yield
            return
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT" if keep else "ROLLBACK")
        except BaseException:
            # SQLite itself rolls back when the disk is full or fails.
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def roots(self) -> list[Path]:
        """Return the paths that `index` was given."""
        return [Path(row[0]) for row in self.connection.execute("SELECT path FROM roots ORDER BY path")]

    def root_devices(self) -> dict[Path, int | None]:
        """Return each root with the device it was last on."""
        return {Path(path): device for path, device in self.connection.execute("SELECT path, device FROM roots")}

    def add_roots(self, paths: Iterable[Path]) -> None:
        """Add roots."""
        rows = [(str(path),) for path in paths]
        with self.transaction():
            self.connection.executemany("INSERT OR IGNORE INTO roots (path) VALUES (?)", rows)

    def mounts(self) -> dict[str, int]:
        """Return the folders below a root on which another disk was mounted, each with its device."""
        return dict(self.connection.execute("SELECT path, device FROM mounts").fetchall())

    def see_disks(self, roots: Mapping[Path, int], mounts: Mapping[str, int], lost: Iterable[str]) -> None:
        """Record on which devices roots and mounts were seen, and forget the `lost` mounts that were not."""
        with self.transaction():
            rows = [(device, str(path)) for path, device in roots.items()]
            self.connection.executemany("UPDATE roots SET device = ?1 WHERE path = ?2 AND device IS NOT ?1", rows)
            self.connection.executemany("DELETE FROM mounts WHERE path = ?", [(path,) for path in lost])
            self.connection.executemany("INSERT OR REPLACE INTO mounts VALUES (?, ?)", mounts.items())

    def remember(self, settings: Mapping[str, Any]) -> None:
        """Store the settings that an index is made with."""
        with self.transaction():
            rows = [(name, json.dumps(value)) for name, value in settings.items()]
            self.connection.executemany("INSERT OR REPLACE INTO remembered VALUES (?, ?)", rows)

    def put_unread(self, looked_at: Iterable[str], unread: Mapping[str, UnreadFile]) -> None:
        """Replace what is known of unreadable files among those looked at."""
        rows = [(path, *one.stamp, one.reason, one.split_key, one.waiting) for path, one in unread.items()]
        with self.transaction():
            self.connection.executemany("DELETE FROM skipped WHERE path = ?", [(path,) for path in looked_at])
            self.connection.executemany("INSERT OR REPLACE INTO skipped VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def unread(self) -> dict[str, UnreadFile]:
        """Return the files that could not be read, by path."""
        rows = self.connection.execute("SELECT * FROM skipped ORDER BY path")
        return {path: UnreadFile(FileStamp(*known[:4]), *known[4:]) for path, *known in rows}

    def excluded(self) -> list[Path]:
        """Return the paths below a root that were removed from the library."""
        return [Path(row[0]) for row in self.connection.execute("SELECT path FROM excluded ORDER BY path")]

    def include(self, paths: Iterable[Path]) -> None:
        """Let removed paths be indexed again."""
        excluded = self.excluded()
        for path in map(str, paths):
            again = [one for one in excluded if str(one) == path or hidden_among([one])(path)]
            self.connection.executemany("DELETE FROM excluded WHERE path = ?", [(str(one),) for one in again])

    def documents(self) -> list[StoredDocument]:
        """Return all live documents."""
        return self._documents("live")

    def documents_after(self, path: str) -> Iterator[StoredDocument]:
        """Yield the live documents with a path after this one, by path."""
        rows = self.connection.execute(f"{_DOCUMENT_QUERY} WHERE live AND path > ? ORDER BY path", (path,))
        return (stored_document(row) for row in rows)

    def live_ids(self) -> list[int]:
        """Return the ids of all live documents."""
        return [row[0] for row in self.connection.execute("SELECT id FROM documents WHERE live ORDER BY id")]

    def holds(self, sha256: str, path: str) -> bool:
        """Say whether a live document has this content or this path."""
        query = "SELECT 1 FROM documents WHERE live AND (sha256 = ? OR path = ?) LIMIT 1"
        return self.connection.execute(query, (sha256, path)).fetchone() is not None

    def document(self, document_id: int) -> StoredDocument | None:
        """Return a live or superseded document; None if it was deleted."""
        row = self.connection.execute(f"{_DOCUMENT_QUERY} WHERE id = ?", (document_id,)).fetchone()
        return stored_document(row) if row else None

    def document_text(self, document_id: int) -> str:
        """Return the text of a document."""
        query = "SELECT text FROM document_texts WHERE document_id = ?"
        row = self.connection.execute(query, (document_id,)).fetchone()
        return str(row[0])

    def document_beginning(self, document_id: int, characters: int) -> str:
        """Return the first characters of a document's text."""
        query = "SELECT substr(text, 1, ?2) FROM document_texts WHERE document_id = ?1"
        return str(self.connection.execute(query, (document_id, characters)).fetchone()[0])

    def document_kind(self, document_id: int) -> str:
        """Return the kind of text that a document is."""
        row = self.connection.execute("SELECT kind FROM documents WHERE id = ?", (document_id,)).fetchone()
        return str(row[0])

    def put_document(
        self,
        document: Document,
        chunks: Sequence[Chunk],
        *,
        size: int,
        modified_ns: int,
        sha256: str,
        split_key: str,
    ) -> int:
        """Store a document with its chunks, superseding the one of the same path; return its id."""
        with self.transaction():
            return self._put_document(document, chunks, (FileStamp(size, modified_ns), sha256, split_key))

    def put_documents(self, read: Iterable[tuple[Document, Sequence[Chunk], tuple[FileStamp, str, str]]]) -> list[int]:
        """Store documents like `put_document`, in one commit, each with (stamp, SHA-256, split key) of its file."""
        with self.transaction():
            return [self._put_document(*one) for one in read]

    def _put_document(self, document: Document, chunks: Sequence[Chunk], file: tuple[FileStamp, str, str]) -> int:
        stamp, sha256, split_key = file
        self.connection.execute("UPDATE documents SET live = 0 WHERE path = ? AND live", (str(document.path),))
        cursor = self.connection.execute(
            "INSERT INTO documents (path, size, modified_ns, changed_ns, inode, sha256, title, kind, split_key, notes, "
            "waiting, content_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                str(document.path),
                *stamp,
                sha256,
                document.title,
                document.kind,
                split_key,
                json.dumps(document.notes, ensure_ascii=False),
                document.waiting,
                _content_key(sha256, split_key, document.title),
            ),
        )
        identifier = int(cursor.lastrowid or 0)
        self.connection.execute("INSERT INTO document_texts VALUES (?, ?)", (identifier, document.text))
        if said := document.provenance:
            self.connection.execute(
                "INSERT INTO provenance VALUES (?, ?, ?, ?, ?)",
                (identifier, said.url, said.date, said.author, json.dumps(said.tags, ensure_ascii=False)),
            )
        self._put_chunks(((identifier, chunk) for chunk in chunks), "chunk")
        return identifier

    def touch_documents(self, stamps: Iterable[tuple[int, FileStamp]]) -> None:
        """Record new stamps of the files of unchanged documents, as (document id, stamp)."""
        rows = [(one, stamp.modified_ns, stamp.changed_ns, stamp.inode) for one, stamp in stamps]
        update = "UPDATE documents SET modified_ns = ?2, changed_ns = ?3, inode = ?4 WHERE id = ?1"
        with self.transaction():
            self.connection.executemany(update, rows)
            self._note_other_facts()

    def ids_at(self, paths: Iterable[str]) -> set[int]:
        """Return the ids of the documents at some paths, superseded ones too."""
        by_path = "SELECT id FROM documents WHERE path = ?1 AND"  # each with an index of its own
        query = f"{by_path} live UNION ALL {by_path} NOT live"
        return {row[0] for path in paths for row in self.connection.execute(query, (path,))}

    def order_by_path(self) -> dict[int, int]:
        """Return the place of each document, superseded ones too, in the order of their paths."""
        rows = self.connection.execute("SELECT id FROM documents ORDER BY path")
        return {row[0]: place for place, row in enumerate(rows)}

    def supersede(self, documents: Iterable[StoredDocument]) -> None:
        """Mark documents as superseded, so the next generation leaves them out."""
        with self.transaction():
            self._supersede(documents)

    def _supersede(self, documents: Iterable[StoredDocument]) -> None:
        """Supersede documents within the caller's transaction."""
        self.connection.executemany("UPDATE documents SET live = 0 WHERE id = ?", [(one.id,) for one in documents])

    def superseded(self) -> list[int]:
        """Return the ids of the superseded documents."""
        return [row[0] for row in self.connection.execute("SELECT id FROM documents WHERE NOT live")]

    def superseded_paths(self) -> list[str]:
        """Return the paths of superseded documents at which there is no live one."""
        there = "SELECT 1 FROM documents WHERE live AND path = gone.path"
        query = f"SELECT path FROM documents AS gone WHERE NOT live AND NOT EXISTS ({there})"  # noqa: S608
        return [row[0] for row in self.connection.execute(query)]

    def purge(self, published: Iterable[int]) -> None:
        """Delete superseded documents and their distinctions, except those that a published index still holds."""
        gone = [(one,) for one in set(self.superseded()).difference(published)]
        with self.transaction():
            self.connection.executemany(
                "DELETE FROM distinctions WHERE content_key = (SELECT content_key FROM documents WHERE id = ?1) "
                "AND NOT EXISTS (SELECT 1 FROM documents WHERE content_key = distinctions.content_key AND id <> ?1)",
                gone,
            )
            self.connection.executemany("DELETE FROM documents WHERE id = ?", gone)

    def remove(self, documents: Iterable[StoredDocument], roots: Iterable[Path], excluded: Iterable[Path]) -> None:
        """Supersede documents, forget roots and exclude paths, all or nothing."""
        with self.transaction():
            self._supersede(documents)
            self.connection.executemany("DELETE FROM roots WHERE path = ?", [(str(path),) for path in roots])
            self.connection.executemany("INSERT OR IGNORE INTO excluded VALUES (?)", [(str(p),) for p in excluded])

    def notes(self) -> list[Note]:
        """Return what could not be read of live documents, and which files wait for OCR, by path."""
        query = (
            "SELECT path, notes FROM documents WHERE live AND notes <> '[]' "
            "UNION ALL SELECT path, json_array(reason) FROM skipped WHERE waiting ORDER BY path"
        )
        return [Note(Path(path), one) for path, notes in self.connection.execute(query) for one in json.loads(notes)]

    def count_waiting(self) -> int:
        """Count the pages that wait for OCR."""
        query = "SELECT (SELECT total(waiting) FROM documents WHERE live) + (SELECT total(waiting) FROM skipped)"
        return int(self.connection.execute(query).fetchone()[0])

    def content_hashes(self) -> set[str]:
        """Return the SHA-256 of the files of all documents, superseded ones too."""
        return {row[0] for row in self.connection.execute("SELECT sha256 FROM documents")}

    def count_below(self, path: Path) -> int:
        """Count the live documents at or below a path."""
        row = self.connection.execute(f"SELECT count(*) FROM documents WHERE live AND {BELOW}", (str(path),))  # noqa: S608
        return int(row.fetchone()[0])

    def move_paths(self, old: Path, new: Path) -> None:
        """Rename every path at or below one path to lie at or below another, all or nothing.

        Superseded documents move too: the live index may still name them. The devices of the roots are forgotten.
        """
        with self.transaction():
            for table in ("documents", "roots", "mounts", "excluded", "skipped"):
                device = ", device = NULL" if table == "roots" else ""
                self.connection.execute(
                    f"UPDATE OR REPLACE {table} SET path = ?2 || substr(path, length(?1) + 1){device} WHERE {BELOW}",  # noqa: S608
                    (str(old), str(new)),
                )
            self._note_other_facts()

    def version(self) -> object:
        """Return a value that changes when filters may let other documents of the same index pass."""
        number = self.connection.execute("SELECT number FROM facts_version").fetchone()[0]
        # Of all roots, also where only some are shown (seen.py).
        return number, tuple(row[0] for row in self.connection.execute("SELECT path FROM main.roots ORDER BY path"))

    def _note_other_facts(self) -> None:
        self.connection.execute("UPDATE facts_version SET number = number + 1")

    def facts(self, documents: Collection[int] | None = None) -> list[DocumentFacts]:
        """Return the facts of all documents, or of these, superseded ones too: the live index may name their chunks."""
        among = "" if documents is None else "WHERE id IN (SELECT value FROM json_each(?))"
        rows = self.connection.execute(
            "SELECT id, path, modified_ns, coalesce(date, ''), coalesce(tags, '[]') "  # noqa: S608
            f"FROM documents LEFT JOIN provenance ON document_id = id {among}",
            () if documents is None else (json.dumps(list(documents)),),
        )
        return [
            DocumentFacts(key, path, modified_ns, day, () if tags == "[]" else tuple(json.loads(tags)))
            for key, path, modified_ns, day, tags in rows
        ]

    def library_id(self) -> str:
        """Return what tells this library from every other one, also after it was moved or copied."""
        return str(self.connection.execute("SELECT id FROM library").fetchone()[0])

    def select(self, filters: Filters) -> None:
        """Return None: the documents that pass are found by their facts."""

    def chunks(self, document_id: int | None = None) -> Iterator[StoredChunk]:
        """Yield the chunks of one document, or of all live documents, in reading order."""
        return (row for row in self.rows(document_id) if row.kind == "chunk")

    def rows(self, document_id: int | None = None) -> Iterator[StoredChunk]:
        """Yield the rows of an index: for each document the row that stands for all of it, then its chunks."""
        where = "live" if document_id is None else "document_id = ?"
        rows = self.connection.execute(
            f"{CHUNK_QUERY} WHERE {where} ORDER BY path, position", () if document_id is None else (document_id,)
        )
        return (stored_chunk(row) for row in rows)

    def first_row(self, document_id: int) -> StoredChunk | None:
        """Return the row that stands for a document, else its first chunk; None if it has neither."""
        query = f"{CHUNK_QUERY} WHERE document_id = ? ORDER BY position LIMIT 1"
        row = self.connection.execute(query, (document_id,)).fetchone()
        return stored_chunk(row) if row else None

    def count_chunks(self, document_id: int) -> int:
        """Count the chunks of a document."""
        query = "SELECT count(*) FROM chunks WHERE document_id = ? AND position >= 0"
        return int(self.connection.execute(query, (document_id,)).fetchone()[0])

    def chunks_by_id(self, ids: Sequence[int]) -> dict[int, StoredChunk]:
        """Return the chunks with these ids."""
        found = {}
        for part in _parts(ids):
            for row in self.connection.execute(f"{CHUNK_QUERY} WHERE chunks.id IN ({_marks(part)})", part):
                found[row[0]] = stored_chunk(row)
        return found

    def chunks_of(self, documents: Collection[int]) -> AllowedDocuments:
        """Return the documents themselves: the index knows their rows."""
        return AllowedDocuments(np.fromiter(documents, dtype=np.int64))

    def positions(self, document_id: int) -> list[tuple[int, int]]:
        """Return the id and the position of each row of a document; that of the row of all of it is negative."""
        query = "SELECT id, position FROM chunks WHERE document_id = ? ORDER BY position"
        return self.connection.execute(query, (document_id,)).fetchall()

    def chunk_texts(self, document_id: int) -> dict[int, str]:
        """Return the text of each chunk of a document by its position."""
        query = "SELECT position, text FROM chunks WHERE document_id = ? AND kind = 'chunk' ORDER BY position"
        return dict(self.connection.execute(query, (document_id,)))

    def chunk_text(self, chunk: int) -> str:
        """Return the text of a chunk."""
        return str(self.connection.execute("SELECT text FROM chunks WHERE id = ?", (chunk,)).fetchone()[0])

    def put_document_rows(self, rows: Iterable[tuple[int, Chunk]]) -> None:
        """Store the rows that stand for whole documents, each with the id of its document."""
        with self.transaction():
            self._put_chunks(rows, "document")

    def _put_chunks(self, chunks: Iterable[tuple[int, Chunk]], kind: RowKind) -> None:
        self.connection.executemany(
            "INSERT INTO chunks (document_id, position, start, end, text, headings, page, line, end_line, "
            "table_header, ocr, kind) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    document, chunk.position, chunk.start, chunk.end, chunk.text,
                    json.dumps(chunk.headings, ensure_ascii=False), chunk.page, chunk.line, chunk.end_line,
                    chunk.table_header, chunk.ocr, kind,
                )
                for document, chunk in chunks
            ],
        )  # fmt: skip

    def paths_of_document_rows(self) -> dict[int, str]:
        """Return the path of the document that each such row stands for, superseded ones too."""
        query = "SELECT chunks.id, path FROM chunks JOIN documents ON documents.id = document_id "
        return dict(self.connection.execute(f"{query} WHERE chunks.kind = 'document'").fetchall())

    def documents_to_compare(self, plan: str) -> list[StoredDocument]:
        """Return the live documents that were never compared, except those whose contexts this plan made without it."""
        return self._documents(
            "live AND context_plan <> ? AND NOT EXISTS "
            "(SELECT 1 FROM distinctions WHERE content_key = documents.content_key)",
            plan,
        )

    def put_distinction(self, document_id: int, distinction: str) -> None:
        """Store what sets a document, and others of the same content, apart, as JSON."""
        self.connection.execute(
            "INSERT OR REPLACE INTO distinctions SELECT content_key, ?2, ?3 FROM documents WHERE id = ?1",
            (document_id, distinction, crc32(distinction)),
        )

    def distinction(self, document_id: int) -> str:
        """Return what sets a document apart, as JSON; empty if it was not compared."""
        query = "SELECT distinction FROM documents JOIN distinctions USING (content_key) WHERE id = ?"
        row = self.connection.execute(query, (document_id,)).fetchone()
        return str(row[0]) if row else ""

    def earlier_distinction(self, document: StoredDocument) -> str:
        """Return the distinction of the last superseded document at the same path; empty if the store has none."""
        row = self.connection.execute(
            "SELECT distinction FROM documents JOIN distinctions USING (content_key) "
            "WHERE path = ? AND NOT live ORDER BY id DESC LIMIT 1",
            (document.path,),
        ).fetchone()
        return str(row[0]) if row else ""

    def set_apart(self, audience: Callable[[int], str]) -> None:
        """Let documents be set apart for each audience by itself.

        Of a document with another audience than before nothing is known: it is embedded without contexts, compared and
        situated again.
        """
        rows = self.connection.execute("SELECT id, content_key, sha256, split_key, title FROM documents").fetchall()
        keys = ((row[0], row[1], _content_key(row[2], row[3], row[4], audience(row[0]))) for row in rows)
        changed = [(one, key) for one, known, key in keys if key != known]
        if not changed:
            return
        with self.transaction():
            update = "UPDATE documents SET content_key = ?2, context_plan = '', sentence_plan = '' WHERE id = ?1"
            self.connection.executemany(update, changed)
            for forgotten in (
                "UPDATE chunks SET context_key = NULL, need = NULL, sentence_key = NULL WHERE document_id = ?1",
                "UPDATE embedding_plans SET plan = '' WHERE document_id = ?1",
                "DELETE FROM mean_vectors WHERE document_id = ?1",
            ):
                self.connection.executemany(forgotten, [(one,) for one, _ in changed])
            gone = "DELETE FROM distinctions WHERE content_key NOT IN (SELECT content_key FROM documents)"
            self.connection.execute(gone)

    def forget_distinctions(self) -> None:
        """Forget what sets documents apart, so all are compared again and their contexts planned again."""
        with self.transaction():
            self.connection.execute("DELETE FROM distinctions")
            self.connection.execute("UPDATE documents SET context_plan = '' WHERE live")

    def documents_without_a_plan(self, plan: str) -> list[StoredDocument]:
        """Return live documents whose contexts are not planned under this plan yet."""
        return self._documents("id IN (SELECT id FROM documents WHERE live AND context_plan <> ?)", plan)

    def _documents(self, where: str, *parameters: str) -> list[StoredDocument]:
        """Return the documents that meet an SQL condition, by path."""
        rows = self.connection.execute(f"{_DOCUMENT_QUERY} WHERE {where} ORDER BY path", parameters)
        return [stored_document(row) for row in rows]

    def known_contexts(self, keys: Iterable[str]) -> set[str]:
        """Return the keys whose context is stored."""
        return {
            key for key in keys if self.connection.execute("SELECT 1 FROM contexts WHERE key = ?", (key,)).fetchone()
        }

    def plan_contexts(self, document_id: int, plan: str, keys: Sequence[tuple[int, str, float | None]]) -> None:
        """Record what code says of the rows of a document, as (chunk id, context key, need of a sentence)."""
        with self.transaction():
            situated = self._is_situated(document_id)
            changed = self.connection.executemany(
                "UPDATE chunks SET context_key = ?2, need = ?3 "
                "WHERE id = ?1 AND (context_key IS NOT ?2 OR need IS NOT ?3)",
                keys,
            ).rowcount
            if changed > 0 and (situated or self._is_situated(document_id)):  # it was embedded without these contexts
                self.connection.execute("UPDATE embedding_plans SET plan = '' WHERE document_id = ?", (document_id,))
            self.connection.execute("UPDATE documents SET context_plan = ? WHERE id = ?", (plan, document_id))

    def _is_situated(self, document_id: int) -> bool:
        """Say whether a document wants contexts that are not known to be empty."""
        query = (
            "SELECT 1 FROM chunks LEFT JOIN contexts ON contexts.key = context_key "
            "WHERE document_id = ? AND context_key IS NOT NULL AND contexts.text IS NOT '' LIMIT 1"
        )
        return self.connection.execute(query, (document_id,)).fetchone() is not None

    def put_context(self, key: str, text: str, kind: str) -> None:
        """Store a finished context; if it has changed, the documents that want it are to be embedded again."""
        if self.connection.execute("SELECT text, kind FROM contexts WHERE key = ?", (key,)).fetchone() == (text, kind):
            return
        with self.transaction():
            self.connection.execute(
                "INSERT OR REPLACE INTO contexts (key, text, kind, checksum) VALUES (?, ?, ?, ?)",
                (key, text, kind, crc32(kind, text)),
            )
            wanted = (
                "document_id IN (SELECT document_id FROM chunks WHERE context_key = ?1 "
                "UNION SELECT document_id FROM chunks WHERE sentence_key = ?1)"
            )
            self.connection.execute(f"UPDATE embedding_plans SET plan = '' WHERE plan <> '' AND {wanted}", (key,))  # noqa: S608

    def known_vectors(self, keys: Iterable[str]) -> set[str]:
        """Return the keys whose vector is stored."""
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
        return vector_of(
            *self.connection.execute("SELECT vector, checksum FROM vectors WHERE key = ?", (key,)).fetchone()
        )


def _content_key(sha256: str, split_key: str, title: str, audience: str = "") -> str:
    return key_of(sha256, split_key, title, *([audience] if audience else ()))


def vector_of(content: bytes, checksum: int) -> np.ndarray:
    """Return a stored vector, float32; raise DamagedLibraryError if it is not as it was written."""
    if crc32(content) != checksum:
        raise DamagedLibraryError("A stored vector is damaged", "run `local-rag repair` to make it again")
    return np.frombuffer(content, dtype=np.float32)


def _parts(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE))


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))


def stored_document(row: Sequence[Any]) -> StoredDocument:
    """Make a document of a row with DOCUMENT_COLUMNS."""
    return StoredDocument(row[0], row[1], FileStamp(*row[2:6]), *row[6:9])


def stored_chunk(row: tuple[object, ...]) -> StoredChunk:
    """Make a chunk of a row of CHUNK_QUERY."""
    identifier, document_id, path, title, position, start, end, text, headings, *place = row[:14]
    terms, sentence, kind, url, date, author, tags, sha256 = row[14:]
    said = UNKNOWN if url is None else Provenance(url, date, author, tuple(json.loads(str(tags))))  # type: ignore[arg-type]
    chunk = Chunk(position, start, end, text, tuple(json.loads(str(headings))), *place)  # type: ignore[arg-type]
    return StoredChunk(identifier, document_id, path, title, chunk, terms, sentence, said, kind, sha256)  # type: ignore[arg-type]
