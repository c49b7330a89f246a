"""Open the SQLite file of a library: to write, or to read where it may not be written."""

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
from local_rag.store.schema import SCHEMA_VERSION, migrate, refuse_newer, schema_version
from local_rag.store.storage_errors import storage_errors

STORE_FILE = "library.sqlite3"
SALVAGED_FILE = "library.sqlite3.salvaged"
# What may lie in a folder before there is a store in it, from a run that was killed or by the user's own hand.
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
    """Open the store in a folder, with the copy that is read in its place where there is one.

    Raises LibraryError where there is none, a newer one, or one whose repair was interrupted.
    """
    path = folder / STORE_FILE
    if (folder / SALVAGED_FILE).exists():
        raise LibraryError(f"A repair of {folder} was interrupted; run `local-rag repair` to end it.")
    missing = f"There is no library in {folder}; make one with `local-rag index PATH`."
    if not path.exists() and not create:
        raise LibraryError(missing)
    with storage_errors(folder):
        writable = create or all(os.access(place, os.W_OK) for place in (folder, path))
        connection, copy = (_open(path), None) if writable else _open_to_read(path)
        try:
            refuse_newer(connection, path)
            if not create and not schema_version(connection):
                raise LibraryError(missing)
            if writable or copy:
                # On a network file system processes cannot share the memory that a write-ahead log needs.
                journal = "DELETE" if is_network(file_system(folder)) else "WAL"
                connection.execute(f"PRAGMA journal_mode = {journal}")
            # A generation may name no chunk that a power cut could take back.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA secure_delete = FAST")
            migrate(connection)
        except BaseException:
            connection.close()
            if copy:
                copy.cleanup()
            raise
    return connection, copy


def _open_to_read(path: Path) -> tuple[sqlite3.Connection, Copy | None]:
    """Open a file that may not be written: in place, or a copy of it with its log or that is to be migrated."""
    log = path.with_name(f"{STORE_FILE}-wal")
    if not (log.exists() and log.stat().st_size):
        connection = _open(f"{path.resolve().as_uri()}?mode=ro&immutable=1")
        if schema_version(connection) in (0, SCHEMA_VERSION):
            return connection, None
        connection.close()
    copy = TemporaryDirectory(prefix="local-rag-")
    for file in (path, log):
        if file.exists():
            shutil.copyfile(file, Path(copy.name) / file.name)
    return _open(Path(copy.name) / path.name), copy


def _open(path: Path | str) -> sqlite3.Connection:
    # Any thread may use it, one at a time: whoever shares a store among threads sees to that.
    return sqlite3.connect(path, timeout=30, isolation_level=None, uri=isinstance(path, str), check_same_thread=False)


def is_library(folder: Path) -> bool:
    """Say whether a folder holds a store, or what a repair has left of one."""
    return any((folder / name).exists() for name in (STORE_FILE, SALVAGED_FILE))


def remembered_settings(folder: Path) -> dict[str, Any]:
    """Return the settings that a library was last indexed with, none where there is no library that can be read."""
    try:
        with closing(sqlite3.connect(f"{(folder / STORE_FILE).resolve().as_uri()}?mode=ro", uri=True)) as connection:
            return {name: json.loads(value) for name, value in connection.execute("SELECT * FROM remembered")}
    except (sqlite3.Error, ValueError):
        return {}


def remembered(folder: Path, indexes: Indexes) -> dict[str, Any]:
    """Return the settings of the last `index`: from the store, or where that is damaged from the live index."""
    if known := remembered_settings(folder):
        return known
    with suppress(LibraryError, OSError):
        live = indexes.live()
        return dict(live.manifest.get("settings", {})) if live else {}
    return {}
