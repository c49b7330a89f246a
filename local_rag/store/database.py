"""The store of a library in SQLite: its roots, documents and chunks; and the lock of who writes.

Documents and chunks are never changed in place: a changed file becomes a new document, and the old one is marked as
superseded until no published generation names its chunks. A reader of the published generation therefore finds every
passage that it names, even during a write. Contexts (`context_rows.py`) and vectors (`vector_rows.py`) are stored under
a key of everything they depend on, so the same one is never made twice. Both are slow to make: each commit is on the
disk before the next step, and each row has a checksum.
"""

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from filelock import FileLock, Timeout

from local_rag.asking import Filters
from local_rag.document_records import UNKNOWN, Chunk, Document, Note, Provenance
from local_rag.errors import LibraryError
from local_rag.files import FileStamp, no_library
from local_rag.index.protocol import AllowedDocuments
from local_rag.keys import key_of
from local_rag.passage_records import DocumentFacts, RowKind, StoredChunk
from local_rag.store.connect import OWN_FILES, connect, in_use, is_library
from local_rag.store.schema import transaction
from local_rag.store.storage_errors import storage_errors


class StoredDocument(NamedTuple):
    """What the store knows of a document, without its text; the stamp is that of the file that was read."""

    id: int
    path: str
    stamp: FileStamp
    sha256: str
    title: str
    split_key: str


@dataclass(frozen=True, slots=True)
class UnreadFile:
    """A file that could not be read: its stamp then, and why; no `split_key` if another attempt may succeed.

    `waiting` is the number of its pages that wait for OCR.
    """

    stamp: FileStamp
    reason: str
    split_key: str
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """What a document is called by."""

    id: int
    path: str
    title: str
    tags: tuple[str, ...]


# At a path or below it; ?1 is the path.
BELOW = "(path = ?1 OR substr(path, 1, length(?1) + 1) = ?1 || '/')"
DOCUMENT_COLUMNS = "documents.id, path, size, modified_ns, changed_ns, inode, sha256, title, split_key"
_DOCUMENT_QUERY = f"SELECT {DOCUMENT_COLUMNS} FROM documents"  # noqa: S608
CHUNK_QUERY = """
SELECT chunks.id, document_id, path, title, position, start, end, chunks.text, headings, page, line, end_line,
       table_header, ocr, coalesce(label, ''), coalesce(said.text, ''), coalesce(written.text, ''), chunks.kind,
       url, date, author, tags, sha256
FROM chunks JOIN documents ON documents.id = document_id LEFT JOIN contexts AS said ON said.key = context_key
LEFT JOIN contexts AS written ON written.key = sentence_key
LEFT JOIN provenance USING (document_id)
LEFT JOIN page_labels USING (document_id, page)
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
        with nullcontext() if self.connection.in_transaction else transaction(self.connection, keep=keep):
            yield

    def column(self, query: str, *parameters: object) -> list[Any]:
        """Return the first column of all rows that a query finds."""
        return [row[0] for row in self.connection.execute(query, parameters)]

    def value(self, query: str, *parameters: object) -> Any:
        """Return the first column of the row that a query certainly finds."""
        return self.connection.execute(query, parameters).fetchone()[0]

    def roots(self) -> list[Path]:
        """Return the paths that `index` was given."""
        return list(map(Path, self.column("SELECT path FROM roots ORDER BY path")))

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

    def remembered(self, name: str) -> Any:
        """Return what is remembered under a name, None if nothing is."""
        values = self.column("SELECT value FROM remembered WHERE name = ?", name)
        return json.loads(values[0]) if values else None

    def put_unread(self, looked_at: Iterable[str], unread: Mapping[str, UnreadFile]) -> None:
        """Replace what is known of unreadable files among those looked at."""
        rows = [(path, *file.stamp, file.reason, file.split_key, file.waiting) for path, file in unread.items()]
        with self.transaction():
            self.connection.executemany("DELETE FROM skipped WHERE path = ?", [(path,) for path in looked_at])
            self.connection.executemany("INSERT OR REPLACE INTO skipped VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def unread(self) -> dict[str, UnreadFile]:
        """Return the files that could not be read, by path."""
        rows = self.connection.execute("SELECT * FROM skipped ORDER BY path")
        return {path: UnreadFile(FileStamp(*known[:4]), *known[4:]) for path, *known in rows}

    def excluded(self) -> list[Path]:
        """Return the paths below a root that were removed from the library."""
        return list(map(Path, self.column("SELECT path FROM excluded ORDER BY path")))

    def documents(self) -> list[StoredDocument]:
        """Return all live documents."""
        return self.select_documents("live")

    def named_documents(self, ids: Collection[int]) -> list[NamedDocument]:
        """Return the documents with these ids, by path."""
        rows = self.connection.execute(
            "SELECT id, path, title, coalesce(tags, '[]') FROM documents LEFT JOIN provenance ON document_id = id "
            "ORDER BY path, id"
        )
        return [
            NamedDocument(key, path, title, tuple(json.loads(tags))) for key, path, title, tags in rows if key in ids
        ]

    def documents_after(self, path: str) -> Iterator[StoredDocument]:
        """Yield the live documents with a path after this one, by path."""
        rows = self.connection.execute(f"{_DOCUMENT_QUERY} WHERE live AND path > ? ORDER BY path", (path,))
        return (stored_document(row) for row in rows)

    def live_ids(self) -> list[int]:
        """Return the ids of all live documents."""
        return self.column("SELECT id FROM documents WHERE live ORDER BY id")

    def holds(self, sha256: str, path: str) -> bool:
        """Say whether a live document has this content or this path."""
        query = "SELECT 1 FROM documents WHERE live AND (sha256 = ? OR path = ?) LIMIT 1"
        return bool(self.column(query, sha256, path))

    def document(self, document_id: int) -> StoredDocument | None:
        """Return a live or superseded document; None if it was deleted."""
        return next(iter(self.select_documents("id = ?", document_id)), None)

    def document_text(self, document_id: int) -> str:
        """Return the text of a document."""
        return str(self.value("SELECT text FROM document_texts WHERE document_id = ?", document_id))

    def document_beginning(self, document_id: int, characters: int) -> str:
        """Return the first characters of a document's text."""
        query = "SELECT substr(text, 1, ?2) FROM document_texts WHERE document_id = ?1"
        return str(self.value(query, document_id, characters))

    def document_kind(self, document_id: int) -> str:
        """Return the kind of text that a document is."""
        return str(self.value("SELECT kind FROM documents WHERE id = ?", document_id))

    def put_document(
        self, document: Document, chunks: Sequence[Chunk], *, size: int, modified_ns: int, sha256: str, split_key: str
    ) -> int:
        """Store a document with its chunks, superseding the one of the same path; return its id."""
        return self.put_documents([(document, chunks, (FileStamp(size, modified_ns), sha256, split_key))])[0]

    def put_documents(self, read: Iterable[tuple[Document, Sequence[Chunk], tuple[FileStamp, str, str]]]) -> list[int]:
        """Store documents like `put_document`, in one commit, each with (stamp, SHA-256, split key) of its file."""
        with self.transaction():
            return [self._put_document(*document) for document in read]

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
                content_key_of(sha256, split_key, document.title),
            ),
        )
        identifier = int(cursor.lastrowid or 0)
        self.connection.execute("INSERT INTO document_texts VALUES (?, ?)", (identifier, document.text))
        if origin := document.provenance:
            self.connection.execute(
                "INSERT INTO provenance VALUES (?, ?, ?, ?, ?)",
                (identifier, origin.url, origin.date, origin.author, json.dumps(origin.tags, ensure_ascii=False)),
            )
        self._put_chunks([(identifier, chunk) for chunk in chunks], "chunk")
        return identifier

    def touch_documents(self, stamps: Iterable[tuple[int, FileStamp]]) -> None:
        """Record new stamps of the files of unchanged documents, as (document id, stamp)."""
        rows = [(document, stamp.modified_ns, stamp.changed_ns, stamp.inode) for document, stamp in stamps]
        update = "UPDATE documents SET modified_ns = ?2, changed_ns = ?3, inode = ?4 WHERE id = ?1"
        with self.transaction():
            self.connection.executemany(update, rows)
            self._note_other_facts()

    def ids_at(self, paths: Iterable[str]) -> set[int]:
        """Return the ids of the documents at some paths, superseded ones too."""
        by_path = "SELECT id FROM documents WHERE path = ?1 AND"  # each with an index of its own
        return {key for path in paths for key in self.column(f"{by_path} live UNION ALL {by_path} NOT live", path)}

    def order_by_path(self) -> dict[int, int]:
        """Return the place of each document, superseded ones too, in the order of their paths."""
        return {key: place for place, key in enumerate(self.column("SELECT id FROM documents ORDER BY path"))}

    def supersede(self, documents: Iterable[StoredDocument]) -> None:
        """Mark documents as superseded, so the next generation leaves them out."""
        rows = [(document.id,) for document in documents]
        with self.transaction():
            self.connection.executemany("UPDATE documents SET live = 0 WHERE id = ?", rows)

    def superseded(self) -> list[int]:
        """Return the ids of the superseded documents."""
        return self.column("SELECT id FROM documents WHERE NOT live")

    def superseded_paths(self) -> list[str]:
        """Return the paths of superseded documents at which there is no live one."""
        there = "SELECT 1 FROM documents WHERE live AND path = gone.path"
        return self.column(f"SELECT path FROM documents AS gone WHERE NOT live AND NOT EXISTS ({there})")  # noqa: S608

    def purge(self, published: Iterable[int]) -> None:
        """Delete superseded documents and their distinctions, except those that a published index still holds."""
        gone = [(document,) for document in set(self.superseded()).difference(published)]
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
            self.supersede(documents)
            self.connection.executemany("DELETE FROM roots WHERE path = ?", [(str(path),) for path in roots])
            self.connection.executemany("INSERT OR IGNORE INTO excluded VALUES (?)", [(str(p),) for p in excluded])

    def notes(self) -> list[Note]:
        """Return what could not be read of live documents, and which files wait for OCR, by path."""
        query = (
            "SELECT path, notes FROM documents WHERE live AND notes <> '[]' "
            "UNION ALL SELECT path, json_array(reason) FROM skipped WHERE waiting ORDER BY path"
        )
        return [Note(Path(path), note) for path, notes in self.connection.execute(query) for note in json.loads(notes)]

    def count_waiting(self) -> int:
        """Count the pages that wait for OCR."""
        query = "SELECT (SELECT total(waiting) FROM documents WHERE live) + (SELECT total(waiting) FROM skipped)"
        return int(self.value(query))

    def content_hashes(self) -> set[str]:
        """Return the SHA-256 of the files of all documents, superseded ones too."""
        return set(self.column("SELECT sha256 FROM documents"))

    def count_below(self, path: Path) -> int:
        """Count the live documents at or below a path."""
        return int(self.value(f"SELECT count(*) FROM documents WHERE live AND {BELOW}", str(path)))  # noqa: S608

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
        # Of all roots, also where only some are shown (seen.py).
        roots = tuple(self.column("SELECT path FROM main.roots ORDER BY path"))
        return self.value("SELECT number FROM facts_version"), roots

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
        return str(self.value("SELECT id FROM library"))

    def select(self, filters: Filters) -> None:
        """Return None: the documents that pass are found by their facts."""

    def chunks(self, document_id: int | None = None) -> Iterator[StoredChunk]:
        """Yield the chunks of one document, or of all live documents, in reading order."""
        return (row for row in self.rows(document_id) if row.kind == "chunk")

    def rows(self, document_id: int | None = None) -> Iterator[StoredChunk]:
        """Yield the rows of an index: for each document the row that stands for all of it, then its chunks."""
        if document_id is None:
            return self.select_chunks("live ORDER BY path, position")
        return self.select_chunks("document_id = ? ORDER BY path, position", document_id)

    def first_row(self, document_id: int) -> StoredChunk | None:
        """Return the row that stands for a document, else its first chunk; None if it has neither."""
        return next(self.select_chunks("document_id = ? ORDER BY position LIMIT 1", document_id), None)

    def chunk_at(self, document_id: int, offset: int) -> StoredChunk | None:
        """Return the chunk in which an offset of a document's text lies, else its first one."""
        where = "document_id = ?1 AND chunks.kind = 'chunk'"
        before = self.select_chunks(f"{where} AND start <= ?2 ORDER BY start DESC LIMIT 1", document_id, offset)
        return next(before, None) or next(self.select_chunks(f"{where} ORDER BY start LIMIT 1", document_id), None)

    def select_chunks(self, condition: str, *parameters: object) -> Iterator[StoredChunk]:
        """Yield the rows of an index that meet an SQL condition."""
        return (stored_chunk(row) for row in self.connection.execute(f"{CHUNK_QUERY} WHERE {condition}", parameters))

    def count_chunks(self, document_id: int) -> int:
        """Count the chunks of a document."""
        return int(self.value("SELECT count(*) FROM chunks WHERE document_id = ? AND position >= 0", document_id))

    def chunks_by_id(self, ids: Sequence[int]) -> dict[int, StoredChunk]:
        """Return the chunks with these ids."""
        found = self.select_chunks("chunks.id IN (SELECT value FROM json_each(?))", json.dumps(list(ids)))
        return {chunk.id: chunk for chunk in found}

    def documents_of(self, chunks: Sequence[int]) -> set[int]:
        """Return the documents of some chunks."""
        query = "SELECT DISTINCT document_id FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
        return set(self.column(query, json.dumps(list(chunks))))

    def documents_with_cut_words(self) -> set[int]:
        """Return the documents in which a chunk ends where the next one begins, perhaps within a word."""
        query = (
            "SELECT DISTINCT one.document_id FROM chunks AS one JOIN chunks AS next "
            "ON next.document_id = one.document_id AND next.position = one.position + 1 AND next.start = one.end "
            "WHERE one.kind = 'chunk' AND next.kind = 'chunk'"
        )
        return set(self.column(query))

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
        return str(self.value("SELECT text FROM chunks WHERE id = ?", chunk))

    def put_document_rows(self, rows: Iterable[tuple[int, Chunk]]) -> None:
        """Store the rows that stand for whole documents, each with the id of its document."""
        with self.transaction():
            self._put_chunks([*rows], "document")

    def _put_chunks(self, chunks: Sequence[tuple[int, Chunk]], kind: RowKind) -> None:
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
        labels = [(document, chunk.page, chunk.page_label) for document, chunk in chunks if chunk.page_label]
        self.connection.executemany("INSERT OR IGNORE INTO page_labels VALUES (?, ?, ?)", labels)

    def paths_of_document_rows(self) -> dict[int, str]:
        """Return the path of the document that each such row stands for, superseded ones too."""
        query = "SELECT chunks.id, path FROM chunks JOIN documents ON documents.id = document_id "
        return dict(self.connection.execute(f"{query} WHERE chunks.kind = 'document'").fetchall())

    def select_documents(self, condition: str, *parameters: object) -> list[StoredDocument]:
        """Return the documents that meet an SQL condition, by path."""
        rows = self.connection.execute(f"{_DOCUMENT_QUERY} WHERE {condition} ORDER BY path", parameters)
        return [stored_document(row) for row in rows]


def content_key_of(sha256: str, split_key: str, title: str, audience: str = "") -> str:
    """Return the key of what sets documents of one content apart for those who see them."""
    return key_of(sha256, split_key, title, *([audience] if audience else ()))


def stored_document(row: Sequence[Any]) -> StoredDocument:
    """Make a document of a row with DOCUMENT_COLUMNS."""
    return StoredDocument(row[0], row[1], FileStamp(*row[2:6]), *row[6:9])


def stored_chunk(row: tuple[object, ...]) -> StoredChunk:
    """Make a chunk of a row of CHUNK_QUERY."""
    identifier, document_id, path, title, position, start, end, text, headings, *place = row[:15]
    terms, sentence, kind, url, date, author, tags, sha256 = row[15:]
    origin = UNKNOWN if url is None else Provenance(url, date, author, tuple(json.loads(str(tags))))  # type: ignore[arg-type]
    chunk = Chunk(position, start, end, text, tuple(json.loads(str(headings))), *place)  # type: ignore[arg-type]
    return StoredChunk(identifier, document_id, path, title, chunk, terms, sentence, origin, kind, sha256)  # type: ignore[arg-type]


@contextmanager
def library_lock(folder: Path, *, create: bool = False) -> Iterator[None]:
    """Hold a library's lock, which the system releases when the process ends; `create` makes a missing folder.

    Raises LibraryError if another process holds the lock, or if the folder holds other files and no library.
    """
    if not create and not folder.is_dir():
        raise LibraryError(no_library(folder))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        others = [] if is_library(folder) else [path.name for path in folder.iterdir()]
    except OSError as error:
        raise LibraryError(
            f"The library {folder} cannot be made ({error}); name another folder with `--library`."
        ) from None
    if strangers := sorted(set(others) - OWN_FILES):
        raise LibraryError(
            f"{folder} holds other files ({strangers[0]}) and no library; name an empty or new folder with `--library`."
        )
    owner = folder / "lock.pid"
    with storage_errors(folder):
        lock = FileLock(folder / "lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            pid = owner.read_text().strip() if owner.exists() else ""
            raise LibraryError(
                f"Another local-rag (process {pid or 'unknown'}) is writing to {folder}; wait for it or stop it."
            ) from None
        try:
            with suppress(OSError):  # on a full disk `clean` must work
                owner.write_text(str(os.getpid()))
            yield
        finally:
            lock.release()


@contextmanager
def locked_store(folder: Path, *, create: bool = False) -> Iterator[Store]:
    """Hold a library's lock and yield its store, opened for writing; `create` makes both if they are missing."""
    with library_lock(folder, create=create), closing(Store(folder, create=create, write=True)) as store:
        yield store
