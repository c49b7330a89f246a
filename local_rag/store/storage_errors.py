"""Turn errors of SQLite and the file system into one sentence that says what to do."""

import errno
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from local_rag.errors import DamagedLibraryError, LibraryError, LocalRagError
from local_rag.machine import is_full
from local_rag.store.schema import STORE_FILE, create_tables

_FULL, _FAILING = "its disk is full: free some space", "check the disk, which may be failing,"
_FORBIDDEN, _BUSY = "make the folder writable for you", "end the other programs that use it"
_SQLITE_ADVICE = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: _FAILING,
    **dict.fromkeys((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM), _FORBIDDEN),
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), _BUSY),
}
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_CHECK_SECONDS, _STEPS = 10.0, 100_000  # in which what is wrong is looked for; of SQLite between two looks at the clock
_SAID_OF_FULL = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
_ELSEWHERE = {_FORBIDDEN: "give yourself access to it"}  # of a file that is not the library's
_SYSTEM_ADVICE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _FULL),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _FORBIDDEN),
}


def is_damaged(folder: Path) -> bool:
    """Return whether a library's file lacks a table or column, or SQLite soon finds something wrong with it.

    An error may come of damage, or of a value or a statement that SQLite refuses whatever the file holds.
    """
    columns = "SELECT t.name, c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'"
    path = f"{(folder / STORE_FILE).resolve().as_uri()}?mode=ro"
    try:
        with (
            closing(sqlite3.connect(":memory:", isolation_level=None)) as new,
            closing(sqlite3.connect(path, uri=True)) as opened,
        ):
            create_tables(new)
            last = time.monotonic() + _CHECK_SECONDS
            opened.set_progress_handler(lambda: time.monotonic() > last, _STEPS)
            if not set(new.execute(columns)) <= set(opened.execute(columns)):
                return True
            return [row[0] for row in opened.execute("PRAGMA quick_check(1)")] != ["ok"]
    except sqlite3.DatabaseError as error:
        return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in _DAMAGE


@contextmanager
def storage_errors(folder: Path, is_damaged: Callable[[Path], bool] = is_damaged) -> Iterator[None]:
    """Raise a LibraryError in place of errors of SQLite and the file system.

    `is_damaged` says whether an error that may come of damage does; other errors are bugs and stay what they are.
    """
    try:
        yield
    except LocalRagError:
        raise
    except (sqlite3.ProgrammingError, sqlite3.InternalError, sqlite3.NotSupportedError, sqlite3.IntegrityError):
        raise  # bugs in this program
    except sqlite3.DatabaseError as error:
        # Python raises an error without a code if stored text is no longer UTF-8.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code not in _SQLITE_ADVICE:
            if code not in _DAMAGE and not is_damaged(folder):
                raise
            raise DamagedLibraryError(
                f"The library in {folder} is damaged ({error})", "run `local-rag repair`"
            ) from error
        # On a full disk, SQLite also says that it cannot open or read a file.
        advice = _FULL if code in _SAID_OF_FULL and is_full(folder) else _SQLITE_ADVICE[code]
        raise _unusable(f"The library in {folder}", str(error), advice) from error
    except OSError as error:
        where = str(error.filename or "")
        advice = _SYSTEM_ADVICE.get(error.errno or 0, _FAILING)
        if where.startswith("/") and not Path(where).is_relative_to(folder):
            raise _unusable(where, str(error.strerror), _ELSEWHERE.get(advice, advice)) from error
        location = f" at {where}" if where else ""
        raise _unusable(f"The library in {folder}", f"{error.strerror or error}{location}", advice) from error


def _unusable(what: str, reason: str, advice: str) -> LibraryError:
    again = "run the same command again: everything finished so far is kept."
    return LibraryError(f"{what} cannot be used ({reason}); {advice} and {again}")
