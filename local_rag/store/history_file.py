"""The file `history.sqlite3` beside a library: what it holds, and how it is opened.

It is written while questions are asked, never needed, and may be deleted at any time. Its owner alone may read it.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from local_rag.errors import DamagedLibraryError, LibraryError
from local_rag.keys import key_of
from local_rag.store.schema import transaction
from local_rag.store.storage_errors import storage_errors

HISTORY_FILE = "history.sqlite3"
ASKED_BY = "asked by "  # before a person in the table `forgotten`: one of the conversations was forgotten
_VERSION = 7  # of the tables
_TABLES = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS conversations (
    number INTEGER PRIMARY KEY,         -- orders them
    id TEXT NOT NULL UNIQUE,            -- random: it cannot be guessed, and none is used twice
    started TEXT NOT NULL,
    title TEXT NOT NULL DEFAULT '',     -- given by its owner; else its first question stands for it
    person TEXT NOT NULL                -- id of whom it belongs to; empty: of who serves the library
);
CREATE TABLE IF NOT EXISTS turns (
    id INTEGER PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    opens INTEGER NOT NULL,             -- 1: a new subject begins with this question
    question TEXT NOT NULL,
    answer TEXT NOT NULL,
    asked TEXT NOT NULL,                -- local time
    found INTEGER NOT NULL,             -- how many passages were found, of which those that were read are kept
    whole TEXT NOT NULL                 -- JSON: the answer with the passages that were read for it
);
CREATE INDEX IF NOT EXISTS turns_of_conversation ON turns (conversation_id);
-- The documents whose text is in a turn; of those that are only named in it, the SHA-256 is empty.
CREATE TABLE IF NOT EXISTS quoted (
    turn_id INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    path TEXT NOT NULL,                 -- today's: it follows files that move
    PRIMARY KEY (turn_id, sha256, path)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS cached (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    made_with TEXT NOT NULL,
    value NOT NULL,
    PRIMARY KEY (kind, key)
);
CREATE TABLE IF NOT EXISTS uses (at REAL NOT NULL, answered INTEGER NOT NULL, seconds REAL NOT NULL);
-- The questions of a file; their answers are the turns of the conversation.
CREATE TABLE IF NOT EXISTS question_lists (
    conversation_id TEXT PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
    questions TEXT NOT NULL,            -- JSON
    options TEXT NOT NULL               -- JSON: how they are asked
);
-- What a person has written in the place of the answer to a question of a file.
CREATE TABLE IF NOT EXISTS corrections (
    turn_id INTEGER PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
    answer TEXT NOT NULL,
    writer TEXT NOT NULL,               -- name of the person; empty: who serves the library
    written TEXT NOT NULL               -- local time
);
-- The conversations that stand above the others.
CREATE TABLE IF NOT EXISTS pinned (
    conversation_id TEXT PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE
);
-- What part of the library a question was asked of; of one about everything there is none.
CREATE TABLE IF NOT EXISTS scopes (
    turn_id INTEGER PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
    filters TEXT NOT NULL               -- JSON
);
-- How often everything was forgotten or a document erased: what was asked before that is not kept after it.
CREATE TABLE IF NOT EXISTS epoch (number INTEGER NOT NULL);
INSERT INTO epoch SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM epoch);
-- How often everything of a person was forgotten; `person` is as in `conversations`.
CREATE TABLE IF NOT EXISTS forgotten (person TEXT PRIMARY KEY, number INTEGER NOT NULL);
-- What was asked, through whatever interface, and whether the answer was marked as right (asked_questions.py).
CREATE TABLE IF NOT EXISTS asked (
    id INTEGER PRIMARY KEY,
    person TEXT NOT NULL,               -- as in `conversations`
    limits TEXT NOT NULL,               -- key of what the person may see; empty: everything
    question TEXT NOT NULL,
    words TEXT NOT NULL,                -- by which the same question is recognised; empty for a follow-up
    asked TEXT NOT NULL,                -- local time
    outcome TEXT NOT NULL,
    recipe TEXT NOT NULL,               -- key of the model and its prompt; empty: none took part
    log_odds REAL,                      -- of the model that its answer is right
    reader_log_odds REAL,
    probability REAL,
    threshold REAL,                     -- least probability that was answered then
    mark TEXT NOT NULL DEFAULT '',      -- right or wrong
    marked INTEGER NOT NULL DEFAULT 0   -- orders the marks
);
CREATE INDEX IF NOT EXISTS asked_by_words ON asked (words, limits);
-- The documents that were read for an answer, those that it cites first, each with the span of the passage.
CREATE TABLE IF NOT EXISTS asked_documents (
    asked_id INTEGER NOT NULL REFERENCES asked (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    sha256 TEXT NOT NULL,               -- empty if the document is only named
    path TEXT NOT NULL,
    is_cited INTEGER NOT NULL,
    start INTEGER NOT NULL,
    end INTEGER NOT NULL,
    place TEXT NOT NULL,                -- what of it: lines as :12-15, or empty
    PRIMARY KEY (asked_id, position)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS asked_by_document ON asked_documents (sha256, path);
-- From which probability on answers are given, as marks have shown; JSON. It is made of the marks and goes with them.
CREATE TABLE IF NOT EXISTS gates (
    limits TEXT NOT NULL,
    recipe TEXT NOT NULL,
    gate TEXT NOT NULL,
    PRIMARY KEY (limits, recipe)
);
PRAGMA user_version = 7;
COMMIT;
"""


def is_writable(folder: Path) -> bool:
    """Say whether the history in a folder can be written, or made if it is missing."""
    present = (path for path in (folder, folder / HISTORY_FILE) if path.exists())
    return folder.is_dir() and all(os.access(path, os.W_OK) for path in present)


def open_history(folder: Path, timeout: float = 30.0) -> sqlite3.Connection:
    """Open the history in a folder, which is made if it is missing; raise LibraryError for that of another version."""
    path = folder / HISTORY_FILE
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if path.stat().st_mode & 0o077 and path.stat().st_uid == os.getuid():
        path.chmod(0o600)
    return _with_tables(sqlite3.connect(path, timeout, isolation_level=None, check_same_thread=False), path)


def open_in_memory() -> sqlite3.Connection:
    """Open an empty history that lasts as long as the connection; one thread at a time may use it."""
    memory = Path(":memory:")
    return _with_tables(sqlite3.connect(memory, isolation_level=None, check_same_thread=False), memory)


def _with_tables(connection: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        is_new = version == 0 and not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        if is_new:
            connection.executescript(_TABLES)
        elif version != _VERSION:
            raise LibraryError(
                f"{path} was written by another version of local-rag; delete it: it holds only conversations, cached "
                "answers and counts."
            )
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def history_errors(folder: Path) -> Iterator[None]:
    """Raise a LibraryError in place of errors of SQLite and the file system."""
    try:
        with storage_errors(folder, lambda _folder: True):  # nothing is lost with this file
            yield
    except DamagedLibraryError as error:
        reason = f"{folder / HISTORY_FILE} is damaged ({error.__cause__})"
        remedy = "delete it: it holds only conversations, cached answers and counts"
        raise DamagedLibraryError(reason, remedy) from error


_VECTOR = "vector"  # the kind of a cached vector
_MOST_CACHED = 1000  # vectors
_CACHE_TIMEOUT, _COUNT_TIMEOUT = 5.0, 1.0  # seconds to wait for another process that writes
_DAYS = 30
_DAY = 86_400


class QuestionVectors:
    """The vectors of questions, as bytes; `made_with` names everything that shapes them except the question.

    Vectors made with another embedder are deleted, because their keys are never asked for again.
    """

    def __init__(self, folder: Path, made_with: str) -> None:
        self._folder, self._made_with = folder, made_with

    def get(self, question: str) -> bytes | None:
        """Return the vector of a question, None if none is kept."""
        query, key = "SELECT value FROM cached WHERE kind = ? AND key = ?", key_of(self._made_with, question)
        wrong = suppress(sqlite3.Error, OSError, LibraryError)
        with wrong, closing(open_history(self._folder, _CACHE_TIMEOUT)) as connection:
            row = connection.execute(query, (_VECTOR, key)).fetchone()
            return row[0] if row and isinstance(row[0], bytes) else None
        return None

    def put(self, question: str, vector: bytes) -> None:
        """Keep the vector of a question, unless the file cannot be written; the oldest of too many are deleted."""
        row = (_VECTOR, key_of(self._made_with, question), self._made_with, vector)
        oldest = "SELECT rowid FROM cached WHERE kind = ? ORDER BY rowid DESC LIMIT -1 OFFSET ?"
        wrong = suppress(sqlite3.Error, OSError, LibraryError)
        with wrong, closing(open_history(self._folder, _CACHE_TIMEOUT)) as connection:
            connection.execute("DELETE FROM cached WHERE kind = ? AND made_with <> ?", (_VECTOR, self._made_with))
            connection.execute("INSERT OR REPLACE INTO cached VALUES (?, ?, ?, ?)", row)
            connection.execute(f"DELETE FROM cached WHERE rowid IN ({oldest})", (_VECTOR, _MOST_CACHED))  # noqa: S608


@dataclass(frozen=True, slots=True)
class Usage:
    """The questions of the last thirty days, without their text; `median_seconds` is 0 if there were none."""

    questions: int = 0
    refused: int = 0
    median_seconds: float = 0.0


def count_use(folder: Path, *, answered: bool, seconds: float) -> None:
    """Count a question, unless the file cannot be written."""
    wrong = suppress(sqlite3.Error, OSError, LibraryError)
    with wrong, closing(open_history(folder, _COUNT_TIMEOUT)) as connection, transaction(connection):
        put_use(connection, answered=answered, seconds=seconds)


def put_use(connection: sqlite3.Connection, *, answered: bool, seconds: float) -> None:
    """Count a question in a transaction that is open."""
    connection.execute("DELETE FROM uses WHERE at < ?", (time.time() - _DAYS * _DAY,))
    connection.execute("INSERT INTO uses VALUES (?, ?, ?)", (time.time(), answered, seconds))


def usage_of(folder: Path) -> Usage:
    """Return the counts of the last thirty days; nothing is written."""
    if not (folder / HISTORY_FILE).exists():
        return Usage()
    address = f"{(folder / HISTORY_FILE).resolve().as_uri()}?mode=ro"
    with suppress(sqlite3.Error), closing(sqlite3.connect(address, uri=True)) as connection:
        since = time.time() - _DAYS * _DAY
        rows = connection.execute("SELECT answered, seconds FROM uses WHERE at >= ?", (since,)).fetchall()
        return Usage(len(rows), sum(not answered for answered, _ in rows), median([s for _, s in rows] or [0.0]))
    return Usage()
