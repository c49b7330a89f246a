"""A copy of relations in memory, which answers single SELECT statements and nothing else, within limits.

SQLite itself asks before each statement what it may do: only reading the copied tables and the functions named here.
None of these takes more than some milliseconds on the longest value, since SQLite looks at the clock only between them.
"""

import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from local_rag.errors import QuestionError
from local_rag.machine import resident_bytes

MAX_SECONDS, MAX_ROWS = 10.0, 10_000
_STEPS = 1000  # of SQLite's machine between two looks at the clock
_BETWEEN_LOOKS = 0.02  # seconds between two looks at the memory, which take longer than the steps between them
_LONGEST_VALUE, _LONGEST_STATEMENT, _MOST_COLUMNS = 400_000, 100_000, 500  # bytes of a value or row
_LARGEST_RESULT = 40_000_000  # characters of all rows of a result, each value counted as some more
_OF_VALUE = 8
_MOST_MEMORY = 1_000_000_000  # bytes by which the process may grow during a query
_BEGINS = re.compile(r"\s*(?:SELECT|WITH|VALUES)\b", re.IGNORECASE)
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
# Not among them is what reads files, what makes long values of short ones, and what takes quadratic time.
_FUNCTIONS = frozenset(
    """
    count sum total avg min max group_concat row_number rank dense_rank percent_rank cume_dist ntile lag lead
    first_value last_value nth_value abs round sign ceil ceiling floor trunc mod sqrt pow power exp ln log log10 log2
    coalesce ifnull iif nullif typeof length lower upper substr substring instr replace trim ltrim rtrim like glob
    char unicode hex quote printf format date time datetime julianday unixepoch strftime
    """.split()  # noqa: SIM905  a list of that many quoted words is no easier to read
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
        self._connection.execute("PRAGMA temp_store = MEMORY")  # no text of a document goes to a temporary file
        # SQLite compares at each place anew; Python finds in linear time.
        self._connection.create_function("instr", 2, _instr, deterministic=True)
        self._connection.create_function("replace", 3, _replace, deterministic=True)
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
        self,
        statement: str,
        parameters: Sequence[object] = (),
        *,
        seconds: float = MAX_SECONDS,
        most: int = MAX_ROWS,
        largest: int = _LARGEST_RESULT,
    ) -> QueryResult:
        """Return at most so many rows, with about `largest` characters in all.

        Raise QuestionError for anything but one SELECT, for one that is wrong, and for one that takes too much time or
        memory.
        """
        if not _BEGINS.match(statement):
            raise QuestionError("Only one SELECT is run here.")
        self._seal()
        last = time.monotonic() + seconds
        self._connection.set_progress_handler(_exceeds(last, resident_bytes() + _MOST_MEMORY), _STEPS)
        try:
            cursor = self._connection.execute(statement, parameters)
            if cursor.description is None:
                raise QuestionError("Only one SELECT is run here.")
            rows, is_complete = _fetch(cursor, most, largest)
        except sqlite3.OperationalError as error:
            if str(error) == "interrupted":
                much = f"longer than {seconds:g} seconds" if time.monotonic() > last else "too much memory"
                raise QuestionError(f"The query took {much} and was ended.") from None
            raise QuestionError(f"The query is wrong: {error}.") from None
        except sqlite3.DatabaseError as error:
            if str(error).startswith(("not authorized", "access to", "prohibited")):
                raise QuestionError("Only one SELECT on the tables that `local-rag tables` lists is allowed.") from None
            raise QuestionError(f"The query is wrong: {error}.") from None
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
            raise QuestionError(f"The query is wrong: {error or type(error).__name__}.") from None
        finally:
            self._connection.set_progress_handler(None, 0)  # the next table is copied without this limit
        return QueryResult(tuple(one[0] for one in cursor.description), rows, is_complete)

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
            (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100),
        ):
            self._connection.setlimit(category, most)

        def authorize(action: int, first: str | None, second: str | None, _base: str | None, _by: str | None) -> int:
            if action == sqlite3.SQLITE_READ:
                return sqlite3.SQLITE_OK if first in tables or not first or not second else sqlite3.SQLITE_DENY
            if action == sqlite3.SQLITE_FUNCTION:
                return sqlite3.SQLITE_OK if str(second).lower() in _FUNCTIONS else sqlite3.SQLITE_DENY
            return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY

        self._connection.set_authorizer(authorize)
        self._sealed = True


def _exceeds(last: float, fullest: int) -> Callable[[], bool]:
    """Return a function that says whether a moment has passed or this process has grown beyond a size."""
    looked = time.monotonic()

    def exceeds() -> bool:
        nonlocal looked
        now = time.monotonic()
        if now - looked < _BETWEEN_LOOKS:
            return now > last
        looked = now
        return now > last or resident_bytes() > fullest

    return exceeds


def _fetch(cursor: sqlite3.Cursor, most: int, largest: int) -> tuple[list[tuple[Any, ...]], bool]:
    """Return rows up to a number and a size, and whether there are no more."""
    rows, size = list[tuple[Any, ...]](), 0
    for row in cursor:
        size += sum(_OF_VALUE + (len(one) if isinstance(one, str | bytes) else 0) for one in row)
        if len(rows) == most or (rows and size > largest):
            return rows, False
        rows.append(row)
    return rows, True


def _instr(text: Any, part: Any) -> int | None:
    return None if text is None or part is None else str(text).find(str(part)) + 1


def _replace(text: Any, part: Any, other: Any) -> str | None:
    return None if text is None or part is None or other is None else _replaced(str(text), str(part), str(other))


def _replaced(text: str, part: str, other: str) -> str:
    longest = len(text) + text.count(part) * max(0, len(other) - len(part)) if part else 0
    if longest > _LONGEST_VALUE:
        raise OverflowError
    return text.replace(part, other) if part else text


def quoted(name: str) -> str:
    """Return a name as SQL takes it, whatever it contains."""
    return '"' + name.replace("\0", " ").replace('"', '""') + '"'
