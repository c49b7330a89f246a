"""Copy what is slow to make out of a damaged SQLite file into a new one.

Documents and chunks are not copied: reading the files again is quick and leaves none of them incomplete.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from local_rag.files import flush
from local_rag.store.connect import SALVAGED_FILE
from local_rag.store.schema import STORE_FILE, crc32, create_tables

_MOST_FRUITLESS_SPLITS = 16  # of a range of keys in which nothing can be read
_MOST_QUERIES = 100_000


def salvage(folder: Path) -> dict[str, int]:
    """Write what is readable and slow to make again to `library.sqlite3.salvaged`; count it.

    The file gets this name when it is complete. Rows that are not as they were written are left out.
    """
    temporary = folder / f"{SALVAGED_FILE}.tmp"
    for leftover in folder.glob(f"{SALVAGED_FILE}.tmp*"):
        leftover.unlink()
    with closing(sqlite3.connect(temporary, isolation_level=None)) as target:
        create_tables(target)
        target.execute("BEGIN")
        with closing(sqlite3.connect(folder / STORE_FILE, isolation_level=None)) as source:
            source.text_factory = bytes  # damaged text may no longer be UTF-8
            # The file cannot hold more rows: a key alone takes 64 bytes.
            most_rows = sum(path.stat().st_size for path in folder.glob(f"{STORE_FILE}*")) // 64
            counts = {
                "roots": _copy_texts(source, target, "roots", "path"),
                "excluded": _copy_texts(source, target, "excluded", "path"),
                "distinctions": _copy_texts(source, target, "distinctions", "content_key", "distinction", checked=1),
                "erasing": _copy_texts(source, target, "erasing", "path", "sha256"),
                "cells": _copy_texts(source, target, "cells", "path", "sha256", "asked", "cell", checked=3),
                "corrections": _copy_texts(
                    source, target, "corrections", "path", "sha256", "audience", "asked", "cell", checked=4
                ),
                "saved_tables": _copy_texts(source, target, "saved_tables", "id", "person", "name", "saved"),
                "contexts": _copy_contexts(source, target),
                "vectors": _copy_vectors(source, target, most_rows),
            }
            _copy_library_id(source, target)
            _carry_ids_on(source, target)
        target.execute("COMMIT")
    temporary.rename(folder / SALVAGED_FILE)
    return counts


def switch(folder: Path) -> None:
    """Replace the damaged store by the salvaged one; keep the damaged one as `library.sqlite3.damaged`."""
    for suffix in ("-wal", "-shm", ""):
        path = folder / f"{STORE_FILE}{suffix}"
        if path.exists():
            path.rename(folder / f"{STORE_FILE}.damaged{suffix}")
    (folder / SALVAGED_FILE).rename(folder / STORE_FILE)
    flush(folder)


def _carry_ids_on(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Let new documents and chunks have other ids than the lost ones, which other programs may know."""
    last = dict[bytes, int]()
    with suppress(sqlite3.DatabaseError):
        last = dict(source.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
    unknown = int(time.time() * 1000)  # more than any library can hold
    rows = [(name, last.get(name.encode(), unknown)) for name in ("documents", "chunks")]
    target.executemany("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", rows)


def _copy_library_id(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    with suppress(sqlite3.DatabaseError):
        rows = source.execute("SELECT id FROM library").fetchall()
        if rows and _is_text(rows[0][0]):
            target.execute("UPDATE library SET id = CAST(? AS TEXT)", rows[0])


def _copy_texts(
    source: sqlite3.Connection, target: sqlite3.Connection, table: str, *columns: str, checked: int | None = None
) -> int:
    """Copy columns of text of the readable rows of a table, if its checksum fits the one with the number `checked`."""
    chosen = columns if checked is None else (*columns, "checksum")
    # Names of tables and columns are constants.
    select = f"SELECT rowid, {', '.join(chosen)} FROM {table} WHERE rowid BETWEEN ? AND ? ORDER BY rowid"  # noqa: S608
    rows = [row[1:] for row in _read(source, select, 2**32) if _is_text(*row[1 : len(columns) + 1])]
    rows = [row for row in rows if checked is None or row[-1] == crc32(row[checked])]
    marks = ", ".join("?" if name == "checksum" else "CAST(? AS TEXT)" for name in chosen)
    target.executemany(f"INSERT OR IGNORE INTO {table} ({', '.join(chosen)}) VALUES ({marks})", rows)  # noqa: S608
    return len(rows)


def _copy_contexts(source: sqlite3.Connection, target: sqlite3.Connection) -> int:
    # Keys are SHA-256 in hexadecimal: their first 15 digits are a number that orders them.
    select = (
        "SELECT key, text, kind, checksum FROM contexts "
        "WHERE key BETWEEN printf('%015x', ?) AND printf('%015x', ?) || 'g' ORDER BY key"
    )
    rows = [row for row in _read(source, select, 16**15 - 1) if _is_text(*row[:3]) and row[3] == crc32(row[2], row[1])]
    target.executemany("INSERT INTO contexts VALUES (CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), ?)", rows)
    return len(rows)


def _copy_vectors(source: sqlite3.Connection, target: sqlite3.Connection, most_rows: int) -> int:
    select = "SELECT rowid, key, vector, checksum FROM vectors WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
    insert = "INSERT OR IGNORE INTO vectors VALUES (CAST(? AS TEXT), ?, ?)"
    copied = 0
    for _, key, vector, checksum in _read(source, select, most_rows):
        if _is_text(key) and isinstance(vector, bytes) and checksum == crc32(vector):
            copied += target.execute(insert, (key, vector, checksum)).rowcount
    return copied


def _read(source: sqlite3.Connection, select: str, most: int) -> Iterator[tuple[Any, ...]]:
    """Yield the readable rows around unreadable pages: from both ends of a range, then from both ends of its halves.

    The first column is the key that `select` compares with its two numbers and orders by.
    """
    ranges, queries = [(0, most, 0)], 0
    while ranges and queries < _MOST_QUERIES:
        low, high, fruitless = ranges.pop()
        queries += 2
        edges = [low - 1, high + 1]
        whole, fruitful = False, False
        for end, order in enumerate(("", " DESC")):
            try:
                for row in source.execute(select + order, (low, high)):
                    number = int(row[0][:15], 16) if isinstance(row[0], bytes) else row[0]
                    edges[end] = number
                    fruitful = True
                    yield row
                whole = True
            except sqlite3.DatabaseError:
                low = max(low, edges[0] + 1)
            if whole or low > high:
                break
        fruitless = 0 if fruitful else fruitless + 1
        low, high = edges[0] + 1, edges[1] - 1
        if not whole and low < high and fruitless < _MOST_FRUITLESS_SPLITS:
            middle = (low + high) // 2
            ranges += [(middle + 1, high, fruitless), (low, middle, fruitless)]


def _is_text(*values: object) -> bool:
    """Say whether all values are bytes that are UTF-8."""
    try:
        return all(isinstance(value, bytes) and value.decode() is not None for value in values)
    except UnicodeDecodeError:
        return False
