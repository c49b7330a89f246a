"""Compare files with the documents in the store: `index` applies the changes, `status` shows them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal

from local_rag.files import document_sha256
from local_rag.indexing.roots import Roots
from local_rag.reading.walk import walk
from local_rag.records import Skipped
from local_rag.store.database import Store, StoredDocument


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A file as it is now; `sha256` hashes it on demand, which is needed only if size and time are not enough."""

    path: Path
    size: int
    modified_ns: int
    split_key: str
    sha256: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences between the files and the stored documents.

    `moved` maps new files to the documents of the same content that they replace, which are missing or unreachable;
    each such document is also in `gone`. Of `touched` files only the time has changed, of `resplit` ones only how they
    are split.
    """

    new: tuple[ScannedFile, ...] = ()
    changed: tuple[ScannedFile, ...] = ()
    resplit: tuple[ScannedFile, ...] = ()
    moved: Mapping[ScannedFile, StoredDocument] = field(default_factory=dict)
    gone: tuple[StoredDocument, ...] = ()
    touched: tuple[tuple[StoredDocument, ScannedFile], ...] = ()
    unchanged: int = 0

    @property
    def to_read(self) -> tuple[ScannedFile, ...]:
        """Return the files to read, by path."""
        return tuple(sorted((*self.new, *self.moved, *self.changed, *self.resplit), key=lambda file: file.path.parts))


def compare_documents(
    known: Mapping[str, StoredDocument],
    files: Iterable[ScannedFile],
    may_be_gone: Callable[[StoredDocument], bool],
    may_be_replaced: Callable[[StoredDocument], bool] = lambda _stored: False,
) -> Changes:
    """Compare files with known documents by path; a document without a file is gone if it may be."""
    kinds: dict[str, list[ScannedFile]] = {"new": [], "changed": [], "resplit": []}
    touched, unchanged, seen = [], 0, set()
    for one in files:
        seen.add(str(one.path))
        stored = known.get(str(one.path))
        kind = "new" if stored is None else _kind(stored, one)
        if kind in kinds:
            kinds[kind].append(one)
        elif stored is not None:
            unchanged += 1
            touched += [(stored, one)] if kind == "touched" else []
    missing = [stored for path, stored in known.items() if path not in seen]
    gone = [stored for stored in missing if may_be_gone(stored)]
    moved = _moved(kinds["new"], [*gone, *(stored for stored in missing if may_be_replaced(stored))])
    return Changes(
        new=tuple(one for one in kinds["new"] if one not in moved),
        changed=tuple(kinds["changed"]),
        resplit=tuple(kinds["resplit"]),
        moved=moved,
        gone=tuple(dict.fromkeys((*gone, *moved.values()))),
        touched=tuple(touched),
        unchanged=unchanged,
    )


def _kind(stored: StoredDocument, found: ScannedFile) -> str:
    if (stored.size, stored.modified_ns) != (found.size, found.modified_ns):
        try:
            if stored.sha256 != found.sha256():
                return "changed"
        except OSError:  # vanished or no longer readable: reading it will report that
            return "changed"
        if stored.split_key == found.split_key:
            return "touched"
    return "unchanged" if stored.split_key == found.split_key else "resplit"


def _moved(new: Sequence[ScannedFile], missing: Sequence[StoredDocument]) -> dict[ScannedFile, StoredDocument]:
    """Match each missing document with at most one new file of the same content."""
    left: dict[int, list[StoredDocument]] = {}
    for stored in missing:
        left.setdefault(stored.size, []).append(stored)
    moved = {}
    for one in new:
        with suppress(OSError):
            sha256 = one.sha256() if left.get(one.size) else ""
            same = (stored for stored in left.get(one.size, ()) if stored.sha256 == sha256)
            if (match := next(same, None)) is not None:
                moved[one] = match
                left[one.size].remove(match)
    return moved


def compare_folders(store: Store, given: Sequence[Path], split_key: str | None) -> tuple[Changes, list[Skipped], Roots]:
    """Compare the files below some roots with the store; without a `split_key`, no file counts as resplit.

    Return the changes, the files that are not documents, and the state of the roots.
    """
    known = {document.path: document for document in store.documents()}
    roots, files, skipped = Roots(store, given, known), [], []
    for item in walk(roots.present, exclude=[store.folder, *store.excluded()]):
        if isinstance(item, Skipped):
            skipped.append(item)
            continue
        stored = known.get(str(item))
        key = split_key if split_key is not None else stored.split_key if stored else ""
        files.append(ScannedFile(item, *size_and_time(item), key, partial(document_sha256, item)))
    return compare_documents(known, files, roots.may_be_gone, roots.is_out_of_reach), skipped, roots


FileState = Literal["same", "changed", "missing"]


def file_state(document: StoredDocument) -> FileState:
    """Say whether a document's file is still the one that was indexed, as `index` would find it.

    A file of the same size but another time is hashed: only its content counts.
    """
    path = Path(document.path)
    if not _is_file(path):
        return "missing"
    size, modified_ns = size_and_time(path)
    if (size, modified_ns) == (document.size, document.modified_ns):
        return "same"
    with suppress(OSError):  # vanished or no longer readable
        if size == document.size and _sha256(document.path, size, modified_ns) == document.sha256:
            return "same"
    return "changed"


def _is_file(path: Path) -> bool:
    with suppress(OSError):
        return path.is_file()
    return False


@lru_cache(maxsize=1000)
def _sha256(path: str, _size: int, _modified_ns: int) -> str:
    return document_sha256(Path(path))


def size_and_time(path: Path) -> tuple[int, int]:
    """Return the size of a file in bytes and its modification time in nanoseconds; zeros if it has vanished."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns
