"""The file `history.sqlite3` beside a library: conversations, the caches of `serve`, and counts of questions.

It is written while questions are asked, never needed, and may be deleted at any time. `HistoryFile` opens, creates and
erases it; `History`, the caches and the counts read and write it through its connections.
"""

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from statistics import median

from local_rag.errors import MissingError
from local_rag.keys import key_of
from local_rag.records import Answer
from local_rag.serialization import from_plain, to_line
from local_rag.store.storage_errors import storage_errors

HISTORY_FILE = "history.sqlite3"
_TABLES = """
CREATE TABLE IF NOT EXISTS conversations (id INTEGER PRIMARY KEY AUTOINCREMENT, started TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS turns (
    id INTEGER PRIMARY KEY,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    opens INTEGER NOT NULL,             -- 1: a new subject begins with this question
    question TEXT NOT NULL,
    answer TEXT NOT NULL,
    read TEXT NOT NULL,                 -- JSON: the paths of the documents whose text is in this row
    asked TEXT NOT NULL,                -- local time
    found INTEGER NOT NULL,             -- how many passages were found, of which those that were read are kept
    whole TEXT NOT NULL                 -- JSON: the answer with the passages that were read for it
);
CREATE TABLE IF NOT EXISTS cached (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    made_with TEXT NOT NULL,
    value NOT NULL,
    PRIMARY KEY (kind, key)
);
CREATE TABLE IF NOT EXISTS uses (at REAL NOT NULL, answered INTEGER NOT NULL, seconds REAL NOT NULL);
"""
_MOST_IN_MEMORY = 200  # conversations
_MOST_CACHED = 1000  # values of each kind
_CACHE_TIMEOUT, _COUNT_TIMEOUT = 5.0, 1.0  # seconds to wait for another process that writes
_DAYS = 30
_DAY = 86_400


class HistoryFile:
    """The history file of a library: opens, creates and erases it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / HISTORY_FILE

    def is_writable(self) -> bool:
        """Say whether the file can be written, or made if it is missing."""
        present = (path for path in (self.folder, self.path) if path.exists())
        return self.folder.is_dir() and all(os.access(path, os.W_OK) for path in present)

    def connect(self, timeout: float = 30.0, *, in_memory: bool = False) -> sqlite3.Connection:
        """Open the file, or an empty one in memory, with all its tables; any thread may use the connection."""
        connection = sqlite3.connect(
            ":memory:" if in_memory else self.path, timeout=timeout, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
        connection.executescript(_TABLES)
        return connection

    def erase(self, paths: Iterable[str]) -> None:
        """Delete every turn that holds text of one of these documents, and both caches; leave nothing in the file."""
        if self.path.exists():
            with storage_errors(self.folder), closing(self.connect()) as connection:
                _erase(
                    connection,
                    "DELETE FROM turns WHERE EXISTS "
                    "(SELECT 1 FROM json_each(read) AS one JOIN json_each(?) AS gone ON one.value = gone.value)",
                    json.dumps(list(paths)),
                )


def _erase(connection: sqlite3.Connection, delete: str, *values: object) -> None:
    """Delete rows and both caches, which may hold the same questions and answers, leaving nothing in the file."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(delete, values)
        connection.execute("DELETE FROM cached")
    connection.execute("VACUUM")


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
    """A conversation: its number, its start (local time), its first question, and its number of questions."""

    id: int
    started: str
    title: str
    turns: int


class History:
    """The conversations of a library, held in a terminal or on the page.

    If the folder may not be written, or the conversations are not to be `kept`, they last as long as this object.
    Threads may share it.
    """

    def __init__(self, folder: Path, *, kept: bool = True) -> None:
        self._folder, file = folder, HistoryFile(folder)
        self.kept = kept and file.is_writable()
        with storage_errors(folder):
            self._connection = file.connect(in_memory=not self.kept)

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

        Of the passages, only those that were read are kept: `erase` goes by their documents.
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
        """Return the conversations with at least one question, the latest first; `before` continues a listing."""
        with storage_errors(self._folder):
            rows = self._connection.execute(
                "SELECT conversations.id, started, question, count(*), min(turns.id) FROM conversations "
                "JOIN turns ON conversation_id = conversations.id WHERE conversations.id < ? "
                "GROUP BY conversations.id ORDER BY conversations.id DESC LIMIT ?",
                (before or 2**62, count),
            )
            return [KeptConversation(*row) for *row, _first in rows]

    def turns(self, conversation: int) -> list[KeptTurn]:
        """Return the turns of a conversation; raise MissingError if there is no conversation of this number."""
        with storage_errors(self._folder):
            query = "SELECT id, asked, question, answer, whole, found, opens FROM turns WHERE conversation_id = ? "
            rows = self._connection.execute(f"{query} ORDER BY id", (conversation,)).fetchall()
        if not rows:
            raise MissingError(f"There is no conversation {conversation}; it may have been forgotten.")
        return [
            KeptTurn(key, asked, question, _read(whole) or Answer(question, text, "answered"), found, opens == 1)
            for key, asked, question, text, whole, found, opens in rows
        ]

    def questions(self) -> list[str]:
        """Return all questions in the order in which they were asked."""
        with storage_errors(self._folder):
            return [row[0] for row in self._connection.execute("SELECT question FROM turns ORDER BY id")]

    def forget(self, conversation: int) -> None:
        """Delete a conversation, leaving nothing of it in the file."""
        self.turns(conversation)
        with storage_errors(self._folder):
            _erase(self._connection, "DELETE FROM conversations WHERE id = ?", conversation)

    def forget_all(self) -> None:
        """Delete every conversation, leaving nothing of them in the file."""
        with storage_errors(self._folder):
            _erase(self._connection, "DELETE FROM conversations")


def conversation_as_markdown(turns: Sequence[KeptTurn]) -> str:
    """Write questions as headings with the answers and the quoted citations below them.

    Nothing in a document or an answer can act as HTML.
    """
    blocks = []
    for turn in turns:
        blocks.append(f"## {_escaped(' '.join(turn.question.split()))}")
        blocks.append(_escaped(turn.answer.text))
        for one in turn.answer.citations:
            url = one.passage.provenance.url
            location = _escaped(" ".join(f"{one.passage.location}{f', {url}' if url else ''}".split()))
            quoted = [f"> {line}" for line in _escaped(one.passage.text).strip().splitlines()]
            blocks.append("\n".join([f"> [{one.number}] {location}", ">", *quoted]))
    return "\n\n".join(["# Conversation", *blocks]) + "\n"


def _escaped(text: str) -> str:
    """Escape HTML in a text."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _read(whole: str) -> Answer | None:
    """Read an answer; return None if another version has written it and it cannot be understood."""
    try:
        fields = json.loads(whole)
        fields.setdefault("outcome", "answered" if fields.get("answered") else "refused")  # versions before 0.4
        answer = from_plain(Answer, fields)
        return answer if isinstance(answer, Answer) else None
    except (ValueError, TypeError, AttributeError):
        return None


def _now() -> str:
    return datetime.now().isoformat(sep=" ", timespec="minutes")


class _Cache:
    """Values of one kind by key; a file that cannot be read or written holds none.

    Generation is greedy: the same prompt gives the same answer, and the same text the same vector. A key is made of
    everything that a value depends on. Values made with another index are deleted, because their keys are never asked
    for again.
    """

    kind: str

    def __init__(self, folder: Path) -> None:
        self._file = HistoryFile(folder)

    def _get(self, key: str) -> str | bytes | None:
        query = "SELECT value FROM cached WHERE kind = ? AND key = ?"
        with suppress(sqlite3.Error), closing(self._file.connect(_CACHE_TIMEOUT)) as connection:
            row = connection.execute(query, (self.kind, key)).fetchone()
            return row[0] if row else None
        return None

    def _put(self, key: str, made_with: str, value: str | bytes) -> None:
        """Keep a value; delete those of its kind made with something else, and the oldest if there are too many."""
        oldest = "SELECT rowid FROM cached WHERE kind = ? ORDER BY rowid DESC LIMIT -1 OFFSET ?"
        with suppress(sqlite3.Error), closing(self._file.connect(_CACHE_TIMEOUT)) as connection:
            connection.execute("DELETE FROM cached WHERE kind = ? AND made_with <> ?", (self.kind, made_with))
            connection.execute("INSERT OR REPLACE INTO cached VALUES (?, ?, ?, ?)", (self.kind, key, made_with, value))
            connection.execute(f"DELETE FROM cached WHERE rowid IN ({oldest})", (self.kind, _MOST_CACHED))  # noqa: S608


class AnswerCache(_Cache):
    """The answers of `serve`, as texts."""

    kind = "answer"

    def get(self, key: str) -> str | None:
        """Return the answer kept under a key."""
        kept = self._get(key)
        return kept if isinstance(kept, str) else None

    def put(self, key: str, made_with: str, answer: str) -> None:
        """Keep an answer; `made_with` names the index it was made with."""
        self._put(key, made_with, answer)


class QuestionVectors(_Cache):
    """The vectors of questions, as bytes; `made_with` names everything that shapes them except the question."""

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


@dataclass(frozen=True, slots=True)
class Usage:
    """The questions of the last thirty days, without their text; `median_seconds` is 0 if there were none."""

    questions: int = 0
    refused: int = 0
    median_seconds: float = 0.0


def count_use(folder: Path, *, answered: bool, seconds: float) -> None:
    """Count a question, unless the file cannot be written."""
    with suppress(sqlite3.Error), closing(HistoryFile(folder).connect(_COUNT_TIMEOUT)) as connection, connection:
        connection.execute("BEGIN IMMEDIATE")
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
