"""Compare documents as they are with those in the store: `index` applies what has changed, `status` shows it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from local_rag.files import document_sha256
from local_rag.reading.walk import walk
from local_rag.records import Skipped
from local_rag.store.database import Store, StoredDocument


@dataclass(frozen=True, slots=True)
class Found:
    """A document as it is now; `sha256` hashes it when it is asked, which is only where size and time do not tell."""

    path: Path
    size: int
    modified_ns: int
    split_key: str
    sha256: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs between what was found and what is stored.

    `moved` are new documents with the content of one that is gone, each counted once. `touched` are unchanged but for
    their time, `resplit` but for how they are to be split.
    """

    new: tuple[Found, ...] = ()
    changed: tuple[Found, ...] = ()
    resplit: tuple[Found, ...] = ()
    moved: tuple[Found, ...] = ()
    gone: tuple[StoredDocument, ...] = ()
    touched: tuple[tuple[StoredDocument, Found], ...] = ()
    unchanged: int = 0

    @property
    def to_read(self) -> tuple[Found, ...]:
        """Return what must be read, in the order of the paths."""
        return tuple(sorted((*self.new, *self.moved, *self.changed, *self.resplit), key=lambda found: found.path.parts))


def compare_documents(
    known: Mapping[str, StoredDocument], found: Iterable[Found], may_be_gone: Callable[[StoredDocument], bool]
) -> Changes:
    """Compare documents found with those known by their paths; of the others those are gone that may be."""
    kinds: dict[str, list[Found]] = {"new": [], "changed": [], "resplit": []}
    touched, unchanged, seen = [], 0, set()
    for one in found:
        seen.add(str(one.path))
        stored = known.get(str(one.path))
        kind = "new" if stored is None else _kind(stored, one)
        if kind in kinds:
            kinds[kind].append(one)
        elif stored is not None:
            unchanged += 1
            touched += [(stored, one)] if kind == "touched" else []
    gone = tuple(stored for path, stored in known.items() if path not in seen and may_be_gone(stored))
    moved = _moved(kinds["new"], gone)
    return Changes(
        new=tuple(one for one in kinds["new"] if one not in moved),
        changed=tuple(kinds["changed"]),
        resplit=tuple(kinds["resplit"]),
        moved=moved,
        gone=gone,
        touched=tuple(touched),
        unchanged=unchanged,
    )


def _kind(stored: StoredDocument, found: Found) -> str:
    if (stored.size, stored.modified_ns) != (found.size, found.modified_ns):
        try:
            if stored.sha256 != found.sha256():
                return "changed"
        except OSError:  # vanished, or made unreadable: reading it will say so
            return "changed"
        if stored.split_key == found.split_key:
            return "touched"
    return "unchanged" if stored.split_key == found.split_key else "resplit"


def _moved(new: Sequence[Found], gone: Sequence[StoredDocument]) -> tuple[Found, ...]:
    """Match each document that is gone with at most one new one of the same content."""
    left: dict[int, list[str]] = {}
    for stored in gone:
        left.setdefault(stored.size, []).append(stored.sha256)
    moved = []
    for one in new:
        if hashes := left.get(one.size):
            try:
                hashes.remove(one.sha256())
            except (OSError, ValueError):
                continue
            moved.append(one)
    return tuple(moved)


def compare_folders(store: Store, roots: Sequence[Path], split_key: str | None) -> tuple[Changes, list[Skipped]]:
    """Compare the files below roots with the store, without a `split_key` as if each were split as it was.

    Returns the changes, and the files that are no documents.
    """
    known = {document.path: document for document in store.documents()}
    files, skipped = [], []
    for item in walk([root for root in roots if root.exists()], exclude=[store.folder, *store.excluded()]):
        if isinstance(item, Skipped):
            skipped.append(item)
            continue
        stored = known.get(str(item))
        key = split_key if split_key is not None else stored.split_key if stored else ""
        files.append(Found(item, *size_and_time(item), key, partial(document_sha256, item)))

    def below_a_root(stored: StoredDocument) -> bool:
        return any(Path(stored.path).is_relative_to(root) for root in roots)

    return compare_documents(known, files, below_a_root), skipped


def size_and_time(path: Path) -> tuple[int, int]:
    """Return a file's size in bytes and its time of change in nanoseconds; zeros if it has vanished."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns
