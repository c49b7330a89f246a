"""A copy of relations in memory, which answers single SELECT statements and nothing else, within limits.

SQLite itself asks before each statement what it may do: only reading the copied tables and plain functions are allowed.
"""

import re
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from local_rag.errors import QuestionError

MAX_SECONDS, MAX_ROWS = 10.0, 10_000
_STEPS = 10_000  # of SQLite's machine between two looks at the clock
_LONGEST_VALUE, _LONGEST_STATEMENT, _MOST_COLUMNS = 1_000_000, 100_000, 500
_BEGINS = re.compile(r"\s*(?:SELECT|WITH|VALUES)\b", re.IGNORECASE)
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
_FORBIDDEN_FUNCTIONS = frozenset(
    {"load_extension", "randomblob", "zeroblob", "readfile", "writefile", "edit", "fts3_tokenizer"}
)


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The names of the columns of a query, its rows, and whether there are no more than these."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    is_complete: bool


class RelationCopy:
    """Tables in memory, filled once; then each `select` is one statement that only reads."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._sealed = False

    def close(self) -> None:
        """Free the memory."""
        self._connection.close()

    def add(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Copy a table, each row with its number as rowid before its values; names may be any text."""
        if self._sealed:
            self._connection.set_authorizer(None)
            self._connection.execute("PRAGMA query_only = OFF")
            self._sealed = False
        names = ", ".join(map(quoted, columns))
        self._connection.execute("BEGIN")
        self._connection.execute(f"CREATE TABLE {quoted(table)} ({names})")
        marks = ", ".join("?" * (len(columns) + 1))
        self._connection.executemany(f"INSERT INTO {quoted(table)} (rowid, {names}) VALUES ({marks})", rows)  # noqa: S608
        self._connection.execute("COMMIT")

    def select(
        self, statement: str, parameters: Sequence[object] = (), *, seconds: float = MAX_SECONDS, most: int = MAX_ROWS
    ) -> QueryResult:
        """Return at most so many rows.

        Raise QuestionError for anything but one SELECT, for one that is wrong, and for one that takes too long.
        """
        if not _BEGINS.match(statement):
            raise QuestionError("Only one SELECT is run here.")
        self._seal()
        last = time.monotonic() + seconds
        self._connection.set_progress_handler(lambda: time.monotonic() > last, _STEPS)
        try:
            cursor = self._connection.execute(statement, parameters)
            if cursor.description is None:
                raise QuestionError("Only one SELECT is run here.")
            rows = cursor.fetchmany(most + 1)
        except sqlite3.OperationalError as error:
            if str(error) == "interrupted":
                raise QuestionError(f"The query took longer than {seconds:g} seconds and was ended.") from None
            raise QuestionError(f"The query is wrong: {error}.") from None
        except sqlite3.DatabaseError as error:
            if str(error).startswith(("not authorized", "access to", "prohibited")):
                raise QuestionError("Only one SELECT on the tables that `local-rag tables` lists is allowed.") from None
            raise QuestionError(f"The query is wrong: {error}.") from None
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
            raise QuestionError(f"The query is wrong: {error or type(error).__name__}.") from None
        return QueryResult(tuple(one[0] for one in cursor.description), rows[:most], len(rows) <= most)

    def _seal(self) -> None:
        """From now on let SQLite refuse all but reading the copied tables."""
        if self._sealed:
            return
        tables = {row[0] for row in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        self._connection.execute("PRAGMA query_only = ON")
        self._connection.execute("PRAGMA cell_size_check = ON")
        for category, most in (
            (sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE),
            (sqlite3.SQLITE_LIMIT_SQL_LENGTH, _LONGEST_STATEMENT),
            (sqlite3.SQLITE_LIMIT_COLUMN, _MOST_COLUMNS),
            (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
            (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100),
            (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 20),
            (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
        ):
            self._connection.setlimit(category, most)

        def authorize(action: int, first: str | None, second: str | None, _base: str | None, _by: str | None) -> int:
            if action == sqlite3.SQLITE_READ:
                return sqlite3.SQLITE_OK if first in tables or not first or not second else sqlite3.SQLITE_DENY
            if action == sqlite3.SQLITE_FUNCTION:
                return sqlite3.SQLITE_DENY if str(second).lower() in _FORBIDDEN_FUNCTIONS else sqlite3.SQLITE_OK
            return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY

        self._connection.set_authorizer(authorize)
        self._sealed = True


def quoted(name: str) -> str:
    """Return a name as SQL takes it, whatever it contains."""
    return '"' + name.replace("\0", " ").replace('"', '""') + '"'
