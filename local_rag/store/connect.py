"""Open the SQLite file of a library for writing, or for reading only if it cannot be written."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from local_rag.errors import LibraryError
from local_rag.files import SETTINGS_FILE, no_library, state_of
from local_rag.index.protocol import Indexes
from local_rag.machine import file_system, is_full, is_network, is_read_only
from local_rag.store.schema import STORE_FILE, add_later_tables, create_tables, require_version, schema_version
from local_rag.store.storage_errors import storage_errors

SALVAGED_FILE = "library.sqlite3.salvaged"
# Files that a folder may hold before it has a store: left by a killed run, or put there by the user.
OWN_FILES = frozenset({"lock", "lock.pid", SETTINGS_FILE, "evaluations.jsonl", f"{STORE_FILE}-journal"}).union(
    f"{name}.sqlite3{journal}" for name in ("history", "people") for journal in ("", "-journal")
)

# What SQLite raises if a file cannot be opened in some way; another way may do.
_CANNOT_OPEN = {
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
}
_SHARED_BYTES = 32 * 1024  # of the index of a log in use; without room, SQLite leaves a shorter file
_COPIES = 3  # attempts to copy a store that somebody is writing


class Opened(NamedTuple):
    """An open store: its connection, and whether its file is read without locks."""

    connection: sqlite3.Connection
    unlocked: bool = False


def connect(folder: Path, *, create: bool = False, write: bool = False) -> Opened:
    """Open the store in a folder, for reading at least; with `create` or `write`, for writing or not at all.

    A store that cannot be written, because of its permissions, its disk or because the disk is full, is read: with
    SQLite's locks, which works beside a writer; without locks if nobody can write; from a copy otherwise.

    Raises LibraryError if the store is missing, of another schema version, or left by an interrupted repair.
    """
    path = folder / STORE_FILE
    if (folder / SALVAGED_FILE).exists():
        raise LibraryError(f"A repair of {folder} was interrupted; run `local-rag repair` to finish it.")
    missing = no_library(folder)
    if not path.exists() and not create:
        raise LibraryError(missing)
    with storage_errors(folder):
        first: sqlite3.OperationalError | None = None
        for way in _ways(folder, write=create or write):
            try:
                opened = way(path)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _CANNOT_OPEN:
                    raise
                first = first or error
                continue
            first = None  # it refers to this frame, and would keep what is open in it
            try:
                require_version(opened.connection, path)
                if not create and not schema_version(opened.connection):
                    raise LibraryError(missing)
                if way is _to_write:
                    _prepare_to_write(opened.connection, folder)
                create_tables(opened.connection)
                add_later_tables(opened.connection, write=create or write)
            except BaseException:
                opened.connection.close()
                raise
            return opened
        assert first is not None
        raise first


def _ways(folder: Path, *, write: bool) -> Iterator[Callable[[Path], Opened]]:
    """Yield the ways to open a store, the best first."""
    if write or all(os.access(one, os.W_OK) for one in (folder, folder / STORE_FILE)):
        yield _to_write
    if not write:
        yield lambda path: Opened(_checked(_open(f"{path.resolve().as_uri()}?mode=ro")))
        if (is_read_only(folder) or is_full(folder)) and not in_use(folder):
            yield lambda path: Opened(_checked(_open(f"{path.resolve().as_uri()}?mode=ro&immutable=1")), unlocked=True)
        yield _copied


def _to_write(path: Path) -> Opened:
    return Opened(_checked(_open(path)))


def _prepare_to_write(connection: sqlite3.Connection, folder: Path) -> None:
    # On a network file system processes cannot share the memory that a write-ahead log needs.
    connection.execute(f"PRAGMA journal_mode = {'DELETE' if is_network(file_system(folder)) else 'WAL'}")
    # A published generation must never name a chunk that a power cut can undo.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")  # macOS keeps writes in the disk's cache otherwise
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA secure_delete = ON")


def _copied(path: Path) -> Opened:
    """Open a copy of a store and its log that is certainly of one moment: neither changed while it was copied.

    The copy has no name once it is open, so however this process ends, nothing of it is left.
    """
    files = [path, path.with_name(f"{STORE_FILE}-wal")]
    with TemporaryDirectory[str](prefix="local-rag-") as copy:
        for _ in range(_COPIES):
            before = list(map(state_of, files))
            for file, state in zip(files, before, strict=True):
                if state:
                    shutil.copyfile(file, Path(copy) / file.name)
            if list(map(state_of, files)) == before and _size(path.with_name(f"{STORE_FILE}-shm")) < _SHARED_BYTES:
                return Opened(_checked(_open(Path(copy) / path.name)))
            with suppress(sqlite3.OperationalError):  # somebody writes, so it can be read with locks by now
                return Opened(_checked(_open(f"{path.resolve().as_uri()}?mode=ro")))
        raise LibraryError(f"The library in {path.parent} is being written; run the same command again.")


def _size(file: Path) -> int:
    state = state_of(file)
    return state[-1] if state else 0


def in_use(folder: Path) -> bool:
    """Say whether a log or its index lies beside a store: somebody has it open, or was killed and left changes."""
    return bool(_size(folder / f"{STORE_FILE}-wal")) or _size(folder / f"{STORE_FILE}-shm") >= _SHARED_BYTES


def _checked(connection: sqlite3.Connection) -> sqlite3.Connection:
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _open(path: Path | str) -> sqlite3.Connection:
    # Any thread may use the connection, one at a time: code that shares a store among threads must ensure that.
    return sqlite3.connect(path, timeout=30, isolation_level=None, uri=isinstance(path, str), check_same_thread=False)


def is_library(folder: Path) -> bool:
    """Say whether a folder holds a store, or the remains of one after an interrupted repair."""
    return any((folder / name).exists() for name in (STORE_FILE, SALVAGED_FILE))


def remembered_settings(folder: Path) -> dict[str, Any]:
    """Return the settings that a library was last indexed with, none if no library can be read."""
    uri = f"{(folder / STORE_FILE).resolve().as_uri()}?mode=ro"
    for way in (uri,) if in_use(folder) else (uri, f"{uri}&immutable=1"):
        with suppress(sqlite3.Error, ValueError), closing(sqlite3.connect(way, uri=True)) as connection:
            return {name: json.loads(value) for name, value in connection.execute("SELECT * FROM remembered")}
    return {}


def remembered(folder: Path, indexes: Indexes) -> dict[str, Any]:
    """Return the settings of the last `index`: from the store, or from the live index if the store is damaged."""
    if known := remembered_settings(folder):
        return known
    with suppress(LibraryError, OSError):
        live = indexes.live()
        return dict(live.manifest.get("settings", {})) if live else {}
    return {}
