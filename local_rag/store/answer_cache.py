"""Answers that were given, kept beside the library in `history.sqlite3`, to be given again at once.

Generation is greedy: the same prompt gives the same answer. The key is made of all that an answer depends on; with
another index none of the old keys is ever asked for again, so that the answers of older ones are deleted.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from local_rag.store.history import HISTORY_FILE

_KEPT = 1000

ANSWERS_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY,
    made_with TEXT NOT NULL,    -- key of the index that was asked
    answer TEXT NOT NULL
)
"""


class AnswerCache:
    """Keep answers as texts; where the file cannot be read or written, there are none."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / HISTORY_FILE

    def get(self, key: str) -> str | None:
        """Return the answer kept under a key."""
        with suppress(sqlite3.Error), self._connection() as connection:
            row = connection.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
            return str(row[0]) if row else None
        return None

    def put(self, key: str, made_with: str, answer: str) -> None:
        """Keep an answer; delete those made with another index, and the oldest where there are too many."""
        with suppress(sqlite3.Error), self._connection() as connection:
            connection.execute("DELETE FROM answers WHERE made_with <> ?", (made_with,))
            connection.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (key, made_with, answer))
            connection.execute(
                "DELETE FROM answers WHERE rowid <= (SELECT max(rowid) FROM answers) - ?",
                (_KEPT,),
            )

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=5, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete = FAST")
            connection.execute(ANSWERS_TABLE)
            yield connection
