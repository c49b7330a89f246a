"""Conversations, in a file of their own: written while questions are asked, never needed, deleted at will."""

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from local_rag.errors import LibraryError
from local_rag.records import Answer
from local_rag.store.storage_errors import storage_errors

HISTORY_FILE = "history.sqlite3"
_TABLES = """
CREATE TABLE IF NOT EXISTS conversations (id INTEGER PRIMARY KEY AUTOINCREMENT, started TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS turns (
    id INTEGER PRIMARY KEY,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    opens INTEGER NOT NULL,             -- 1: with it a new subject begins
    question TEXT NOT NULL,
    answer TEXT NOT NULL,
    read TEXT NOT NULL,                 -- JSON: the paths of the documents that were read for it
    quotes TEXT NOT NULL                -- JSON: number, place, address and text of each passage that is cited
);
"""


@dataclass(frozen=True, slots=True)
class Quote:
    """A passage as it was cited; `url` is empty where its document has none."""

    number: int
    location: str
    url: str
    text: str


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A question, its answer and what that cites; `opens` says that a new subject begins with it."""

    question: str
    answer: str
    opens: bool
    quotes: tuple[Quote, ...]


@dataclass(frozen=True, slots=True)
class KeptConversation:
    """A conversation by its number, when it began (local time), its first question, and how many were asked."""

    id: int
    started: str
    title: str
    turns: int


class History:
    """The conversations of a library; where its folder may not be written they last as long as this object."""

    def __init__(self, folder: Path) -> None:
        self._folder, path = folder, folder / HISTORY_FILE
        writable = folder.is_dir() and all(os.access(place, os.W_OK) for place in (folder, path) if place.exists())
        with storage_errors(folder):
            self._connection = sqlite3.connect(
                path if writable else ":memory:", timeout=30, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA foreign_keys = ON")
            self._connection.execute("PRAGMA secure_delete = ON")
            self._connection.executescript(_TABLES)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def begin(self) -> int:
        """Begin a conversation and return its number."""
        with storage_errors(self._folder):
            started = datetime.now().isoformat(sep=" ", timespec="minutes")
            return int(
                self._connection.execute("INSERT INTO conversations (started) VALUES (?)", (started,)).lastrowid or 0
            )

    def add(self, conversation: int, answer: Answer, *, opens: bool) -> None:
        """Keep a question and its answer."""
        quotes = [
            (one.number, one.passage.location, one.passage.provenance.url, one.passage.text) for one in answer.citations
        ]
        read = sorted({passage.path for passage in answer.read})
        row = (conversation, opens, answer.question, answer.text, json.dumps(read), json.dumps(quotes))
        with storage_errors(self._folder):
            self._connection.execute(
                "INSERT INTO turns (conversation_id, opens, question, answer, read, quotes) VALUES (?, ?, ?, ?, ?, ?)",
                row,
            )

    def conversations(self) -> list[KeptConversation]:
        """Return the conversations in which something was asked, the latest first."""
        with storage_errors(self._folder):
            rows = self._connection.execute(
                "SELECT conversations.id, started, question, count(*), min(turns.id) FROM conversations "
                "JOIN turns ON conversation_id = conversations.id GROUP BY conversations.id "
                "ORDER BY conversations.id DESC"
            )
            return [KeptConversation(*row) for *row, _first in rows]

    def turns(self, conversation: int) -> list[KeptTurn]:
        """Return what was asked in a conversation; raise LibraryError where there is none of this number."""
        with storage_errors(self._folder):
            query = "SELECT question, answer, opens, quotes FROM turns WHERE conversation_id = ? ORDER BY id"
            rows = self._connection.execute(query, (conversation,)).fetchall()
        if not rows:
            raise LibraryError(f"There is no conversation {conversation}; `/list` shows those that are kept.")
        return [
            KeptTurn(question, answer, bool(opens), tuple(Quote(*quote) for quote in json.loads(quotes)))
            for question, answer, opens, quotes in rows
        ]

    def questions(self) -> list[str]:
        """Return all questions in the order in which they were asked."""
        with storage_errors(self._folder):
            return [row[0] for row in self._connection.execute("SELECT question FROM turns ORDER BY id")]

    def forget(self, conversation: int) -> None:
        """Delete a conversation, with nothing of it left in the file."""
        self.turns(conversation)
        with storage_errors(self._folder):
            self._connection.execute("DELETE FROM conversations WHERE id = ?", (conversation,))
            self._connection.execute("VACUUM")

    def erase(self, paths: Iterable[str]) -> None:
        """Delete every turn for which one of these documents was read, with nothing of it left in the file."""
        gone = set(paths)
        with storage_errors(self._folder):
            rows = self._connection.execute("SELECT id, read FROM turns").fetchall()
            ids = [(key,) for key, read in rows if not gone.isdisjoint(json.loads(read))]
            self._connection.executemany("DELETE FROM turns WHERE id = ?", ids)
            self._connection.execute("VACUUM")


def erase_from_history(folder: Path, paths: Iterable[str]) -> None:
    """Delete what a library's history holds of some documents, if it has one."""
    if (folder / HISTORY_FILE).exists():
        with closing(History(folder)) as history:
            history.erase(paths)
