"""The tables of a library's SQLite file, and the check that a file has them."""

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local_rag.errors import LibraryError

STORE_FILE = "library.sqlite3"
# Raise it with every change to the tables. Versions 1 to 16 were never released.
SCHEMA_VERSION = 17
_TABLES = """
-- Tells the library from every other one, also in a search engine.
CREATE TABLE library (id TEXT NOT NULL);
INSERT INTO library VALUES (lower(hex(randomblob(16))));
CREATE TABLE roots (
    path TEXT PRIMARY KEY,
    device INTEGER                      -- tells the root from the empty folder on which its drive is mounted
);
-- Folders below a root on which another disk was mounted when they were last seen.
CREATE TABLE mounts (path TEXT PRIMARY KEY, device INTEGER NOT NULL);
-- Paths below a root that were removed from the library; those of erased documents are hidden (erasing.py).
CREATE TABLE excluded (path TEXT PRIMARY KEY);
-- What is to be erased, by path or by content, until nothing of it is left; a row without both: the file is to be
-- rewritten, because it may still hold the other rows.
CREATE TABLE erasing (path TEXT NOT NULL, sha256 TEXT NOT NULL, PRIMARY KEY (path, sha256));
CREATE TABLE skipped (
    path TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    changed_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    reason TEXT NOT NULL,
    split_key TEXT NOT NULL,            -- under which reading failed; empty if another attempt may succeed
    waiting INTEGER NOT NULL            -- pages that wait for OCR
);
-- The settings of the last `index`, as JSON.
CREATE TABLE remembered (name TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again: other programs may know it
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    changed_ns INTEGER NOT NULL,        -- 0 if only the content tells whether the file has changed (files.py)
    inode INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    title TEXT NOT NULL,
    kind TEXT NOT NULL,
    split_key TEXT NOT NULL,            -- chunker, sizes and tokenizer that made the chunks
    context_plan TEXT NOT NULL DEFAULT '',  -- code that said what distinguishes the document; empty: none yet
    sentence_plan TEXT NOT NULL DEFAULT '', -- model, prompt and window of the chunks' sentences; empty: not planned
    live INTEGER NOT NULL DEFAULT 1,    -- 0: superseded, kept until no published generation names it
    notes TEXT NOT NULL,                -- JSON: what of the file is not in the text
    waiting INTEGER NOT NULL,           -- pages that wait for OCR
    content_key TEXT NOT NULL           -- what its distinction is stored under, for who sees it
);
CREATE UNIQUE INDEX live_paths ON documents (path) WHERE live;
CREATE INDEX superseded_paths ON documents (path) WHERE NOT live;
CREATE INDEX documents_by_content ON documents (content_key);
CREATE INDEX context_plans ON documents (context_plan) WHERE live;

-- Counts the changes to paths and times of documents: to what they are filtered by. All else of a document is fixed.
CREATE TABLE facts_version (number INTEGER NOT NULL);
INSERT INTO facts_version VALUES (0);
-- Apart from the documents: a long text would be written again with every change of its row.
CREATE TABLE document_texts (
    document_id INTEGER PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
    text TEXT NOT NULL
);
-- What sets documents apart (indexing/distinction.py), fixed once it is computed.
CREATE TABLE distinctions (
    content_key TEXT PRIMARY KEY,
    distinction TEXT NOT NULL,
    checksum INTEGER NOT NULL
);
CREATE TABLE provenance (
    document_id INTEGER PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
    url TEXT NOT NULL,
    date TEXT NOT NULL,                 -- YYYY-MM-DD, or empty
    author TEXT NOT NULL,
    tags TEXT NOT NULL                  -- JSON
);
-- By what the versions of a document are recognised (indexing/document_rows.py).
CREATE TABLE version_keys (
    document_id INTEGER PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    dated TEXT NOT NULL,                -- YYYY-MM-DD, or empty
    sketch BLOB NOT NULL
);
CREATE INDEX versions_by_name ON version_keys (name);
CREATE INDEX versions_by_title ON version_keys (title);
CREATE TABLE embedding_plans (
    document_id INTEGER PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
    plan TEXT NOT NULL,                 -- decides which vectors the chunks want; empty until all are stored
    version INTEGER NOT NULL,           -- of what an index holds of the document
    chunks INTEGER NOT NULL,
    generated INTEGER NOT NULL          -- of these, with a generated context
);

CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again: other programs may know it
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    start INTEGER NOT NULL,
    end INTEGER NOT NULL,
    text TEXT NOT NULL,
    headings TEXT NOT NULL,             -- JSON
    page INTEGER,
    line INTEGER,
    end_line INTEGER,
    table_header TEXT NOT NULL,         -- of the table within which the chunk begins, or empty
    ocr REAL,                           -- confidence with which the page was read by OCR; NULL if it was not
    context_key TEXT,                   -- what code says of it
    need REAL,                          -- of a sentence by a model; NULL if it needs none
    sentence_key TEXT,                  -- what a model says of it, perhaps not yet
    vector_key TEXT,
    kind TEXT NOT NULL DEFAULT 'chunk'  -- or 'document': the row stands for a whole document
);
CREATE INDEX chunks_of_document ON chunks (document_id, position);
CREATE INDEX chunks_by_context ON chunks (context_key) WHERE context_key IS NOT NULL;
CREATE INDEX chunks_by_sentence ON chunks (sentence_key) WHERE sentence_key IS NOT NULL;
CREATE INDEX chunks_in_need ON chunks (document_id, need, sentence_key) WHERE need IS NOT NULL;
CREATE UNIQUE INDEX document_rows ON chunks (document_id) WHERE kind = 'document';

-- Means of the vectors of groups of consecutive chunks (store/vector_rows.py).
CREATE TABLE mean_vectors (
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,          -- of the first chunk of the group
    embedder TEXT NOT NULL,             -- that made the vectors
    vector BLOB NOT NULL,
    PRIMARY KEY (document_id, position)
);

-- The two large caches. A checksum tells `repair` which rows are as they were written.
CREATE TABLE contexts (
    key TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    kind TEXT NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE vectors (key TEXT PRIMARY KEY, vector BLOB NOT NULL, checksum INTEGER NOT NULL);
-- The cells of extracted tables, by the document and all else that a cell depends on (cell_rows.py).
CREATE TABLE cells (
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    asked TEXT NOT NULL,
    cell TEXT NOT NULL,                 -- JSON
    checksum INTEGER NOT NULL,
    PRIMARY KEY (path, sha256, asked)
);
-- What people have typed into cells, each for those who see the same of the library.
CREATE TABLE corrections (
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    audience TEXT NOT NULL,             -- a key of the limits, empty for who sees everything
    asked TEXT NOT NULL,
    cell TEXT NOT NULL,                 -- JSON
    checksum INTEGER NOT NULL,
    PRIMARY KEY (path, sha256, audience, asked)
);
-- Tables that are kept to be run again, each of a person; JSON.
CREATE TABLE saved_tables (
    id TEXT PRIMARY KEY,
    person TEXT NOT NULL,
    name TEXT NOT NULL,
    saved TEXT NOT NULL
);
-- The tables of documents as typed rows (store/relation_rows.py).
CREATE TABLE relations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    sheet TEXT NOT NULL,
    cells TEXT NOT NULL,                -- the range in the sheet, or empty
    page INTEGER,
    columns TEXT NOT NULL,              -- JSON: columns and remarks
    rows INTEGER NOT NULL,
    totals INTEGER NOT NULL,            -- rows that sum others
    words TEXT NOT NULL                 -- by which it is found, with blanks between
);
CREATE INDEX relations_of_document ON relations (document_id);
CREATE TABLE relation_blocks (
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    relation_id INTEGER NOT NULL REFERENCES relations (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    data BLOB NOT NULL,                 -- rows as compressed JSON
    PRIMARY KEY (relation_id, position)
);
CREATE INDEX blocks_of_document ON relation_blocks (document_id);
-- Names of documents beside those of their files, and where documents link to (store/related_documents.py).
CREATE TABLE document_names (
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (document_id, name)
);
CREATE TABLE document_links (
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    key TEXT NOT NULL,                  -- by what the target is looked for
    PRIMARY KEY (document_id, position)
);
CREATE INDEX links_by_key ON document_links (key);
CREATE INDEX names_by_key ON document_names (key);
"""
# Added to this version later: a library that lacks it gets it when it is next written, and reads as if it held nothing.
_ADDED = """
CREATE {kind} IF NOT EXISTS page_labels (
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    page INTEGER NOT NULL,
    label TEXT NOT NULL,                -- that the file gives the page, if it is not its number
    PRIMARY KEY (document_id, page)
) WITHOUT ROWID
"""


def crc32(*values: str | bytes) -> int:
    """Return the checksum that the columns `checksum` hold."""
    return zlib.crc32(b"".join(value.encode() if isinstance(value, str) else value for value in values))


@contextmanager
def transaction(connection: sqlite3.Connection, *, keep: bool = True) -> Iterator[sqlite3.Connection]:
    """Write all or nothing; without `keep`, nothing is written in the end."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT" if keep else "ROLLBACK")
    except BaseException:
        # SQLite itself rolls back when the disk is full or fails.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def schema_version(connection: sqlite3.Connection) -> int:
    """Return the schema version of a database, 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def require_version(connection: sqlite3.Connection, path: Path) -> None:
    """Raise LibraryError for a database that is neither empty nor of this schema version."""
    if (version := schema_version(connection)) > SCHEMA_VERSION:
        raise LibraryError(
            f"{path} has schema version {version} and this local-rag knows version {SCHEMA_VERSION}; use the "
            "local-rag that made it, or another folder with `--library`."
        )
    complete = "SELECT 1 FROM sqlite_master WHERE name = 'corrections'"  # some of this version had fewer tables
    if version and (version < SCHEMA_VERSION or connection.execute(complete).fetchone() is None):
        raise LibraryError(
            f"{path} has schema version {version}, which this local-rag no longer reads; delete {path.parent} and make "
            "the library again with `local-rag index PATH`."
        )


def create_tables(connection: sqlite3.Connection) -> None:
    """Create all tables in an empty database, all or none; leave any other database as it is."""
    connection.create_function("crc32", -1, crc32, deterministic=True)
    if schema_version(connection):
        return
    with transaction(connection):
        if not schema_version(connection):  # asked again: another process may have created them in the meantime
            for statement in (*_TABLES.split(";\n"), _ADDED.format(kind="TABLE")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def add_later_tables(connection: sqlite3.Connection, *, write: bool) -> None:
    """Add what was added to the tables of this version; of a database that is only read, for this connection."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'page_labels'").fetchone():
        connection.execute(_ADDED.format(kind="TABLE" if write else "TEMPORARY TABLE"))
