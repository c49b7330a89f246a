"""Turn errors of SQLite and the file system into one sentence that says what to do."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local_rag.errors import DamagedLibraryError, LibraryError, LocalRagError

_FULL, _FAILING = "free some space on its disk", "check the disk, which may be failing,"
_FORBIDDEN, _BUSY = "make the folder writable for you", "end the other programs that use it"
_SQLITE_ADVICE = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: _FAILING,
    sqlite3.SQLITE_READONLY: _FORBIDDEN,
    sqlite3.SQLITE_CANTOPEN: _FORBIDDEN,
    sqlite3.SQLITE_PERM: _FORBIDDEN,
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
}
_SYSTEM_ADVICE = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EACCES: _FORBIDDEN,
    errno.EPERM: _FORBIDDEN,
    errno.EROFS: _FORBIDDEN,
}


@contextmanager
def storage_errors(folder: Path) -> Iterator[None]:
    """Raise a LibraryError in place of errors of SQLite and the file system."""
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
            raise DamagedLibraryError(
                f"The library in {folder} is damaged ({error})", "run `local-rag repair`"
            ) from error
        raise _unusable(folder, str(error), _SQLITE_ADVICE[code]) from error
    except OSError as error:
        location = f" at {error.filename}" if error.filename else ""
        advice = _SYSTEM_ADVICE.get(error.errno or 0, _FAILING)
        raise _unusable(folder, f"{error.strerror or error}{location}", advice) from error


def _unusable(folder: Path, reason: str, advice: str) -> LibraryError:
    return LibraryError(
        f"The library in {folder} cannot be used ({reason}); {advice} and run the same command again: "
        "everything finished so far is kept."
    )
