"""The conversations of a library, and the answers that `serve` gives again; in its history file or in memory."""

import json
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import Any, Self, TypeVar

from local_rag.answer_records import Answer
from local_rag.asking import (
    EVERYTHING,
    AskOptions,
    Filters,
    KeptConversation,
    KeptCorrection,
    KeptList,
    KeptOfQuestions,
    KeptTurn,
    KeptWork,
    Suggested,
)
from local_rag.errors import MissingError
from local_rag.files import move_filters
from local_rag.serialization import from_plain, to_line
from local_rag.store.history_file import (
    ASKED_BY,
    HISTORY_FILE,
    history_errors,
    is_writable,
    open_history,
    open_in_memory,
)
from local_rag.store.recorded_questions import forget_marked
from local_rag.store.schema import transaction

T = TypeVar("T")
_MOST_IN_MEMORY = 200  # conversations
_MOST_CACHED = 1000  # answers
_ANSWER, _SUGGESTED, _WORK = "answer", "suggested", "work"  # the kinds of what is cached

# Says of a document, by SHA-256 and path, whether what quotes or names it is to be forgotten.
IsGone = Callable[[str, str], bool]


class History:
    """The conversations of a library, held in a terminal or on the page, and the cached answers of `serve`.

    Unless they are to be `kept`, or if the folder may not be written, both last as long as this object and reach no
    file. Threads may share it. A conversation belongs to the person who began it, and for others it is not there; what
    is forgotten of documents is forgotten of everybody's.
    """

    def __init__(self, folder: Path, *, kept: bool = True, person: str = "") -> None:
        self._folder, self._person = folder, person
        self.kept = kept and is_writable(folder)
        self._one_at_a_time = RLock()
        with history_errors(folder):
            self._connection = open_history(folder) if self.kept else open_in_memory()

    def of(self, person: str) -> Self:
        """Return this history as a person may see it: with the conversations of this person alone."""
        seen = copy(self)
        seen._person = person
        return seen

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with history_errors(self._folder), self._one_at_a_time, transaction(self._connection):
            yield self._connection

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with history_errors(self._folder), self._one_at_a_time:
            return self._connection.execute(query, values).fetchall()

    def epoch(self) -> int:
        """Return a number that changes when everything, or all of this person, is forgotten or a document is erased."""
        query = "SELECT number + coalesce((SELECT number FROM forgotten WHERE person = ?), 0) FROM epoch"
        return int(self._rows(query, self._person)[0][0])

    def add(
        self,
        conversation: str | None,
        answer: Answer,
        *,
        epoch: int,
        opens: bool,
        again: bool = False,
        filters: Filters = EVERYTHING,
    ) -> str | None:
        """Keep a question and its answer, and return the conversation's id: with None a new one begins.

        With `again` they take the place of the last turn, which was the same question. Nothing is kept, and None is
        returned, if the conversation was forgotten meanwhile, or if the `epoch` is no longer that in which the question
        was asked. Of the passages, only those that were read are kept.
        """
        kept = replace(answer, passages=())
        found = max(len(answer.passages), len(answer.read))
        with self._transaction() as connection:
            if not self._goes_on(conversation, epoch):
                return None
            if conversation is None:
                conversation = self._begin()
            if again:
                last = "DELETE FROM turns WHERE id = (SELECT max(id) FROM turns WHERE conversation_id = ?)"
                connection.execute(last, (conversation,))
            turn = connection.execute(
                "INSERT INTO turns (conversation_id, opens, question, answer, asked, found, whole) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (conversation, opens, answer.question, answer.text, _now(), found, to_line(kept).decode()),
            ).lastrowid
            connection.executemany(
                "INSERT INTO quoted VALUES (?, ?, ?)", [(turn, sha256, path) for sha256, path in sorted(kept.documents)]
            )
            if filters:
                connection.execute("INSERT INTO scopes VALUES (?, ?)", (turn, to_line(filters).decode()))
            return conversation

    def _begin(self) -> str:
        """Begin a conversation within a transaction; in memory, the oldest makes room for it."""
        identifier = secrets.token_hex(8)
        query = "INSERT INTO conversations (id, started, person) VALUES (?, ?, ?)"
        number = self._connection.execute(query, (identifier, _now(), self._person)).lastrowid or 0
        if not self.kept:
            self._connection.execute("DELETE FROM conversations WHERE number <= ?", (number - _MOST_IN_MEMORY,))
        return identifier

    def _goes_on(self, conversation: str | None, epoch: int) -> bool:
        """Say within a transaction whether an answer to a question of this epoch may be kept."""
        return self.epoch() == epoch and (conversation is None or self.holds(conversation))

    def holds(self, conversation: str) -> bool:
        """Say whether there is such a conversation."""
        known = "SELECT 1 FROM conversations WHERE id = ? AND person = ?"
        return bool(self._rows(known, conversation, self._person))

    def conversations(
        self, *, count: int = -1, before: str | None = None, containing: str = ""
    ) -> list[KeptConversation]:
        """Return the conversations, pinned ones and then the latest first; `before` continues a listing after this one.

        With `containing`, return those with this text in the title, a question or an answer.
        """
        rows = self._rows(
            "SELECT conversations.id, started, coalesce(nullif(title, ''), question), count(*), "
            "pinned.conversation_id IS NOT NULL AS on_top, min(turns.id) FROM conversations "
            "JOIN turns ON turns.conversation_id = conversations.id "
            "LEFT JOIN pinned ON pinned.conversation_id = conversations.id "
            "WHERE person = ?1 AND (?2 IS NULL OR pinned.conversation_id IS NULL) "
            "AND conversations.id NOT IN (SELECT conversation_id FROM question_lists) "
            "AND number < coalesce((SELECT number FROM conversations WHERE id = ?2 AND person = ?1), 9e18) "
            "AND (instr(lower(title), lower(?4)) OR EXISTS (SELECT 1 FROM turns AS said "
            "WHERE said.conversation_id = conversations.id "
            "AND (instr(lower(said.question), lower(?4)) OR instr(lower(said.answer), lower(?4))))) "
            "GROUP BY conversations.id ORDER BY on_top DESC, number DESC LIMIT ?3",
            self._person,
            before,
            count,
            containing,
        )
        return [KeptConversation(key, began, title, turns, on_top == 1) for key, began, title, turns, on_top, _ in rows]

    def conversation(self, identifier: str) -> KeptConversation:
        """Return a conversation; raise MissingError if there is none with this id."""
        found = next((one for one in self.conversations() if one.id == identifier), None)
        if found is None:
            raise _no_conversation(identifier)
        return found

    def turns(self, conversation: str) -> list[KeptTurn]:
        """Return the turns of a conversation; raise MissingError if there is none with this id."""
        query = (
            "SELECT turns.id, asked, question, answer, whole, found, opens, filters FROM turns "
            "LEFT JOIN scopes ON turn_id = turns.id "
            "JOIN conversations ON conversations.id = conversation_id WHERE conversation_id = ? AND person = ? "
        )
        rows = self._rows(f"{query} ORDER BY turns.id", conversation, self._person)
        if not rows:
            raise _no_conversation(conversation)
        turns = []
        for key, asked, question, text, whole, found, opens, filters in rows:
            answer = _read(Answer, whole) or Answer(question, text, "answered")
            limits = from_plain(Filters, json.loads(filters)) if filters else EVERYTHING
            turns.append(KeptTurn(key, asked, question, answer, found, opens == 1, limits))
        return turns

    def begin_list(self, name: str, questions: Sequence[str], options: AskOptions) -> str:
        """Keep the questions of a file, whose answers are added as turns, and return the id of the list."""
        with self._transaction() as connection:
            identifier = self._begin()
            connection.execute("UPDATE conversations SET title = ? WHERE id = ?", (name, identifier))
            values = identifier, to_line(questions).decode(), to_line(options).decode()
            connection.execute("INSERT INTO question_lists VALUES (?, ?, ?)", values)
            return identifier

    def question_lists(self, identifier: str | None = None) -> list[KeptList]:
        """Return the lists of this person, the latest first, or only that with this id."""
        rows = self._rows(
            "SELECT id, started, title, questions, options FROM question_lists "
            "JOIN conversations ON id = conversation_id WHERE person = ?1 AND id = coalesce(?2, id) "
            "ORDER BY number DESC",
            self._person,
            identifier,
        )
        answered = "SELECT question FROM turns WHERE conversation_id = ?"
        lists = []
        for key, started, name, questions, options in rows:
            told = frozenset(one for (one,) in self._rows(answered, key))
            asked = tuple(json.loads(questions))
            lists.append(KeptList(key, started, name, asked, told, from_plain(AskOptions, json.loads(options))))
        return lists

    def question_list(self, identifier: str) -> KeptList:
        """Return the list with this id; raise MissingError if this person has none."""
        for found in self.question_lists(identifier):
            return found
        raise MissingError("There is no such file of questions; it may have been forgotten.")

    def answers(self, identifier: str) -> list[Answer]:
        """Return the answers of a list, in the order of its questions."""
        kept = self.question_list(identifier)
        answers = {turn.question: turn.answer for turn in self.turns(identifier)} if kept.answered else {}
        return [answers[question] for question in kept.questions if question in answers]

    def correct(self, identifier: str, question: str, answer: str, *, writer: str) -> None:
        """Keep what a person writes in the place of the answer to a question of a list; an empty text takes it back.

        Raise MissingError if this person has no such list, or the question has no answer.
        """
        asked = self.question_list(identifier).questions
        with self._transaction() as connection:
            query = "SELECT id FROM turns WHERE conversation_id = ? AND question = ? ORDER BY id DESC LIMIT 1"
            turn = connection.execute(query, (identifier, question)).fetchone()
            if turn is None or question not in asked:
                raise MissingError("This question has no answer that could be corrected; it may have been forgotten.")
            connection.execute("DELETE FROM corrections WHERE turn_id = ?", turn)
            if answer:
                row = (*turn, answer, writer, _now())
                connection.execute("INSERT INTO corrections VALUES (?, ?, ?, ?)", row)

    def corrections(self, identifier: str) -> dict[str, KeptCorrection]:
        """Return what persons have written in the place of answers of a list, by question."""
        rows = self._rows(
            "SELECT question, corrections.answer, writer, written FROM corrections JOIN turns ON turns.id = turn_id "
            "JOIN conversations ON conversations.id = conversation_id WHERE conversation_id = ? AND person = ?",
            identifier,
            self._person,
        )
        return {question: KeptCorrection(*correction) for question, *correction in rows}

    def questions(self) -> list[str]:
        """Return all questions of this person in the order in which they were asked."""
        query = "SELECT question FROM turns JOIN conversations ON conversations.id = conversation_id WHERE person = ? "
        return [question for (question,) in self._rows(f"{query} ORDER BY turns.id", self._person)]

    def answer(self, key: str) -> Answer | None:
        """Return the answer cached under a key."""
        return self._cached(Answer, _ANSWER, key)

    def put_answer(self, key: str, made_with: str, answer: Answer, *, epoch: int, conversation: str | None) -> None:
        """Cache an answer like `add`; delete answers made with another index, and the oldest if there are too many."""
        oldest = "SELECT rowid FROM cached WHERE kind = ? ORDER BY rowid DESC LIMIT -1 OFFSET ?"
        with self._transaction() as connection:
            if self._goes_on(conversation, epoch):
                self._drop_answers(made_with)
                self._cache(_ANSWER, key, made_with, answer)
                connection.execute(f"DELETE FROM cached WHERE rowid IN ({oldest})", (_ANSWER, _MOST_CACHED))  # noqa: S608

    def _drop_answers(self, made_with: str = "") -> None:
        """Delete the cached answers that were made with another index than this."""
        self._connection.execute("DELETE FROM cached WHERE kind = ? AND made_with <> ?", (_ANSWER, made_with))

    def suggested(self, key: str, made_with: str) -> Suggested:
        """Return the questions that were found under a key with this index, none if it is another one."""
        return self._cached(Suggested, _SUGGESTED, key, made_with) or Suggested()

    def put_suggested(self, key: str, made_with: str, suggested: Suggested, *, epoch: int) -> None:
        """Keep questions like `put_answer`, in the place of those found with another index."""
        with self._transaction():
            if self._goes_on(None, epoch):
                self._cache(_SUGGESTED, key, made_with, suggested)

    def last_work(self) -> list[KeptWork]:
        """Return what this person did last with each form, the latest first; what another version kept is left out."""
        query = "SELECT value FROM cached WHERE kind = ? AND made_with = ? ORDER BY rowid DESC"
        return [work for (value,) in self._rows(query, _WORK, self._person) if (work := _read(KeptWork, value))]

    def put_work(self, work: KeptWork, *, epoch: int) -> None:
        """Keep what this person did in the place of what they did with this form before, if anything is to be kept."""
        if not self.kept:
            return
        with self._transaction():
            if self._goes_on(None, epoch):
                self._cache(_WORK, f"{self._person} {work.form}", self._person, work)

    def _cache(self, kind: str, key: str, made_with: str, record: object) -> None:
        row = (kind, key, made_with, to_line(record).decode())
        self._connection.execute("INSERT OR REPLACE INTO cached VALUES (?, ?, ?, ?)", row)

    def _cached(self, form: type[T], kind: str, key: str, made_with: str | None = None) -> T | None:
        """Return what is cached under a key, perhaps only if it was made with this index."""
        query = "SELECT value FROM cached WHERE kind = ?1 AND key = ?2 AND (?3 IS NULL OR made_with = ?3)"
        return next((_read(form, value) for (value,) in self._rows(query, kind, key, made_with)), None)

    def _forget_cached(self) -> None:
        """Delete what is cached, which nothing says to be of this person or not, but what others did last."""
        self._connection.execute("DELETE FROM cached WHERE kind <> ? OR made_with = ?", (_WORK, self._person))

    def _forget_work(self) -> None:
        """Delete what everybody did last: it may name documents that are gone, or that are elsewhere now."""
        self._connection.execute("DELETE FROM cached WHERE kind = ?", (_WORK,))

    def counts(self) -> KeptOfQuestions:
        """Count everybody's conversations and the cached answers."""
        query = "SELECT (SELECT count(*) FROM conversations), (SELECT count(*) FROM cached WHERE kind = ?)"
        return KeptOfQuestions(*self._rows(query, _ANSWER)[0])

    def rename(self, conversation: str, title: str) -> None:
        """Give a conversation a title, or with an empty one its first question again; MissingError if there is none."""
        with self._transaction() as connection:
            update = "UPDATE conversations SET title = ? WHERE id = ? AND person = ?"
            if not connection.execute(update, (title, conversation, self._person)).rowcount:
                raise _no_conversation(conversation)

    def pin(self, conversation: str, *, on: bool) -> None:
        """Put a conversation above the others, or back among them; raise MissingError if there is none."""
        change = "INSERT OR IGNORE INTO pinned VALUES (?)" if on else "DELETE FROM pinned WHERE conversation_id = ?"
        with self._transaction() as connection:
            if not self.holds(conversation):
                raise _no_conversation(conversation)
            connection.execute(change, (conversation,))

    def forget(self, conversation: str) -> None:
        """Delete a conversation and all cached answers, leaving nothing of it; raise MissingError if there is none."""
        with self._transaction() as connection:
            said = "SELECT question FROM turns WHERE conversation_id = ?"
            connection.execute(
                f"DELETE FROM asked WHERE person = ? AND question IN ({said})",  # noqa: S608
                (self._person, conversation),
            )
            delete = "DELETE FROM conversations WHERE id = ? AND person = ?"
            if not connection.execute(delete, (conversation, self._person)).rowcount:
                raise _no_conversation(conversation)
            self._forget_cached()
            self._forget_gates()
            self._count_forgotten(f"{ASKED_BY}{self._person}")
        self._vacuum()

    def forget_person(self) -> int:
        """Delete the conversations of this person and all cached answers, leaving nothing of them; return how many."""
        with self._transaction() as connection:
            deleted = connection.execute("DELETE FROM conversations WHERE person = ?", (self._person,)).rowcount
            connection.execute("DELETE FROM asked WHERE person = ?", (self._person,))
            self._forget_cached()
            self._forget_gates()
            self._count_forgotten(self._person)
        self._vacuum()
        return deleted

    def forget_all(self) -> None:
        """Delete all that was kept, of everybody, leaving nothing of it."""
        with self._transaction() as connection:
            for table in ("conversations", "cached", "uses", "asked", "gates"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608
            connection.execute("UPDATE epoch SET number = number + 1")
        self._vacuum()

    def forget_documents(
        self, is_gone: IsGone, *, made_with: str = "", erased: Callable[[str], bool] | None = None
    ) -> int:
        """Delete every turn that quotes or names a document that is gone; return how many there were.

        Cached answers are deleted too, except those `made_with` a certain index. If documents were erased, `erased`
        says of a pattern whether it names one: no answer to a question that was asked before is kept then, no question
        of a file that such a document answered, and no file of questions whose filters name one.
        """
        with self._transaction() as connection:
            gone = [document for document in self.documents() if is_gone(*document)]
            if erased:
                self._forget_in_lists(gone, erased)
                self._forget_scopes(erased)
            delete = "DELETE FROM turns WHERE id IN (SELECT turn_id FROM quoted WHERE sha256 = ? AND path = ?)"
            deleted = sum(connection.execute(delete, row).rowcount for row in gone)
            asked = "SELECT asked_id FROM asked_documents WHERE sha256 = ? AND path = ?"
            connection.executemany(f"DELETE FROM asked WHERE id IN ({asked})", gone)  # noqa: S608
            self._forget_gates()
            turns = "SELECT 1 FROM turns WHERE conversation_id = conversations.id"
            lists = "SELECT 1 FROM question_lists WHERE conversation_id = conversations.id"
            connection.execute(f"DELETE FROM conversations WHERE NOT EXISTS ({turns}) AND NOT EXISTS ({lists})")  # noqa: S608
            self._drop_answers(made_with)
            self._forget_suggested(is_gone)
            if gone or erased:
                self._forget_work()
                connection.execute("UPDATE epoch SET number = number + 1")
        self._vacuum()
        return deleted

    def _forget_in_lists(self, gone: Sequence[tuple[str, str]], erased: Callable[[str], bool]) -> None:
        """Delete the questions that documents which are gone have answered, and lists that are nothing without them."""
        answered = (
            "SELECT DISTINCT conversation_id, question FROM turns JOIN quoted ON turn_id = turns.id "
            "WHERE sha256 = ? AND path = ?"
        )
        told = {row for document in gone for row in self._connection.execute(answered, document)}
        lists = "SELECT conversation_id, questions, options FROM question_lists"
        for key, questions, options in self._connection.execute(lists).fetchall():
            asked = json.loads(questions)
            kept = [one for one in asked if (key, one) not in told]
            if not kept or any(map(erased, json.loads(options)["filters"]["within"])):
                self._connection.execute("DELETE FROM conversations WHERE id = ?", (key,))
            elif kept != asked:
                update = "UPDATE question_lists SET questions = ? WHERE conversation_id = ?"
                self._connection.execute(update, (to_line(kept).decode(), key))

    def _forget_suggested(self, is_gone: IsGone) -> None:
        """Delete the questions that documents which are gone have answered, together with those found beside them."""
        query = "SELECT key, value FROM cached WHERE kind = ?"
        for key, value in self._connection.execute(query, (_SUGGESTED,)).fetchall():
            suggested = _read(Suggested, value)
            if suggested is None or any(is_gone(*document) for document in suggested.quoted):
                self._connection.execute("DELETE FROM cached WHERE kind = ? AND key = ?", (_SUGGESTED, key))

    def _forget_scopes(self, erased: Callable[[str], bool]) -> None:
        """Delete the turns whose filters name a document that was erased."""
        for turn, filters in self._connection.execute("SELECT turn_id, filters FROM scopes").fetchall():
            if any(map(erased, json.loads(filters)["within"])):
                self._connection.execute("DELETE FROM turns WHERE id = ?", (turn,))

    def count_quoting(self, is_gone: IsGone) -> int:
        """Return how many turns quote or name a document that is gone."""
        query = "SELECT turn_id FROM quoted WHERE sha256 = ? AND path = ?"
        gone = [document for document in self.documents() if is_gone(*document)]
        return len({row[0] for document in gone for row in self._rows(query, *document)})

    def documents(self) -> list[tuple[str, str]]:
        """Return SHA-256 and path of every document that a turn or a recorded question quotes or names."""
        query = "SELECT sha256, path FROM quoted UNION SELECT sha256, path FROM asked_documents"
        return [(sha256, path) for sha256, path in self._rows(query)]

    def move_documents(self, moved: Mapping[str, str]) -> None:
        """Record that files have moved, from former to present paths."""
        with self._transaction() as connection:
            for table in ("quoted", "asked_documents"):
                update = f"UPDATE OR REPLACE {table} SET path = ?2 WHERE path = ?1"  # noqa: S608  tables of ours
                connection.executemany(update, [(old, new) for old, new in moved.items()])
            self._move_filters(moved)
            self._forget_work()

    def _move_filters(self, moved: Mapping[str, str]) -> None:
        """Let filters that name a file by its whole path name it where it is now, so that they go when it is erased."""
        for table, key, column in (
            ("question_lists", "conversation_id", "options"),
            ("scopes", "turn_id", "filters"),
        ):
            for row, text in self._connection.execute(f"SELECT {key}, {column} FROM {table}").fetchall():  # noqa: S608
                kept = json.loads(text)
                if move_filters(kept["filters"] if table == "question_lists" else kept, moved):
                    update = f"UPDATE {table} SET {column} = ? WHERE {key} = ?"  # noqa: S608
                    self._connection.execute(update, (to_line(kept).decode(), row))

    def _count_forgotten(self, whose: str) -> None:
        count = "INSERT INTO forgotten VALUES (?, 1) ON CONFLICT DO UPDATE SET number = number + 1"
        self._connection.execute(count, (whose,))

    def _forget_gates(self) -> None:
        """Delete within a transaction the gates of which a mark is gone: they were made of all their marks."""
        left = "SELECT id FROM asked WHERE mark <> ''"
        gone = f"SELECT 1 FROM json_each(gate, '$.made_of') WHERE value NOT IN ({left})"  # noqa: S608
        self._connection.execute(f"DELETE FROM gates WHERE EXISTS ({gone})")  # noqa: S608

    def _vacuum(self) -> None:
        """Leave nothing of what was deleted in the file, nor of a mark among the questions of evaluations."""
        if self.kept:
            kept = {question for (question,) in self._rows("SELECT DISTINCT question FROM asked WHERE mark <> ''")}
            forget_marked(self._folder, lambda one: one not in kept)
        with history_errors(self._folder), self._one_at_a_time:
            self._connection.execute("VACUUM")


@contextmanager
def kept_history(folder: Path) -> Iterator[History | None]:
    """Yield the history in a folder, None if none was kept."""
    if not (folder / HISTORY_FILE).exists():
        yield None
        return
    with closing(History(folder)) as history:
        yield history


def _read(form: type[T], whole: object) -> T | None:
    """Read a record; return None if another version has written it and it cannot be understood."""
    try:
        record: T = from_plain(form, json.loads(str(whole)))
    except ValueError:
        return None
    return record


def _no_conversation(identifier: str) -> MissingError:
    return MissingError(f"There is no conversation {identifier[:40]}; it may have been forgotten.")


def _now() -> str:
    return datetime.now().isoformat(sep=" ", timespec="minutes")
