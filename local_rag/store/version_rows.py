"""Store and find by what versions of a document are recognised (indexing/document_rows.py)."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from local_rag.store.database import Store


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
    rows = [
        row
        for column, key in (("name", name_key), ("title", title_key))
        if key
        for row in store.connection.execute(
            f"{_QUERY} AND version_keys.{column} = ? ORDER BY path LIMIT ?", (key, most)
        )
    ]
    return sorted({StoredVersion(*row) for row in rows}, key=lambda version: version.path)


def sharing_versions(store: Store) -> Iterator[StoredVersion]:
    """Yield the live documents that share the words of their name or title with another one, by path."""
    where = " OR ".join(_SHARED.format(column) for column in ("name", "title"))
    rows = store.connection.execute(f"{_QUERY} AND ({where}) ORDER BY path")
    return (StoredVersion(*row) for row in rows)
