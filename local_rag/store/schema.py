"""The tables of a library, as the steps that lead from each schema version to the next.

A new library takes all steps, an older one those it lacks: what a step says may therefore never be changed, only
followed by another. `PRAGMA user_version` counts the steps taken.
"""

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from local_rag.errors import LibraryError

STEPS = (
    """
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
""",
    # 2: `vector_key` tells `clean` which vectors are in use, a checksum tells `repair` which rows are as they were
    # written; `excluded` are paths below a root that were removed, `skipped` files that could not be read.
    """
ALTER TABLE chunks ADD COLUMN vector_key TEXT;
ALTER TABLE contexts ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE contexts SET checksum = crc32(CAST(kind AS BLOB), CAST(text AS BLOB));
ALTER TABLE vectors ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE vectors SET checksum = crc32(vector);
CREATE TABLE excluded (path TEXT PRIMARY KEY);
CREATE TABLE skipped (
    path TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    reason TEXT NOT NULL
);
""",
    # 3: `device` tells a root from the empty place where it was mounted; `split_key` says under which reader a file
    # could not be read, empty where another try may help; `remembered` are the settings of the last `index`.
    """
ALTER TABLE roots ADD COLUMN device INTEGER;
ALTER TABLE skipped ADD COLUMN split_key TEXT NOT NULL DEFAULT '';
CREATE TABLE remembered (name TEXT PRIMARY KEY, value TEXT NOT NULL);
""",
    # 4: `note` says what of a file could not be read.
    """
ALTER TABLE documents ADD COLUMN note TEXT NOT NULL DEFAULT '';
""",
    # 5: what documents say of themselves, apart from their texts, which would have to be passed over to get there.
    """
CREATE TABLE provenance (
    document_id INTEGER PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
    url TEXT NOT NULL,
    date TEXT NOT NULL,                 -- YYYY-MM-DD, or empty
    author TEXT NOT NULL,
    tags TEXT NOT NULL                  -- JSON
);
""",
    # 6: what was said of a document when it was first compared with others (indexing/distinction.py), NULL before.
    """
ALTER TABLE documents ADD COLUMN told TEXT;
""",
    # 7: `made` says what of a document is ready to be published, so that nothing is looked at again that has not
    # changed; and what is asked of all documents is answered from indexes, without passing over their texts.
    """
CREATE TABLE made (
    document_id INTEGER PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
    plan TEXT NOT NULL,                 -- what decides which vectors its chunks want, empty until all are stored
    version INTEGER NOT NULL,           -- of what an index holds of the document
    chunks INTEGER NOT NULL,
    generated INTEGER NOT NULL          -- of these, with a generated context
);
CREATE INDEX live_documents ON documents (path, size, modified_ns, sha256, title, split_key, live) WHERE live;
CREATE INDEX superseded_documents ON documents (id) WHERE NOT live;
CREATE INDEX chunks_by_context ON chunks (context_key) WHERE context_key IS NOT NULL;
""",
    # 8: a row may stand for a whole document instead of a part of it.
    """
ALTER TABLE chunks ADD COLUMN kind TEXT NOT NULL DEFAULT 'chunk';
CREATE UNIQUE INDEX document_rows ON chunks (document_id) WHERE kind = 'document';
""",
    # 9: what was said of the same content, or of the same path before, and which documents nothing was said of or lack
    # a plan, is found without passing over all texts.
    """
CREATE INDEX context_plans ON documents (context_plan, live) WHERE live;
CREATE INDEX untold_documents ON documents (context_plan, live, told) WHERE live AND told IS NULL;
CREATE INDEX documents_by_content ON documents (sha256);
CREATE INDEX superseded_paths ON documents (path) WHERE NOT live;
""",
)
SCHEMA_VERSION = len(STEPS)


def crc32(*values: str | bytes) -> int:
    """Return the checksum that the columns `checksum` hold."""
    return zlib.crc32(b"".join(value.encode() if isinstance(value, str) else value for value in values))


def schema_version(connection: sqlite3.Connection) -> int:
    """Return how many steps a database has taken, 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def refuse_newer(connection: sqlite3.Connection, path: Path) -> None:
    """Raise LibraryError for a database that a newer local-rag has made."""
    if (version := schema_version(connection)) > SCHEMA_VERSION:
        raise LibraryError(
            f"{path} has schema version {version} and this local-rag knows version {SCHEMA_VERSION}; use the "
            "local-rag that made it, or another folder with `--library`."
        )


def migrate(connection: sqlite3.Connection, steps: Sequence[str] = STEPS) -> None:
    """Take the steps that a database still lacks, all or none."""
    connection.create_function("crc32", -1, crc32, deterministic=True)
    if schema_version(connection) >= len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Asked again: another process may have taken the steps in the meantime.
        for step in steps[schema_version(connection) :]:
            for statement in _statements(step):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(step: str) -> Iterator[str]:
    """Cut a step into its statements."""
    statement = ""
    for line in step.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        raise ValueError(f"the step ends without a semicolon: {statement.strip()!r}")
