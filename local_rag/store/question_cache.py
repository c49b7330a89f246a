"""What `serve` keeps in the history file beside conversations and answers: vectors of questions, and counts of them."""

import sqlite3
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from local_rag.errors import LibraryError
from local_rag.keys import key_of
from local_rag.store.history_file import HISTORY_FILE, open_history

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
        with suppress(sqlite3.Error, OSError, LibraryError), closing(self._open()) as connection:
            row = connection.execute(query, (_VECTOR, key)).fetchone()
            return row[0] if row and isinstance(row[0], bytes) else None
        return None

    def put(self, question: str, vector: bytes) -> None:
        """Keep the vector of a question, unless the file cannot be written; the oldest of too many are deleted."""
        row = (_VECTOR, key_of(self._made_with, question), self._made_with, vector)
        oldest = "SELECT rowid FROM cached WHERE kind = ? ORDER BY rowid DESC LIMIT -1 OFFSET ?"
        with suppress(sqlite3.Error, OSError, LibraryError), closing(self._open()) as connection:
            connection.execute("DELETE FROM cached WHERE kind = ? AND made_with <> ?", (_VECTOR, self._made_with))
            connection.execute("INSERT OR REPLACE INTO cached VALUES (?, ?, ?, ?)", row)
            connection.execute(f"DELETE FROM cached WHERE rowid IN ({oldest})", (_VECTOR, _MOST_CACHED))  # noqa: S608

    def _open(self) -> sqlite3.Connection:
        return open_history(self._folder, _CACHE_TIMEOUT)


@dataclass(frozen=True, slots=True)
class Usage:
    """The questions of the last thirty days, without their text; `median_seconds` is 0 if there were none."""

    questions: int = 0
    refused: int = 0
    median_seconds: float = 0.0


def count_use(folder: Path, *, answered: bool, seconds: float) -> None:
    """Count a question, unless the file cannot be written."""
    with suppress(sqlite3.Error, OSError, LibraryError), closing(open_history(folder, _COUNT_TIMEOUT)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM uses WHERE at < ?", (time.time() - _DAYS * _DAY,))
        connection.execute("INSERT INTO uses VALUES (?, ?, ?)", (time.time(), answered, seconds))
        connection.execute("COMMIT")


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
