"""Files: open and hash them, replace them atomically, flush them to disk, measure their size."""

import contextlib
import errno
import hashlib
import os
import stat
import threading
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

DEFAULT_FOLDER = Path(".local-rag")  # of a library, in the current folder
SETTINGS_FILE = "settings.toml"  # the user's own settings, in the library's folder
# The file in which `scrape` records the pages of a folder; reading takes the URL of a PDF from it.
SCRAPE_STATE = ".scrape.json"


@contextlib.contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """Open a user's file for reading; raise OSError if it is not, or no longer, a regular file.

    O_NONBLOCK is needed because opening a FIFO would wait for a writer, O_NOFOLLOW because a link may lead anywhere.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    with os.fdopen(descriptor, "rb") as file:
        yield file


def is_utf8(name: str) -> bool:
    """Return whether a name, path or question is valid Unicode, without surrogates for bytes that are not UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of one of the program's own files."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def document_sha256(path: Path) -> str:
    """Return the SHA-256 of a user's file."""
    with open_regular(path) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def write_whole(path: Path, content: bytes | str, *, durable: bool = False) -> None:
    """Replace a file atomically: a reader sees the old content or the new. With `durable` it also survives a power cut.

    A killed process may leave a hidden file that ends in `.tmp`.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{threading.get_ident()}.tmp")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        if durable:
            flush(temporary)
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    if durable:
        flush(path.parent)


def flush(path: Path) -> None:
    """Flush a file or folder to disk, so that it survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def folder_bytes(path: Path) -> int:
    """Return the size of a file or of all files below a folder; other processes may change the folder meanwhile."""
    total = 0
    for file in (path, *path.rglob("*")) if path.is_dir() else (path,):
        with contextlib.suppress(OSError):
            total += file.lstat().st_size if file.is_file() else 0
    return total


def is_locked(path: Path) -> bool:
    """Return whether a process holds a lock on a file, without trying to take it; works only on Linux."""
    with contextlib.suppress(OSError, ValueError):
        inode = path.stat().st_ino
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if "WRITE" in fields and int(fields[fields.index("WRITE") + 2].rpartition(":")[2]) == inode:
                return True
    return False


def constraints() -> Path | None:
    """Return the list of pinned package versions of the checkout, or of the installed package; None if missing."""
    package = Path(__file__).parent
    return next((path for folder in (package.parent, package) if (path := folder / "constraints.txt").is_file()), None)
