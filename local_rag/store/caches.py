"""What a server need not make twice, kept beside the library in `history.sqlite3`: answers, and vectors of questions.

Generation is greedy: the same prompt gives the same answer, and the same text the same vector. The key is made of all
that either depends on; with another index none of the old keys is ever asked for again, so that what was made with
older ones is deleted.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from local_rag.keys import key_of
from local_rag.store.history import HISTORY_FILE

_KEPT = 1000  # of each kind
_TABLE = """
CREATE TABLE IF NOT EXISTS cached (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    made_with TEXT NOT NULL,
    value NOT NULL,
    PRIMARY KEY (kind, key)
)
"""


class _Cache:
    """Keep values of a kind by key; where the file cannot be read or written, there are none."""

    kind: str

    def __init__(self, folder: Path) -> None:
        self._path = folder / HISTORY_FILE

    def _get(self, key: str) -> str | bytes | None:
        query = "SELECT value FROM cached WHERE kind = ? AND key = ?"
        with suppress(sqlite3.Error), self._connection() as connection:
            row = connection.execute(query, (self.kind, key)).fetchone()
            return row[0] if row else None
        return None

    def _put(self, key: str, made_with: str, value: str | bytes) -> None:
        """Keep a value; delete those of its kind made with other things, and the oldest where there are too many."""
        oldest = "SELECT rowid FROM cached WHERE kind = ? ORDER BY rowid DESC LIMIT -1 OFFSET ?"
        with suppress(sqlite3.Error), self._connection() as connection:
            connection.execute("DELETE FROM cached WHERE kind = ? AND made_with <> ?", (self.kind, made_with))
            connection.execute("INSERT OR REPLACE INTO cached VALUES (?, ?, ?, ?)", (self.kind, key, made_with, value))
            connection.execute(f"DELETE FROM cached WHERE rowid IN ({oldest})", (self.kind, _KEPT))  # noqa: S608

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=5, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete = FAST")
            connection.execute(_TABLE)
            yield connection


class AnswerCache(_Cache):
    """Keep answers as texts."""

    kind = "answer"

    def get(self, key: str) -> str | None:
        """Return the answer kept under a key."""
        kept = self._get(key)
        return kept if isinstance(kept, str) else None

    def put(self, key: str, made_with: str, answer: str) -> None:
        """Keep an answer, which was `made_with` an index."""
        self._put(key, made_with, answer)


class QuestionVectors(_Cache):
    """Keep the vectors of questions as bytes; `made_with` names all that shapes them but the question."""

    kind = "vector"

    def __init__(self, folder: Path, made_with: str) -> None:
        super().__init__(folder)
        self._made_with = made_with

    def get(self, question: str) -> bytes | None:
        """Return the vector of a question."""
        kept = self._get(key_of(self._made_with, question))
        return kept if isinstance(kept, bytes) else None

    def put(self, question: str, vector: bytes) -> None:
        """Keep the vector of a question."""
        self._put(key_of(self._made_with, question), self._made_with, vector)
