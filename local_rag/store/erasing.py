"""Documents that are being erased: the record of what is still to do.

The record is committed together with the removal of the documents and deleted last, so that an erasure that was killed
is finished by the next command that writes. What is ordered while another process writes is recorded, too, and begun by
whoever writes next. Of an erased document below a root that stays, a hidden path remains, which `index` skips although
it tells no name: the root, a salt, and the keyed hash of what followed the root; so it moves with its root. What names
a document by a path where it was before is erased with it, too.
"""

import hashlib
import hmac
import itertools
import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from local_rag.files import plain_pattern
from local_rag.store.database import Store, StoredDocument


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
        return not self.paths.isdisjoint(map(str, (PurePath(path), *PurePath(path).parents)))


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
    return list(map(str, store.remembered(_ORDERED) or ()))


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
    is_erased = Erasing(frozenset(bases)).names
    with store.transaction():
        store.remove(documents, roots, ())
        forget_orders(store, is_erased)
        record = [*((path, "") for path in bases), *(("", sha256) for sha256 in hashes)]
        store.connection.executemany("INSERT OR IGNORE INTO erasing VALUES (?, ?)", record)
        for table in ("excluded", "skipped", "mounts"):
            below = json.dumps([path for path in store.column(f"SELECT path FROM {table}") if is_erased(path)])  # noqa: S608
            store.connection.execute(f"DELETE FROM {table} WHERE path IN (SELECT value FROM json_each(?))", (below,))  # noqa: S608
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


def earlier_documents(store: Store) -> list[tuple[str, str]]:
    """Return SHA-256 and path of what the store knows besides live documents."""
    query = (
        "SELECT sha256, path FROM documents WHERE NOT live UNION ALL SELECT sha256, path FROM erasing WHERE path <> '' "
        "UNION ALL SELECT '', path FROM excluded UNION ALL SELECT '', path FROM skipped"
    )
    return [(sha256, path) for sha256, path in store.connection.execute(query) if not is_hidden(path)]


_FORMER = "former_paths"  # among what a store remembers: each with the present path


def note_moved(store: Store, moved: Mapping[str, str], patterns: Iterable[str]) -> None:
    """Record that documents or folders have moved, from former to present paths; those that patterns name are kept."""
    words = {word for one in patterns for word in plain_pattern(one).split("/")}
    known = {before: _moved_to(now, moved) for before, now in _former(store).items()}
    known |= {old: new for old, new in moved.items() if words & set(old.split("/")).difference(new.split("/"))}
    if known:
        store.remember({_FORMER: known})


def former_paths(store: Store, paths: Iterable[str]) -> set[str]:
    """Return where the documents and folders at or below these paths were before, unless others are there now."""
    found = set[str]()
    for base, (before, now) in itertools.product(paths, _former(store).items()):
        if (moved := _moved_to(base, {now: before})) != base:
            found.add(moved)
        elif now.startswith(f"{base}/"):
            found |= {before, before.removesuffix(now[len(base) :])}  # the file, and its folder if that was renamed
    return {path for path in found if not store.count_below(Path(path))}


def forget_former(store: Store, is_erased: Callable[[str], bool]) -> None:
    """Forget where documents were before that are erased."""
    if known := _former(store):
        store.remember({_FORMER: {before: now for before, now in known.items() if not is_erased(now)}})


def _former(store: Store) -> dict[str, str]:
    return dict(store.remembered(_FORMER) or {})


def _moved_to(path: str, moved: Mapping[str, str]) -> str:
    """Return where a path is now: it was moved itself, or a folder above it."""
    for base in (path, *map(str, Path(path).parents)):
        if base in moved:
            return moved[base] + path[len(base) :]
    return path


_HIDDEN = re.compile(r"(.*)/erased:([0-9a-f]{32}):([0-9a-f]{64})\Z", re.DOTALL)


def hide(paths: Iterable[str], roots: Iterable[str], excluded: Iterable[str]) -> list[str]:
    """Return the paths below a root as paths that do not tell their names, with the salt of those that are hidden."""
    salt = next((match[2] for path in excluded if (match := _HIDDEN.match(path))), secrets.token_hex(16))
    given = list(paths)
    return [
        f"{root.rstrip('/')}/erased:{salt}:{_hash(salt, path, root)}"
        for root in roots
        for path in given
        if path.startswith(f"{root.rstrip('/')}/")
    ]


def is_hidden(path: str) -> bool:
    """Say whether a path is hidden, so that it names nothing."""
    return _HIDDEN.match(path) is not None


def hidden_among(excluded: Iterable[Path]) -> Callable[[str], bool]:
    """Return a function that says of a path whether it is hidden among the excluded ones."""
    by_root: dict[tuple[str, str], set[str]] = {}
    for path in excluded:
        if match := _HIDDEN.match(str(path)):
            by_root.setdefault((match[1], match[2]), set()).add(match[3])

    def is_erased(path: str) -> bool:
        return any(
            path.startswith(f"{root}/") and _hash(salt, path, root) in hashes
            for (root, salt), hashes in by_root.items()
        )

    return is_erased


def _hash(salt: str, path: str, root: str) -> str:
    relative = path[len(root.rstrip("/")) + 1 :]
    return hmac.new(salt.encode(), relative.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()


def include(store: Store, paths: Iterable[Path]) -> None:
    """Let removed paths be indexed again."""
    excluded = store.excluded()
    for path in map(str, paths):
        again = [one for one in excluded if str(one) == path or hidden_among([one])(path)]
        store.connection.executemany("DELETE FROM excluded WHERE path = ?", [(str(one),) for one in again])
