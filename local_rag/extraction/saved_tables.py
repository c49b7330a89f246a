"""Tables that a person has saved to run them again: their columns, and which documents they are about."""

import json
import secrets
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from local_rag.asking import Filters
from local_rag.errors import LibraryError, MissingError
from local_rag.extraction.columns import Column
from local_rag.serialization import from_plain, to_line
from local_rag.store.cell_rows import drop_table, put_table, saved_tables
from local_rag.store.database import Store

_MOST = 100  # tables of a person


@dataclass(frozen=True, slots=True)
class SavedTable:
    """A table: its `id`, which cannot be guessed, its name, columns and documents.

    Only a preview of the first documents is asked until `whole`.
    """

    id: str
    name: str
    columns: tuple[Column, ...]
    filters: Filters
    newest: bool = False
    whole: bool = False


class SavedTables:
    """The tables of one person in the library in a folder; where questions are not `kept`, none is added."""

    def __init__(self, folder: Path, person: str, *, kept: bool = True) -> None:
        self._folder, self._person, self._kept = folder, person, kept

    def all(self) -> list[SavedTable]:
        """Return the tables, by name; one of another version is left out."""
        with closing(Store(self._folder)) as store:
            rows = saved_tables(store, self._person)
        found = list[SavedTable]()
        for _, saved in rows:
            try:
                found.append(from_plain(SavedTable, json.loads(saved)))
            except ValueError:
                continue
        return found

    def get(self, identifier: str) -> SavedTable:
        """Return a table; raise MissingError if this person has none of this id."""
        found = next((one for one in self.all() if one.id == identifier), None)
        if found is None:
            raise MissingError("There is no such table, or not any more.")
        return found

    def add(self, name: str, columns: Sequence[Column], filters: Filters, *, newest: bool) -> SavedTable:
        """Save a new table; raise LibraryError where none is kept, or there are too many."""
        if not self._kept:
            raise LibraryError("The setting history is off, so no table is saved; use `local-rag extract`.")
        if len(self.all()) >= _MOST:
            raise LibraryError(f"There are {_MOST} tables already; forget one first.")
        return self.put(SavedTable(secrets.token_urlsafe(12), name, tuple(columns), filters, newest))

    def put(self, table: SavedTable) -> SavedTable:
        """Save a table in place of the one with its id."""
        with closing(Store(self._folder, write=True)) as store:
            put_table(store, table.id, self._person, table.name, to_line(table).decode())
        return table

    def forget(self, identifier: str) -> None:
        """Delete a table; what was asked for it stays in the library."""
        with closing(Store(self._folder, write=True)) as store:
            drop_table(store, identifier, self._person)
