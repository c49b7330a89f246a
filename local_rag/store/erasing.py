"""Documents that are being erased: the record of what is still to do.

The record is committed together with the removal of the documents and deleted last, so that an erasure that was killed
is finished by the next command that writes. What is ordered while another process writes is recorded, too, and begun by
whoever writes next.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from local_rag.store.database import BELOW, Store, StoredDocument
from local_rag.store.hidden_paths import hide, is_hidden


@dataclass(frozen=True, slots=True)
class Erasing:
    """What is being erased: all at or below the paths, and all documents with the contents, by SHA-256."""

    paths: frozenset[str] = frozenset()
    hashes: frozenset[str] = frozenset()
    begun: bool = False

    def __bool__(self) -> bool:
        """Say whether there is anything to do."""
        return self.begun

    def names(self, path: str) -> bool:
        """Say whether a path is at or below one of the paths."""
        return any(path == base or path.startswith(f"{base.rstrip('/')}/") for base in self.paths)


def erasing(store: Store) -> Erasing:
    """Return what is still being erased."""
    rows = store.connection.execute("SELECT path, sha256 FROM erasing").fetchall()
    paths, hashes = frozenset(path for path, _ in rows if path), frozenset(sha256 for _, sha256 in rows if sha256)
    return Erasing(paths, hashes, begun=bool(rows))


_ORDERED = "ordered_erasures"  # among what a store remembers


def order_erasing(store: Store, paths: Iterable[str]) -> None:
    """Record what is to be erased once nobody else writes."""
    with store.transaction():
        store.remember({_ORDERED: sorted({*ordered_erasures(store), *paths})})


def ordered_erasures(store: Store) -> list[str]:
    """Return the paths that are to be erased and were not begun yet."""
    row = store.connection.execute("SELECT value FROM remembered WHERE name = ?", (_ORDERED,)).fetchone()
    return list(map(str, json.loads(row[0]))) if row else []


def forget_orders(store: Store, begun: Callable[[str], bool]) -> None:
    """Forget the orders whose paths are begun, or of which there is nothing to erase."""
    left = [path for path in ordered_erasures(store) if not begun(path)]
    with store.transaction():
        store.connection.execute("DELETE FROM remembered WHERE name = ?", (_ORDERED,))
        if left:
            store.remember({_ORDERED: left})


def begin_erasing(
    store: Store,
    documents: Iterable[StoredDocument],
    paths: Iterable[Path],
    hashes: Iterable[str],
    roots: Iterable[Path],
) -> None:
    """Remove documents, forget roots, and record what is to be erased, all or nothing.

    Paths below a root that stays are excluded from now on, without their names.
    """
    bases = [str(path) for path in paths]
    with store.transaction():
        store.remove(documents, roots, ())
        forget_orders(store, Erasing(frozenset(bases)).names)
        record = [*((path, "") for path in bases), *(("", sha256) for sha256 in hashes)]
        store.connection.executemany("INSERT OR IGNORE INTO erasing VALUES (?, ?)", record)
        for base in bases:
            for table in ("excluded", "skipped", "mounts"):
                store.connection.execute(f"DELETE FROM {table} WHERE {BELOW}", (base,))  # noqa: S608
        hidden = hide(bases, map(str, store.roots()), map(str, store.excluded()))
        store.connection.executemany("INSERT OR IGNORE INTO excluded VALUES (?)", [(path,) for path in hidden])


def forget_names(store: Store) -> None:
    """Forget what was erased; only that the file is to be rewritten stays recorded."""
    with store.transaction():
        store.connection.execute("DELETE FROM erasing")
        store.connection.execute("INSERT INTO erasing VALUES ('', '')")


def end_erasing(store: Store) -> None:
    """Record that nothing is left to do."""
    store.connection.execute("DELETE FROM erasing")


def earlier_documents(store: Store, bases: Iterable[Path]) -> list[tuple[str, str]]:
    """Return SHA-256 and path of what the store knows at or below these paths besides live documents."""
    found = list[tuple[str, str]]()
    for base in map(str, bases):
        for query in (
            f"SELECT sha256, path FROM documents WHERE NOT live AND {BELOW}",  # noqa: S608
            f"SELECT sha256, path FROM erasing WHERE {BELOW}",  # noqa: S608
            f"SELECT '', path FROM excluded WHERE {BELOW}",  # noqa: S608
            f"SELECT '', path FROM skipped WHERE {BELOW}",  # noqa: S608
        ):
            found += store.connection.execute(query, (base,)).fetchall()
    return [(sha256, path) for sha256, path in found if not is_hidden(path)]
