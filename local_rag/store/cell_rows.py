"""The cells of extracted tables: stored under the content of the document and all that a cell depends on.

A cell is committed the moment it exists, and goes with the last document of its content. Saved tables are columns with
filters; each belongs to a person.
"""

import json
from collections.abc import Callable, Iterable, Mapping

from local_rag.files import move_filters
from local_rag.serialization import to_line
from local_rag.store.database import Store
from local_rag.store.schema import crc32


def stored_cells(store: Store, content: str, keys: Iterable[str]) -> dict[str, str]:
    """Return the cells of a document's content that are stored under these keys, as JSON."""
    query = "SELECT asked, cell FROM cells WHERE sha256 = ? AND asked IN (SELECT value FROM json_each(?))"
    return dict(store.connection.execute(query, (content, json.dumps(list(keys)))))


def put_cells(store: Store, content: str, cells: Mapping[str, str], instead_of: Iterable[str] = ()) -> None:
    """Store cells of a document's content, each under its key, unless no document has this content any more.

    They take the place of what is stored under other keys.
    """
    with store.transaction():
        store.connection.executemany(
            "INSERT OR REPLACE INTO cells SELECT ?1, ?2, ?3, ?4 "
            "WHERE EXISTS (SELECT 1 FROM documents WHERE sha256 = ?1)",
            [(content, key, cell, crc32(cell)) for key, cell in cells.items()],
        )
        gone = [(content, key) for key in instead_of]
        store.connection.executemany("DELETE FROM cells WHERE sha256 = ? AND asked = ?", gone)


def drop_cell(store: Store, content: str, key: str) -> None:
    """Delete a cell."""
    store.connection.execute("DELETE FROM cells WHERE sha256 = ? AND asked = ?", (content, key))


def drop_unused_cells(store: Store) -> None:
    """Delete the cells of contents that no document has."""
    store.connection.execute("DELETE FROM cells WHERE sha256 NOT IN (SELECT sha256 FROM documents)")


def saved_tables(store: Store, person: str) -> list[tuple[str, str]]:
    """Return the tables of a person, by name: the id of each, and what is saved of it."""
    query = "SELECT id, saved FROM saved_tables WHERE person = ? ORDER BY name, id"
    return list(store.connection.execute(query, (person,)))


def put_table(store: Store, identifier: str, person: str, name: str, saved: str) -> None:
    """Save a table, or replace it if it is this person's."""
    store.connection.execute(
        "INSERT INTO saved_tables VALUES (?1, ?2, ?3, ?4) "
        "ON CONFLICT (id) DO UPDATE SET name = ?3, saved = ?4 WHERE person = ?2",
        (identifier, person, name, saved),
    )


def forget_tables(store: Store, names: Callable[[str], bool]) -> None:
    """Delete the saved tables that name, among their documents, what is erased."""
    rows = store.connection.execute("SELECT id, saved FROM saved_tables").fetchall()
    gone = [(key,) for key, saved in rows if any(map(names, json.loads(saved)["filters"]["within"]))]
    with store.transaction():
        store.connection.executemany("DELETE FROM saved_tables WHERE id = ?", gone)


def move_tables(store: Store, moved: Mapping[str, str]) -> None:
    """Let the saved tables that name a document by its former path name it where it is now."""
    for key, text in store.connection.execute("SELECT id, saved FROM saved_tables").fetchall():
        saved = json.loads(text)
        if move_filters(saved["filters"], moved):
            store.connection.execute("UPDATE saved_tables SET saved = ? WHERE id = ?", (to_line(saved).decode(), key))


def holds_tables(store: Store, person: str = "") -> bool:
    """Return whether a person has saved tables, or without an id whether anybody has."""
    query = "SELECT 1 FROM saved_tables WHERE ?1 IN ('', person) LIMIT 1"
    return bool(store.column(query, person))


def drop_tables(store: Store, person: str = "") -> None:
    """Delete the saved tables of a person, or without an id those of everybody."""
    store.connection.execute("DELETE FROM saved_tables WHERE ?1 IN ('', person)", (person,))


def drop_table(store: Store, identifier: str, person: str) -> None:
    """Delete a table of a person; its cells stay."""
    store.connection.execute("DELETE FROM saved_tables WHERE id = ? AND person = ?", (identifier, person))
