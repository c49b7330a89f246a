"""What was asked on the page and answered, kept beside the library in `history.sqlite3` until it is forgotten."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from local_rag.store.answer_cache import ANSWERS_TABLE
from local_rag.store.history import HISTORY_FILE

_TABLE = """
CREATE TABLE IF NOT EXISTS asked (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    asked_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ')),
    question TEXT NOT NULL,
    answer TEXT NOT NULL        -- with its passages, as JSON
)
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and what was answered; `at` is in UTC."""

    id: int
    at: str
    question: str
    answer: str


class AskedQuestions:
    """Keep questions with their answers; where the file cannot be read or written, there are none."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / HISTORY_FILE

    def add(self, question: str, answer: str) -> None:
        """Keep a question and its answer."""
        with suppress(sqlite3.Error), self._connection() as connection:
            connection.execute("INSERT INTO asked (question, answer) VALUES (?, ?)", (question, answer))

    def latest(self, count: int, before: int | None = None) -> list[Asked]:
        """Return the latest questions, newest first, or those before one."""
        query = "SELECT id, asked_at, question, answer FROM asked WHERE id < ? ORDER BY id DESC LIMIT ?"
        with suppress(sqlite3.Error), self._connection() as connection:
            return [Asked(*row) for row in connection.execute(query, (before or 2**62, count))]
        return []

    def get(self, identifier: int) -> Asked | None:
        """Return a question, None where it was forgotten."""
        query = "SELECT id, asked_at, question, answer FROM asked WHERE id = ?"
        with suppress(sqlite3.Error), self._connection() as connection:
            row = connection.execute(query, (identifier,)).fetchone()
            return Asked(*row) if row else None
        return None

    def forget(self, identifier: int | None = None) -> None:
        """Forget a question, or all of them, with nothing left in the file; raise OSError where that fails."""
        try:
            with self._connection() as connection:
                connection.execute("DELETE FROM asked WHERE ?1 IS NULL OR id = ?1", (identifier,))
                connection.execute(ANSWERS_TABLE)
                connection.execute("DELETE FROM answers")  # of which one may be this question's
                connection.execute("VACUUM")
        except sqlite3.Error as error:
            raise OSError(str(error)) from None

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=5, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute(_TABLE)
            yield connection
