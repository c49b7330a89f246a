"""What was asked of a library, through whatever interface, and the marks that say whether the answers were right.

They stand in the history file, so they are forgotten and erased with the conversations, and are not written at all
with the setting `history` off. What a person asked, others are not told. Marks made with other limits never meet.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from local_rag.answer_records import Answer
from local_rag.asking import HOST, AskedQuestion, Filters, Mark, Person, ReadPlace
from local_rag.errors import LibraryError, MissingError
from local_rag.keys import key_of
from local_rag.passage_records import Passage
from local_rag.serialization import to_line
from local_rag.store.history_file import ASKED_BY, HISTORY_FILE, history_errors, open_history, put_use
from local_rag.store.schema import transaction
from local_rag.text.words import caseless, words_of

_TIMEOUT = 1.0  # seconds that an answer waits for another process that writes
_MOST = 20_000  # questions; of more, the oldest without a mark are forgotten
_MOST_LISTED = 2000  # questions that are looked at for what is missing
_COLUMNS = "id, question, words, asked, outcome, log_odds, reader_log_odds, probability, threshold, mark"


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and a key of what this person may see, empty for everything."""

    person: Person = HOST
    limits: str = ""

    @classmethod
    def of(cls, person: Person, limits: Filters) -> "Asker":
        """Return the asker for a person with limits."""
        return cls(person, key_of("limits", to_line(limits).decode()) if limits else "")


def same_question(question: str) -> str:
    """Return what is equal for all spellings of a question: its words without case and signs."""
    return " ".join(caseless(word) for word in words_of(question))


class AskedQuestions:
    """The questions asked of the library in a folder, as one asker may know them."""

    def __init__(self, folder: Path, asker: Asker) -> None:
        self._folder, self._asker = folder, asker

    @contextmanager
    def _open(self, timeout: float = 30.0) -> Iterator[sqlite3.Connection]:
        with history_errors(self._folder), closing(open_history(self._folder, timeout)) as opened, transaction(opened):
            yield opened

    def _rows(self, query: str, *values: object, timeout: float = 30.0) -> list[tuple[Any, ...]]:
        """Return what a query finds, nothing if nothing was ever asked; the file is only read."""
        if not (path := self._folder / HISTORY_FILE).exists():
            return []
        with history_errors(self._folder):
            address = f"{path.resolve().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, timeout, uri=True)) as connection:
                if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'gates'").fetchone() is None:
                    return []  # another process makes it just now
                return connection.execute(query, values).fetchall()

    def epoch(self) -> int:
        """Return a number that changes when what this person asked is forgotten, or a document is erased."""
        person = self._asker.person.id
        query = "SELECT number + (SELECT total(number) FROM forgotten WHERE person IN (?, ?)) FROM epoch"
        with suppress(LibraryError):
            for (number,) in self._rows(query, person, f"{ASKED_BY}{person}", timeout=_TIMEOUT):
                return int(number)
        return 0

    def add(self, answer: Answer, *, words: str, recipe: str, epoch: int, counted: bool = False) -> bool:
        """Record an answer, unless it was forgotten meanwhile or the file cannot be written now; return whether it was.

        If it is `counted`, it is in the same transaction: the disk is waited for once.
        """
        with suppress(LibraryError, OSError):
            if self.epoch() == epoch:
                with self._open(_TIMEOUT) as connection:
                    self._insert(connection, answer, words, recipe)
                    if counted:
                        put_use(connection, answered=answer.answered, seconds=answer.seconds)
                return True
        return False

    def _insert(self, connection: sqlite3.Connection, answer: Answer, words: str, recipe: str) -> int:
        known = recipe if answer.log_odds is not None or answer.reader_log_odds is not None else ""
        odds = answer.log_odds, answer.reader_log_odds, answer.probability, answer.threshold
        now = datetime.now().isoformat(sep=" ", timespec="seconds")
        row = (self._asker.person.id, self._asker.limits, answer.question, words, now, answer.outcome, known, *odds)
        identifier = connection.execute(
            "INSERT INTO asked (person, limits, question, words, asked, outcome, recipe, log_odds, reader_log_odds, "
            "probability, threshold) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            row,
        ).lastrowid
        rows = [
            (identifier, number, one.sha256, one.path, one.is_cited, one.start, one.end, one.lines)
            for number, one in enumerate(_places(answer))
        ]
        connection.executemany("INSERT INTO asked_documents VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        oldest = "SELECT id FROM asked WHERE mark = '' ORDER BY id DESC LIMIT -1 OFFSET ?"
        connection.execute(f"DELETE FROM asked WHERE id IN ({oldest})", (_MOST,))  # noqa: S608
        return identifier or 0

    def find(self, question: str | None = None, *, marked: bool = False) -> AskedQuestion:
        """Return the latest question of this asker, or the latest with these words; perhaps of those with a mark.

        Raise MissingError if there is none.
        """
        condition = "mark <> ''" if marked else "1"
        words = same_question(question) if question is not None else None
        found = self._asked(
            f"person = ?1 AND limits = ?2 AND {condition} AND (?3 IS NULL OR words = ?3 OR question = ?4) "
            f"ORDER BY {'marked' if marked else 'id'} DESC LIMIT 1",
            self._asker.person.id,
            self._asker.limits,
            words,
            question,
        )
        for one in found:
            return one
        if question is None:
            raise MissingError(
                "No answer has a mark." if marked else 'Nothing was asked yet; ask first: `local-rag ask "QUESTION"`.'
            )
        raise MissingError(
            f"{'No mark is kept for' if marked else 'Nobody has asked'} {question[:80]!r}; give the words of the "
            "question as it was asked."
        )

    def _asked(self, condition: str, *values: object) -> list[AskedQuestion]:
        found = self._rows(f"SELECT {_COLUMNS} FROM asked WHERE {condition}", *values)  # noqa: S608  columns of ours
        places: dict[int, list[ReadPlace]] = {row[0]: [] for row in found}
        query = (
            "SELECT asked_id, sha256, path, is_cited, start, end, place FROM asked_documents "
            "WHERE asked_id IN (SELECT value FROM json_each(?)) ORDER BY asked_id, position"
        )
        for key, sha256, path, is_cited, *span in self._rows(query, json.dumps([*places])) if places else ():
            if key in places:
                places[key].append(ReadPlace(sha256, path, is_cited == 1, *span))
        return [replace(AskedQuestion(*row), mark=row[-1] or None, places=tuple(places[row[0]])) for row in found]

    def mark(self, asked: AskedQuestion, mark: Mark | None) -> None:
        """Mark what was asked as answered rightly or wrongly, or take the mark back.

        Answers that `serve` would give again are deleted, and a gate that was made of another mark of it.
        """
        with self._open() as connection:
            following = "(SELECT coalesce(max(marked), 0) + 1 FROM asked)" if mark else "0"
            update = f"UPDATE asked SET mark = ?, marked = {following} WHERE id = ?"  # noqa: S608
            if not connection.execute(update, (mark or "", asked.id)).rowcount:
                raise MissingError("This question was forgotten meanwhile.")
            connection.execute("DELETE FROM cached WHERE kind = 'answer'")
            made_of_it = "EXISTS (SELECT 1 FROM json_each(gate, '$.made_of') WHERE value = ?)"
            connection.execute(f"DELETE FROM gates WHERE {made_of_it}", (asked.id,))  # noqa: S608

    def mark_other(self, question: str, mark: Mark, passage: Passage | None) -> AskedQuestion:
        """Record a question that no longer is, or never was recorded, with a mark and the passage that it is about."""
        said = Answer(question, "", "answered" if passage else "quoted", read=(passage,) if passage else ())
        with self._open() as connection:
            identifier = self._insert(connection, said, same_question(question), "")
            connection.execute("UPDATE asked_documents SET is_cited = 1 WHERE asked_id = ?", (identifier,))
        (asked,) = self._asked("id = ?", identifier)
        self.mark(asked, mark)
        return asked

    def marked(self, recipe: str | None = None) -> list[AskedQuestion]:
        """Return what everybody with these limits has marked, of each question the last mark, in their order.

        With a `recipe`, only answers of this model, prompt and reader; an empty one is that of answers by code.
        """
        found = self._asked(
            "mark <> '' AND limits = ?1 AND (?2 IS NULL OR recipe = ?2) ORDER BY marked", self._asker.limits, recipe
        )
        return list({(one.words or str(one.id)): one for one in found}.values())

    def marked_places(self, words: str) -> list[tuple[ReadPlace, Mark]]:
        """Return the passages that marked answers to a question stand on, by the last mark of each."""
        if not words:
            return []
        with suppress(LibraryError):
            found = self._asked("mark <> '' AND words = ?1 AND limits = ?2 ORDER BY marked", words, self._asker.limits)
            places = [(place, one.mark) for one in found for place in one.places if place.is_cited and one.mark]
            return list({(place.path, place.start): (place, mark) for place, mark in places}.values())
        return []

    def open_questions(self) -> list[tuple[AskedQuestion, int]]:
        """Return the questions that were refused last, or last marked as answered wrongly, newest first.

        Each comes with how often it was asked. An owner is told those of everybody, or with limits those of everybody
        with the same limits.
        """
        asker, whole = self._asker, self._asker.person.may("owner")
        rows = self._rows(
            "SELECT id, words, limits, outcome, mark, marked FROM asked WHERE (?1 OR person = ?2) "
            "AND (limits = ?3 OR (?1 AND ?3 = '')) AND words <> '' ORDER BY id DESC LIMIT ?4",
            whole,
            asker.person.id,
            asker.limits,
            _MOST,
        )
        askings = dict[tuple[str, str], list[tuple[Any, ...]]]()
        for identifier, words, limits, *said in rows:
            askings.setdefault((words, limits), []).append((identifier, *said))
        wanted = dict[int, int]()
        for same in askings.values():
            last, marked = same[0], max(same, key=lambda one: int(one[3]))
            if marked[2] == "wrong":
                wanted[marked[0]] = len(same)
            elif marked[2] != "right" and last[1] == "refused":
                wanted[last[0]] = len(same)
        ids = json.dumps([*wanted][:_MOST_LISTED])
        found = self._asked("id IN (SELECT value FROM json_each(?)) ORDER BY id DESC", ids) if wanted else []
        return [(one, wanted[one.id]) for one in found]

    def has_gates(self) -> bool:
        """Return whether marks have made any gate."""
        return bool(self._rows("SELECT 1 FROM gates WHERE limits = ? LIMIT 1", self._asker.limits, timeout=_TIMEOUT))

    def gate(self, recipe: str) -> str:
        """Return what is kept of the gate that marks have made for a recipe, empty if there is none."""
        query = "SELECT gate FROM gates WHERE limits = ? AND recipe = ?"
        with suppress(LibraryError):
            for (gate,) in self._rows(query, self._asker.limits, recipe, timeout=_TIMEOUT):
                return str(gate)
        return ""

    def put_gate(self, recipe: str, gate: str) -> None:
        """Keep a gate, and delete the answers that `serve` would give again; an empty one deletes it."""
        with self._open() as connection:
            connection.execute("DELETE FROM gates WHERE limits = ? AND recipe = ?", (self._asker.limits, recipe))
            if gate:
                connection.execute("INSERT INTO gates VALUES (?, ?, ?)", (self._asker.limits, recipe, gate))
            connection.execute("DELETE FROM cached WHERE kind = 'answer'")


def _places(answer: Answer) -> list[ReadPlace]:
    """Return the passages of an answer, those that it cites first, and the documents that it only names."""
    cited = [one.passage for one in answer.citations]
    spans = {(one.path, one.start) for one in cited}
    others = [*answer.closest, *answer.read, *answer.look_alikes]
    known = {(one.path, one.start, one.end): one for one in [*cited, *others]}
    only_named = answer.documents.difference((one.sha256, one.path) for one in known.values())
    places = [
        ReadPlace(one.sha256, one.path, (one.path, one.start) in spans, one.start, one.end, lines_of(one))
        for one in known.values()
    ]
    return [*places, *(ReadPlace(sha256, path, is_cited=False) for sha256, path in sorted(only_named))]


def lines_of(passage: Passage) -> str:
    """Return what a passage's lines add to the path of its document, empty if it has none."""
    if passage.kind == "chunk" and passage.line is not None:
        return f":{passage.line}-{passage.end_line or passage.line}"
    return ""
