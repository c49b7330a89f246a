"""Store and find how documents are related: what links where, and by what versions of one are recognised."""

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from local_rag.document_records import Document
from local_rag.store.database import Store


class StoredLink(NamedTuple):
    """A link from a document."""

    document_id: int
    kind: str
    target: str


def put_links(store: Store, documents: Iterable[tuple[int, Document]]) -> None:
    """Store the names and links of new documents, each with the id of its document."""
    with store.transaction():
        for identifier, document in documents:
            names = [(identifier, name, name_key(name)) for name in document.names]
            links = [
                (identifier, at, one.kind, one.target, name_key(one.target)) for at, one in enumerate(document.links)
            ]
            store.connection.executemany("INSERT OR IGNORE INTO document_names VALUES (?, ?, ?)", names)
            store.connection.executemany("INSERT INTO document_links VALUES (?, ?, ?, ?, ?)", links)


def name_key(name: str) -> str:
    """Return by what a name is looked for: without case, folders and the suffix of a note."""
    last = name.rstrip("/").rpartition("/")[2] if "@" not in name else name
    return last.casefold().removesuffix(".md")


def links_of(store: Store, document_id: int) -> list[StoredLink]:
    """Return the links of a document in their order."""
    return _links(store, "document_id = ? ORDER BY position", document_id)


def links_to(store: Store, keys: Collection[str]) -> list[StoredLink]:
    """Return the links whose target may have one of these keys."""
    marks = ", ".join("?" * len(keys))
    return _links(store, f"key IN ({marks}) ORDER BY document_id, position", *keys)


def _links(store: Store, condition: str, *values: object) -> list[StoredLink]:
    query = f"SELECT document_id, kind, target FROM document_links WHERE {condition}"  # noqa: S608  conditions of ours
    return [StoredLink(*row) for row in store.connection.execute(query, values)]


def names_of(store: Store) -> list[tuple[int, str]]:
    """Return the names of all documents beside those of their files, as (document id, name)."""
    return store.connection.execute("SELECT document_id, name FROM document_names ORDER BY 1, 2").fetchall()


def file_keys(path: str) -> set[str]:
    """Return the keys of a file's names: with its suffix and without."""
    file = PurePosixPath(path)
    return {file.name.casefold(), file.stem.casefold()}


def paths_named(store: Store, name: str) -> list[str]:
    """Return the paths of the live documents that have a name beside that of their file."""
    query = "SELECT path FROM documents JOIN document_names ON document_id = id WHERE live AND key = ? AND name = ?"
    return [path for (path,) in store.connection.execute(query, (name_key(name), name))]


def mail_numbers(store: Store, paths: Collection[str]) -> dict[str, str]:
    """Return the number of each mail at these paths, by path."""
    query = (
        "SELECT path, name FROM documents JOIN document_names ON document_id = id "
        "WHERE live AND path IN (SELECT value FROM json_each(?)) AND instr(name, '@')"
    )
    return dict(store.connection.execute(query, (json.dumps(list(paths)),)))


class StoredVersion(NamedTuple):
    """A live document with its keys."""

    id: int
    path: str
    title: str
    modified_ns: int
    name_key: str
    title_key: str
    dated: str
    sketch: bytes


_QUERY = """
SELECT documents.id, path, documents.title, modified_ns, version_keys.name, version_keys.title, dated, sketch
FROM version_keys JOIN documents ON documents.id = document_id
WHERE live
"""
_SHARED = (
    "version_keys.{0} IN (SELECT version_keys.{0} FROM version_keys JOIN documents ON id = document_id "
    "WHERE live AND version_keys.{0} <> '' GROUP BY 1 HAVING count(*) > 1)"
)


def put_version_keys(store: Store, rows: Iterable[tuple[int, str, str, str, bytes]]) -> None:
    """Store the keys of documents, as (document id, name, title, date, sketch)."""
    with store.transaction():
        store.connection.executemany("INSERT INTO version_keys VALUES (?, ?, ?, ?, ?)", rows)


def version_at(store: Store, path: str) -> StoredVersion | None:
    """Return the live document at a path with its keys."""
    row = store.connection.execute(f"{_QUERY} AND path = ?", (path,)).fetchone()
    return StoredVersion(*row) if row else None


def versions_named(store: Store, name_key: str, title_key: str, *, most: int) -> list[StoredVersion]:
    """Return live documents with the same words in their name or title, by path: at most `most`."""
    found = set[StoredVersion]()
    for column, key in (("name", name_key), ("title", title_key)):
        query = f"{_QUERY} AND version_keys.{column} = ? ORDER BY path LIMIT ?"
        found |= {StoredVersion(*row) for row in store.connection.execute(query, (key, most)) if key}
    return sorted(found, key=lambda version: version.path)


def sharing_versions(store: Store) -> Iterator[StoredVersion]:
    """Yield the live documents that share the words of their name or title with another one, by path."""
    where = " OR ".join(_SHARED.format(column) for column in ("name", "title"))
    rows = store.connection.execute(f"{_QUERY} AND ({where}) ORDER BY path")
    return (StoredVersion(*row) for row in rows)
