"""Count how a library is used, in its history file: questions, refusals and seconds, and nothing of their text."""

import sqlite3
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from local_rag.store.history import HISTORY_FILE

_TABLE = "CREATE TABLE IF NOT EXISTS uses (at REAL NOT NULL, answered INTEGER NOT NULL, seconds REAL NOT NULL)"
_DAYS = 30
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Usage:
    """What was asked in the last thirty days; `median_seconds` is 0 where nothing was."""

    questions: int = 0
    refused: int = 0
    median_seconds: float = 0.0


def count_use(folder: Path, *, answered: bool, seconds: float) -> None:
    """Count a question; where the library may not be written none is counted."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(folder / HISTORY_FILE, timeout=1)) as connection, connection:
        connection.execute(_TABLE)
        connection.execute("DELETE FROM uses WHERE at < ?", (time.time() - _DAYS * _DAY,))
        connection.execute("INSERT INTO uses VALUES (?, ?, ?)", (time.time(), answered, seconds))


def usage_of(folder: Path) -> Usage:
    """Return what was counted; nothing is written."""
    if not (folder / HISTORY_FILE).exists():
        return Usage()
    address = f"{(folder / HISTORY_FILE).resolve().as_uri()}?mode=ro"
    with suppress(sqlite3.Error), closing(sqlite3.connect(address, uri=True)) as connection:
        since = time.time() - _DAYS * _DAY
        rows = connection.execute("SELECT answered, seconds FROM uses WHERE at >= ?", (since,)).fetchall()
        return Usage(len(rows), sum(not answered for answered, _ in rows), median([s for _, s in rows] or [0.0]))
    return Usage()
