"""Conversations, in a file of their own: written while questions are asked, never needed, deleted at will.

There is one notion of a conversation, whether it is held in a terminal or on the page: questions with their answers,
each of which may open a new subject.
"""

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from local_rag.errors import LibraryError
from local_rag.records import Answer
from local_rag.serialization import from_plain, to_line
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
    read TEXT NOT NULL,                 -- JSON: the paths of the documents whose text stands in this row
    asked TEXT NOT NULL DEFAULT '',     -- when, in local time
    found INTEGER NOT NULL DEFAULT 0,   -- how many passages were found, of which those that were read are kept
    whole TEXT NOT NULL DEFAULT 'null'  -- JSON: the answer with the passages that were read for it
);
"""
_MOST_IN_MEMORY = 200  # conversations, where none may be written


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A question and its answer with what was read for it, of the `found` passages; `opens` begins a new subject."""

    id: int
    asked: str
    question: str
    answer: Answer
    found: int
    opens: bool


@dataclass(frozen=True, slots=True)
class KeptConversation:
    """A conversation by its number, when it began (local time), its first question, and how many were asked."""

    id: int
    started: str
    title: str
    turns: int


class History:
    """The conversations of a library.

    Where its folder may not be written, or they are not to be `kept`, they last as long as this object. Threads may
    share it.
    """

    def __init__(self, folder: Path, *, kept: bool = True) -> None:
        self._folder, path = folder, folder / HISTORY_FILE
        writable = folder.is_dir() and all(os.access(place, os.W_OK) for place in (folder, path) if place.exists())
        self.kept = kept and writable
        with storage_errors(folder):
            self._connection = sqlite3.connect(
                path if self.kept else ":memory:", timeout=30, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA foreign_keys = ON")
            self._connection.execute("PRAGMA secure_delete = ON")
            self._connection.executescript(_TABLES)
            _take_over(self._connection)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def begin(self) -> int:
        """Begin a conversation and return its number."""
        with storage_errors(self._folder):
            query = "INSERT INTO conversations (started) VALUES (?)"
            begun = int(self._connection.execute(query, (_now(),)).lastrowid or 0)
            if not self.kept:
                self._connection.execute("DELETE FROM conversations WHERE id <= ?", (begun - _MOST_IN_MEMORY,))
            return begun

    def add(self, conversation: int, answer: Answer, *, opens: bool, again: bool = False) -> None:
        """Keep a question and its answer; with `again` in the place of the last one, which was the same question.

        Only what was read is kept of the passages: their documents are those that `erase` goes by.
        """
        kept = replace(answer, passages=())
        paths = {passage.path for passage in (*kept.read, *kept.closest, *kept.look_alikes)}
        paths |= {citation.passage.path for citation in kept.citations}
        found = max(len(answer.passages), len(answer.read))
        row = (opens, answer.question, answer.text, json.dumps(sorted(paths)), _now(), found, to_line(kept).decode())
        with storage_errors(self._folder):
            if again:
                last = "DELETE FROM turns WHERE id = (SELECT max(id) FROM turns WHERE conversation_id = ?)"
                self._connection.execute(last, (conversation,))
            self._connection.execute(
                "INSERT INTO turns (conversation_id, opens, question, answer, read, asked, found, whole) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (conversation, *row),
            )

    def conversations(self, *, count: int = -1, before: int | None = None) -> list[KeptConversation]:
        """Return the conversations in which something was asked, the latest first, or those that began before one."""
        with storage_errors(self._folder):
            rows = self._connection.execute(
                "SELECT conversations.id, started, question, count(*), min(turns.id) FROM conversations "
                "JOIN turns ON conversation_id = conversations.id WHERE conversations.id < ? "
                "GROUP BY conversations.id ORDER BY conversations.id DESC LIMIT ?",
                (before or 2**62, count),
            )
            return [KeptConversation(*row) for *row, _first in rows]

    def turns(self, conversation: int) -> list[KeptTurn]:
        """Return what was asked in a conversation; raise LibraryError where there is none of this number."""
        with storage_errors(self._folder):
            query = "SELECT id, asked, question, answer, whole, found, opens FROM turns WHERE conversation_id = ? "
            rows = self._connection.execute(f"{query} ORDER BY id", (conversation,)).fetchall()
        if not rows:
            raise LibraryError(f"There is no conversation {conversation}; it may have been forgotten.")
        return [
            KeptTurn(key, asked, question, _read(whole) or Answer(question, text, answered=True), found, opens == 1)
            for key, asked, question, text, whole, found, opens in rows
        ]

    def questions(self) -> list[str]:
        """Return all questions in the order in which they were asked."""
        with storage_errors(self._folder):
            return [row[0] for row in self._connection.execute("SELECT question FROM turns ORDER BY id")]

    def forget(self, conversation: int) -> None:
        """Delete a conversation, with nothing of it left in the file."""
        self.turns(conversation)
        self._delete("DELETE FROM conversations WHERE id = ?", [(conversation,)])

    def forget_all(self) -> None:
        """Delete every conversation, with nothing of them left in the file."""
        self._delete("DELETE FROM conversations WHERE id >= ?", [(0,)])

    def erase(self, paths: Iterable[str]) -> None:
        """Delete every turn that holds text of one of these documents, with nothing of it left in the file."""
        gone = set(paths)
        with storage_errors(self._folder):
            rows = self._connection.execute("SELECT id, read FROM turns").fetchall()
        self._delete("DELETE FROM turns WHERE id = ?", [(one,) for one, read in rows if gone & set(json.loads(read))])

    def _delete(self, query: str, rows: Iterable[tuple[int]]) -> None:
        with storage_errors(self._folder):
            self._connection.executemany(query, rows)
            # Where questions and answers stand as well, to be found again at once: see store/caches.py.
            self._connection.execute("DROP TABLE IF EXISTS cached")
            self._connection.execute("VACUUM")


def erase_from_history(folder: Path, paths: Iterable[str]) -> None:
    """Delete what a library's history holds of some documents, if it has one."""
    if (folder / HISTORY_FILE).exists():
        with closing(History(folder)) as history:
            history.erase(paths)


def _take_over(connection: sqlite3.Connection) -> None:
    """Take over turns that were kept in fewer columns: question and answer, without what was quoted."""
    present = {row[1] for row in connection.execute("PRAGMA table_info(turns)")}
    if "quotes" in present:
        for column in ("asked TEXT NOT NULL DEFAULT ''", "found INTEGER NOT NULL DEFAULT 0",
                       "whole TEXT NOT NULL DEFAULT 'null'"):  # fmt: skip
            connection.execute(f"ALTER TABLE turns ADD COLUMN {column}")
        connection.execute("ALTER TABLE turns DROP COLUMN quotes")
    for name in ("asked", "answers"):  # what the page kept for itself
        connection.execute(f"DROP TABLE IF EXISTS {name}")


def _read(whole: str) -> Answer | None:
    """Read an answer; one that another version has written is none."""
    try:
        answer = from_plain(Answer, json.loads(whole)) if whole != "null" else None
        return answer if isinstance(answer, Answer) else None
    except (ValueError, TypeError, AttributeError):
        return None


def _now() -> str:
    return datetime.now().isoformat(sep=" ", timespec="minutes")
