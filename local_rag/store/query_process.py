"""The process in which statements of other people run, on a copy of tables in memory.

It reads requests from its input and answers each on its output, as `relation_query.py` asks. It imports nothing but the
standard library, so that it starts at once. The system limits its memory and its time on the processor, whatever SQLite
is doing: preparing a statement and single calls of functions know no limits of their own. It cannot open a file or a
socket, and gets no key of the program that starts it.

SQLite itself asks before each statement what it may do: only reading the copied tables and the functions named here.
"""

import contextlib
import json
import math
import os
import re
import resource
import signal
import sqlite3
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

HEADER = struct.Struct("<Q")  # the length of what follows, in bytes
_STEPS = 1000  # of SQLite's machine between two looks at the clock
_LONGEST_VALUE, _LONGEST_STATEMENT, _MOST_COLUMNS = 1_000_000, 100_000, 1000  # bytes of a value or row
_OF_VALUE = 8  # characters that each value of a result counts more than it has
_MOST_MEMORY = 1_000_000_000  # bytes by which the process may grow during a query
_MOST_HELD = 3_000_000_000  # bytes of the process while tables are copied
_COPY_SECONDS = 300  # on the processor, for a table
_BITS = 64  # of SQLite's integers, with the sign
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


class _Copy:
    """The tables, and the one connection that reads them."""

    def __init__(self, size: Callable[[], int]) -> None:
        self._size = size  # of the address space of this process, 0 where it is not told
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._connection.execute("PRAGMA temp_store = MEMORY")  # no text of a document goes to a temporary file
        self._connection.execute(f"PRAGMA hard_heap_limit = {_MOST_HELD + _MOST_MEMORY}")
        # SQLite compares at each place anew; Python finds in linear time.
        self._connection.create_function("instr", 2, _instr, deterministic=True)
        self._connection.create_function("replace", 3, _replace, deterministic=True)
        for name, strip in (("trim", _strip_both), ("ltrim", _strip_left), ("rtrim", _strip_right)):
            for count in (1, 2):
                self._connection.create_function(name, count, strip, deterministic=True)
        self._sealed = False

    def add(self, table: str, columns: Sequence[str], blocks: Iterator[bytes]) -> list[Any]:
        """Copy a table, all of it or nothing; its rows have their number, whether they are a total, and their values.

        Table and columns are named as SQL takes them.
        """
        _limit(_COPY_SECONDS, _MOST_HELD)
        run = self._connection.execute
        if self._sealed:
            self._connection.set_authorizer(None)
            run("PRAGMA query_only = OFF")
            self._sealed = False
        names, marks = ", ".join(columns), ", ".join("?" * (len(columns) + 1))
        try:
            run("BEGIN")
            run(f"CREATE TABLE {table} ({names})")
            insert = f"INSERT INTO {table} (rowid, {names}) VALUES ({marks})"  # noqa: S608
            for block in blocks:
                rows = json.loads(zlib.decompress(block), parse_int=_integer)
                self._connection.executemany(insert, ((row[0], *row[2:]) for row in rows if not row[1]))
            run("COMMIT")
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  whatever a document holds, the other tables are asked
            if self._connection.in_transaction:
                run("ROLLBACK")
            return ["wrong", str(error) or type(error).__name__]
        return ["done"]

    def select(self, statement: str, parameters: Sequence[Any], seconds: float, most: int, largest: int) -> list[Any]:
        """Return at most so many rows of a statement, with about `largest` characters in all, or what is wrong."""
        if not _BEGINS.match(statement):
            return ["no select"]
        self._seal()
        _limit(math.ceil(seconds) + 1, self._size() + _MOST_MEMORY)
        last = time.monotonic() + seconds
        self._connection.set_progress_handler(lambda: time.monotonic() > last, _STEPS)
        try:
            cursor = self._connection.execute(statement, parameters)
            if cursor.description is None:
                return ["no select"]
            rows, is_complete = _fetch(cursor, most, largest)
        except sqlite3.OperationalError as error:
            return ["time"] if str(error) == "interrupted" else ["wrong", str(error)]
        except sqlite3.DatabaseError as error:
            forbidden = str(error).startswith(("not authorized", "access to", "prohibited"))
            return ["forbidden"] if forbidden else ["wrong", str(error)]
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            return ["wrong", str(error) or type(error).__name__]
        finally:
            self._connection.set_progress_handler(None, 0)  # the next table is copied without this limit
        return ["rows", [one[0] for one in cursor.description], rows, is_complete]

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


def _integer(digits: str) -> int | float:
    value = int(digits)
    return value if value.bit_length() < _BITS else float(digits)


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


def _strip_both(text: Any, signs: Any = " ") -> str | None:
    return _strip_right(_strip_left(text, signs), signs)


def _strip_left(text: Any, signs: Any = " ") -> str | None:
    if text is None or signs is None:
        return None
    shown, known = _text(text), frozenset(_text(signs))
    return shown[next((at for at, sign in enumerate(shown) if sign not in known), len(shown)) :]


def _strip_right(text: Any, signs: Any = " ") -> str | None:
    if text is None or signs is None:
        return None
    shown, known = _text(text), frozenset(_text(signs))
    return shown[: len(shown) - next((at for at, sign in enumerate(reversed(shown)) if sign not in known), len(shown))]


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _limit(seconds: int, memory: int) -> None:
    """Let the system end this process after so many more seconds on the processor, and refuse it more memory."""
    _set_limit(resource.RLIMIT_CPU, math.ceil(time.process_time()) + seconds)
    if sys.platform == "linux":
        _set_limit(resource.RLIMIT_AS, memory)


def _set_limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _size_of_this_process() -> Callable[[], int]:
    """Return a function that returns the address space in bytes; it needs no file that is not open yet."""
    try:
        opened, page = os.open("/proc/self/statm", os.O_RDONLY), resource.getpagesize()
    except OSError:
        return lambda: 0
    return lambda: int(os.pread(opened, 100, 0).split()[0]) * page


def read_frame(source: IO[bytes]) -> bytes:
    """Return the next frame of an open file; raise EOFError if there is none."""
    header = source.read(HEADER.size)
    if len(header) < HEADER.size:
        raise EOFError
    return source.read(HEADER.unpack(header)[0])


def _blocks(source: IO[bytes]) -> Iterator[bytes]:
    while block := read_frame(source):
        yield block


def _plain(value: object) -> object:
    return {"hex": value.hex()} if isinstance(value, bytes) else str(value)


def _main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this process ends it
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    time.localtime()  # reads a file
    copy = _Copy(_size_of_this_process())
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE):
        resource.setrlimit(kind, (0, 0))
    while True:
        request = json.loads(read_frame(requests), parse_int=_integer)
        try:
            if "table" in request:
                blocks = _blocks(requests)
                answer = copy.add(request["table"], request["columns"], blocks)
                for _ in blocks:
                    pass
            else:
                answer = copy.select(**request)
            data = json.dumps(answer, ensure_ascii=False, default=_plain, separators=(",", ":")).encode(
                errors="replace"
            )
        except MemoryError:  # what is held then is known to nobody
            data = b'["memory"]'
        answers.write(HEADER.pack(len(data)) + data)
        answers.flush()
        if data == b'["memory"]':
            return


if __name__ == "__main__":
    with contextlib.suppress(EOFError, BrokenPipeError):
        _main()
