"""Open the SQLite file of a library for writing, or for reading only if it may not be written."""

import json
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from local_rag.errors import LibraryError
from local_rag.files import SETTINGS_FILE
from local_rag.index.protocol import Indexes
from local_rag.machine import file_system, is_network
from local_rag.store.schema import create_tables, require_version, schema_version
from local_rag.store.storage_errors import storage_errors

STORE_FILE = "library.sqlite3"
SALVAGED_FILE = "library.sqlite3.salvaged"
# Files that a folder may hold before it has a store: left by a killed run, or put there by the user.
OWN_FILES = frozenset(
    {
        "lock",
        "lock.pid",
        SETTINGS_FILE,
        "history.sqlite3",
        "history.sqlite3-journal",
        "evaluations.jsonl",
        f"{STORE_FILE}-journal",
    }
)

Copy = TemporaryDirectory[str]


def connect(folder: Path, *, create: bool) -> tuple[sqlite3.Connection, Copy | None]:
    """Open the store in a folder; return the connection, and the temporary copy if a copy is read instead.

    Raises LibraryError if the store is missing, of another schema version, or left by an interrupted repair.
    """
    path = folder / STORE_FILE
    if (folder / SALVAGED_FILE).exists():
        raise LibraryError(f"A repair of {folder} was interrupted; run `local-rag repair` to finish it.")
    missing = f"There is no library in {folder}; make one with `local-rag index PATH`."
    if not path.exists() and not create:
        raise LibraryError(missing)
    with storage_errors(folder):
        writable = create or all(os.access(one, os.W_OK) for one in (folder, path))
        connection, copy = (_open(path), None) if writable else _open_to_read(path)
        try:
            require_version(connection, path)
            if not create and not schema_version(connection):
                raise LibraryError(missing)
            if writable or copy:
                # On a network file system processes cannot share the memory that a write-ahead log needs.
                journal = "DELETE" if is_network(file_system(folder)) else "WAL"
                connection.execute(f"PRAGMA journal_mode = {journal}")
            # A published generation must never name a chunk that a power cut can undo.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA secure_delete = FAST")
            create_tables(connection)
        except BaseException:
            connection.close()
            if copy:
                copy.cleanup()
            raise
    return connection, copy


def _open_to_read(path: Path) -> tuple[sqlite3.Connection, Copy | None]:
    """Open a file that may not be written: in place, or as a copy if changes in its log are still to be applied."""
    log = path.with_name(f"{STORE_FILE}-wal")
    if not (log.exists() and log.stat().st_size):
        return _open(f"{path.resolve().as_uri()}?mode=ro&immutable=1"), None
    copy = TemporaryDirectory(prefix="local-rag-")
    for file in (path, log):
        if file.exists():
            shutil.copyfile(file, Path(copy.name) / file.name)
    return _open(Path(copy.name) / path.name), copy


def _open(path: Path | str) -> sqlite3.Connection:
    # Any thread may use the connection, one at a time: code that shares a store among threads must ensure that.
    return sqlite3.connect(path, timeout=30, isolation_level=None, uri=isinstance(path, str), check_same_thread=False)


def is_library(folder: Path) -> bool:
    """Say whether a folder holds a store, or the remains of one after an interrupted repair."""
    return any((folder / name).exists() for name in (STORE_FILE, SALVAGED_FILE))


def remembered_settings(folder: Path) -> dict[str, Any]:
    """Return the settings that a library was last indexed with, none if no library can be read."""
    try:
        with closing(sqlite3.connect(f"{(folder / STORE_FILE).resolve().as_uri()}?mode=ro", uri=True)) as connection:
            return {name: json.loads(value) for name, value in connection.execute("SELECT * FROM remembered")}
    except (sqlite3.Error, ValueError):
        return {}


def remembered(folder: Path, indexes: Indexes) -> dict[str, Any]:
    """Return the settings of the last `index`: from the store, or from the live index if the store is damaged."""
    if known := remembered_settings(folder):
        return known
    with suppress(LibraryError, OSError):
        live = indexes.live()
        return dict(live.manifest.get("settings", {})) if live else {}
    return {}
