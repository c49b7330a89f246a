"""The cells of extracted tables, what people have typed into them, and the tables that people have saved.

Cells belong to a document, by path and content: of a copy that somebody does not see, nobody tells even that it was
asked. A model's cell is stored under all that it depends on, is committed the moment it exists, and goes with its
document. What a person types also belongs to those who see the same of the library, because it may say what others are
not to know. Saved tables are columns with filters; each belongs to a person.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import PurePath
from typing import Any

from local_rag.files import move_filters
from local_rag.serialization import to_line
from local_rag.store.database import Store, StoredDocument
from local_rag.store.relation_rows import is_in_a_text
from local_rag.store.schema import crc32
from local_rag.text.words import caseless, words_of

_OF_DOCUMENT = "(path, sha256) IN (SELECT path, sha256 FROM documents WHERE id = ?1)"
_KEPT = ("cells", "corrections")


def stored_cells(store: Store, document: int, keys: Iterable[str]) -> dict[str, str]:
    """Return the cells of a document that are stored under these keys, as JSON."""
    query = (
        f"SELECT asked, cell FROM cells WHERE {_OF_DOCUMENT} "  # noqa: S608
        "AND asked IN (SELECT value FROM json_each(?2))"
    )
    return dict(store.connection.execute(query, (document, json.dumps(list(keys)))))


def put_cells(store: Store, document: int, cells: Mapping[str, str], instead_of: Iterable[str] = ()) -> None:
    """Store cells of a document, each under its key, unless it is gone by now.

    They take the place of what is stored under other keys.
    """
    with store.transaction():
        store.connection.executemany(
            "INSERT OR REPLACE INTO cells SELECT path, sha256, ?2, ?3, ?4 FROM documents WHERE id = ?1",
            [(document, key, cell, crc32(cell)) for key, cell in cells.items()],
        )
        gone = [(document, key) for key in instead_of]
        delete = f"DELETE FROM cells WHERE {_OF_DOCUMENT} AND asked = ?2"  # noqa: S608
        store.connection.executemany(delete, gone)


def corrections(store: Store, document: int, audience: str, keys: Iterable[str]) -> dict[str, str]:
    """Return what this audience typed into the cells of a document that have these keys, as JSON.

    Who sees everything, an empty audience, also sees what others typed where nobody who sees everything did.
    """
    query = (
        "SELECT asked, cell FROM documents JOIN corrections USING (path, sha256) WHERE documents.id = ?1 "
        "AND ?2 IN ('', audience) AND asked IN (SELECT value FROM json_each(?3)) "
        "ORDER BY audience = ?2, corrections.rowid"
    )
    return dict(store.connection.execute(query, (document, audience, json.dumps(list(keys)))))


def put_correction(store: Store, document: int, audience: str, key: str, cell: str) -> None:
    """Store what an audience typed into a cell of a document."""
    store.connection.execute(
        "INSERT OR REPLACE INTO corrections SELECT path, sha256, ?2, ?3, ?4, ?5 FROM documents WHERE id = ?1",
        (document, audience, key, cell, crc32(cell)),
    )


def drop_correction(store: Store, document: int, audience: str, key: str) -> None:
    """Delete what an audience typed into a cell of a document, and for who sees everything what anybody did."""
    store.connection.execute(
        f"DELETE FROM corrections WHERE {_OF_DOCUMENT} "  # noqa: S608
        "AND ?2 IN ('', audience) AND asked = ?3",
        (document, audience, key),
    )


def move_cells(store: Store, moved: Mapping[str, str]) -> None:
    """Let cells and corrections of documents that have moved, from former to present paths, belong to them."""
    with store.transaction():
        for table in _KEPT:
            rows = store.connection.execute(f"SELECT rowid, * FROM {table} ORDER BY rowid").fetchall()  # noqa: S608
            there = [row for row in rows if row[1] in moved]
            delete = f"DELETE FROM {table} WHERE rowid = ?"  # noqa: S608
            store.connection.executemany(delete, [row[:1] for row in there])
            for row in there:
                marks = ", ".join("?" * (len(row) - 1))
                insert = f"INSERT OR REPLACE INTO {table} VALUES ({marks})"  # noqa: S608
                store.connection.execute(insert, (moved[row[1]], *row[2:]))


def place_of_cells(store: Store, document: int) -> tuple[str, ...]:
    """Return path and content of a document, to which its cells belong; nothing if it is gone."""
    found = store.connection.execute("SELECT path, sha256 FROM documents WHERE id = ?", (document,)).fetchone()
    return tuple(map(str, found or ()))


def drop_unused_cells(store: Store) -> None:
    """Delete the cells and corrections of documents that are gone."""
    for table in _KEPT:
        gone = "(path, sha256) NOT IN (SELECT path, sha256 FROM documents)"
        store.connection.execute(f"DELETE FROM {table} WHERE {gone}")  # noqa: S608


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


def forget_tables_that_quote(store: Store, documents: Collection[StoredDocument]) -> None:
    """Delete the saved tables with a word, in a name or a question, that only these documents have."""
    rows = [(key, json.loads(saved)) for key, saved in store.connection.execute("SELECT id, saved FROM saved_tables")]
    words = {key: _words(saved["name"], saved["columns"]) for key, saved in rows}
    wanted = frozenset[str]().union(*words.values())
    if not wanted:
        return
    held = set[str]()
    for one in documents:
        held |= wanted & _words(one.title, PurePath(one.path).name, store.document_text(one.id))
    paths = [one.path for one in documents]
    only = {word for word in held if not is_in_a_text(store, [word], paths)}
    with store.transaction():
        gone = [(key,) for key, its in words.items() if its & only]
        store.connection.executemany("DELETE FROM saved_tables WHERE id = ?", gone)


def _words(*values: Any) -> frozenset[str]:
    """Return the words of all texts in plain values, without case."""
    found = frozenset[str]()
    for value in values:
        if isinstance(value, str):
            found |= {caseless(word) for word in words_of(value)}
        elif isinstance(value, Mapping | list):
            found |= _words(*(value.values() if isinstance(value, Mapping) else value))
    return found


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
