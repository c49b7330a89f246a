"""Compare files with the documents in the store: `index` applies the changes, `status` shows them."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from stat import S_ISREG
from typing import Literal, NamedTuple

from local_rag.document_records import Skipped
from local_rag.files import GONE, LOCAL_DISK, Disk, FileStamp, stamp_of
from local_rag.indexing.roots import Roots
from local_rag.reading.mailbox import content_sha256, mailbox_of
from local_rag.reading.walk import Walk
from local_rag.store.database import Store, StoredDocument
from local_rag.store.erasing import hidden_among

_LARGE = 1 << 20  # bytes


class ScannedFile(NamedTuple):
    """A file as it is now; `sha256` hashes it on demand, which is needed only if the stamp is not enough."""

    path: str
    stamp: FileStamp
    split_key: str
    sha256: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences between the files and the stored documents.

    `moved` maps new files to the documents of the same content that they replace, which are missing or unreachable;
    each such document is also in `gone`. Of `touched` files only the stamp has changed, of `resplit` ones only how they
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
        """Return the files to read: by path, but large ones last, so no other one waits for a log or a mailbox."""
        files = (*self.new, *self.moved, *self.changed, *self.resplit)
        return tuple(sorted(files, key=lambda file: (max(file.stamp.size, _LARGE), file.path.split("/"))))


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
        seen.add(one.path)
        stored = known.get(one.path)
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
    if not stored.stamp.matches(found.stamp):
        try:
            if stored.stamp.size != found.stamp.size or stored.sha256 != found.sha256():
                return "changed"
        except OSError:  # vanished or no longer readable: reading it will report that
            return "changed"
        if stored.split_key == found.split_key:
            return "touched"
    return "unchanged" if stored.split_key == found.split_key else "resplit"


def _moved(new: Sequence[ScannedFile], missing: Sequence[StoredDocument]) -> dict[ScannedFile, StoredDocument]:
    """Match each missing document with at most one new file of the same content."""
    sizes = {stored.stamp.size for stored in missing}
    left: dict[str, list[StoredDocument]] = {}
    for stored in reversed(missing):
        left.setdefault(stored.sha256, []).append(stored)
    moved = {}
    for one in new:
        with suppress(OSError):
            if one.stamp.size in sizes and (same := left.get(one.sha256())):
                moved[one] = same.pop()
    return moved


class Comparison(NamedTuple):
    """How folders compare with a store.

    `skipped` are the files that are not documents, and what could not be looked at. `unseen` are the paths of the
    latter: nothing is known of them and of what is below them. `mounts` are the folders below the roots where another
    disk begins.
    """

    changes: Changes
    skipped: list[Skipped]
    roots: Roots
    unseen: frozenset[str]
    mounts: Mapping[str, int]

    def is_looked_at(self, path: str) -> bool:
        """Say whether a path lies where this comparison has looked."""
        return self.roots.is_looked_at(path) and not _is_below(path, self.unseen)

    def lost_mounts(self) -> list[str]:
        """Return the known mounts that were looked at and are none any more."""
        return [path for path in self.roots.mounts if path not in self.mounts and self.is_looked_at(path)]


def compare_folders(
    store: Store, given: Sequence[Path], split_key: str | None, *, also: str = "", disk: Disk = LOCAL_DISK
) -> Comparison:
    """Compare the files below some roots with the store; without a `split_key`, no file counts as resplit.

    A document with the key `also` is up to date, too.

    A document is gone if the system says so of its file and has listed its folder. What is there and ignored, or
    something else than a file by now, is gone too.
    """
    known = {document.path: document for document in store.documents()}
    roots, skipped, unseen = Roots(store, given, known, disk), list[Skipped](), set[str]()
    excluded = store.excluded()
    walk = Walk(exclude=[store.folder, *excluded, *roots.unreachable], is_erased=hidden_among(excluded), disk=disk)

    def files() -> Iterable[ScannedFile]:
        for item in walk.files(roots.present):
            if isinstance(item, Skipped):
                skipped.append(item)
                if item.kept:
                    unseen.add(str(item.path))
                continue
            stored = known.get(item.path)
            key = split_key
            if key is None or (stored and stored.split_key == also):
                key = stored.split_key if stored else ""
            yield ScannedFile(item.path, item.stamp, key, partial(content_sha256, item.path))

    def may_be_gone(stored: StoredDocument) -> bool:
        if not roots.is_looked_at(stored.path) or _is_below(stored.path, unseen):
            return False
        try:
            disk.status(stored.path)
        except OSError as error:
            if error.errno not in GONE:
                skipped.append(Skipped(Path(stored.path), f"cannot be opened ({error.strerror})", kept=True))
                unseen.add(stored.path)
                return False
        return True

    changes = compare_documents(known, files(), may_be_gone, roots.is_out_of_reach)
    held = _with_folders(known) if unseen else set()
    skipped = [replace(item, kept=str(item.path) in held) if item.kept else item for item in skipped]
    return Comparison(changes, skipped, roots, frozenset(unseen), walk.mounts)


def _is_below(path: str, folders: Collection[str]) -> bool:
    while path and path not in folders:
        path = path.rpartition("/")[0]
    return bool(path)


def _with_folders(paths: Iterable[str]) -> set[str]:
    found = set[str]()
    for path in paths:
        above = path
        while above and above not in found:
            found.add(above)
            above = above.rpartition("/")[0]
    return found


FileState = Literal["same", "changed", "missing"]


def file_state(document: StoredDocument) -> FileState:
    """Say whether a document's file is still the one that was indexed, as `index` would find it.

    A file of the same size with another stamp is hashed: only its content counts. A file that the system does not let
    us look at counts as the same.
    """
    mailbox = None
    try:
        try:
            status = Path(document.path).stat()
        except NotADirectoryError:
            if (mailbox := mailbox_of(document.path)) is None:
                raise
            status = Path(mailbox).stat()
    except OSError as error:
        return "missing" if error.errno in GONE else "same"
    if not S_ISREG(status.st_mode):
        return "missing"
    now = stamp_of(status, 0)
    if mailbox is not None:  # the size is that of the message
        now = now._replace(size=document.stamp.size)
    if document.stamp.matches(now):
        return "same"
    with suppress(OSError):  # vanished or no longer readable
        if now.size == document.stamp.size and _sha256(document.path, now) == document.sha256:
            return "same"
    return "changed"


@lru_cache(maxsize=1000)
def _sha256(path: str, _stamp: FileStamp) -> str:
    return content_sha256(path)
