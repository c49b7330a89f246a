"""Find which indexed files and folders can be reached, and which of them a document belongs to.

A folder that held documents is unreachable if it is missing or empty, or if it is on another disk and holds none of
them: that is exactly how an unmounted drive looks. Its documents are kept; only `remove` deletes them. A file is
reachable if its folder is.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from local_rag.errors import LibraryError
from local_rag.files import is_utf8
from local_rag.store.database import Store, StoredDocument


class Roots:
    """The roots of one run: those given, and every known one below them."""

    def __init__(self, store: Store, given: Iterable[Path], documents: Mapping[str, StoredDocument]) -> None:
        asked, self._documents, self._devices = set(given), documents, store.root_devices()
        for path in asked:
            if path.is_relative_to(store.folder):
                raise LibraryError(f"{path} is the folder of the library itself; name the folder of the documents.")
        self._known = asked | self._devices.keys()
        self._root_of_folder: dict[Path, Path | None] = {}
        self._held: dict[Path, list[Path]] = {}
        for name in documents:
            if (root := self.root_of(Path(name))) is not None:
                self._held.setdefault(root, []).append(Path(name))
        self.looked_at = {path for path in self._known if path in asked or not asked.isdisjoint(path.parents)}
        self.unreachable = {path for path in self._held if not self._is_reachable(path)}
        self.present = sorted(path for path in self.looked_at - self.unreachable if _exists(path))
        self.forgotten = {
            path for path in self.looked_at - self.unreachable if self._was_file(path) and not _exists(path)
        }

    def root_of(self, document: Path) -> Path | None:
        """Return the innermost root that contains a document."""
        if document in self._known:
            return document
        folder = document.parent
        if folder not in self._root_of_folder:
            self._root_of_folder[folder] = next((path for path in document.parents if path in self._known), None)
        return self._root_of_folder[folder]

    def may_be_gone(self, document: StoredDocument) -> bool:
        """Say whether a document that was not found is gone: its root is looked at and can be reached."""
        root = self.root_of(Path(document.path))
        return root in self.looked_at and root not in self.unreachable

    def is_out_of_reach(self, document: StoredDocument) -> bool:
        """Say whether a document's root cannot be reached."""
        return self.root_of(Path(document.path)) in self.unreachable

    def devices(self) -> dict[Path, int]:
        """Return the device of each root that exists."""
        return {path: device for path in self.present if (device := _device(self._folder(path))) is not None}

    def _was_file(self, root: Path) -> bool:
        return str(root) in self._documents

    def _folder(self, root: Path) -> Path:
        return root.parent if self._was_file(root) or root.is_file() else root

    def _is_reachable(self, root: Path) -> bool:
        folder = self._folder(root)
        device, before = _device(folder), self._devices.get(root)
        if device is None or _is_empty(folder):
            # Inside another root that exists, on the same disk: the folder was deleted.
            outer = next((path for path in root.parents if path in self._known), None)
            return outer is not None and before in (None, _device(outer)) and self._is_reachable(outer)
        return before in (None, device) or any(map(_exists, self._held.get(root, ())))


def _exists(path: Path) -> bool:
    with suppress(OSError):
        return path.exists()
    return False


def _device(folder: Path) -> int | None:
    with suppress(OSError):
        return folder.stat().st_dev
    return None


def _is_empty(folder: Path) -> bool:
    with suppress(OSError):
        return next(folder.iterdir(), None) is None
    return True


def roots_to_index(store: Store, paths: Iterable[Path | str]) -> list[Path]:
    """Return the roots to index: the given ones, which must exist or be known, or all known ones."""
    known = store.roots()
    roots = [Path(path).expanduser().resolve() for path in paths]
    if not roots and not known:
        raise LibraryError("The library has no documents yet; name a folder: `local-rag index FOLDER`.")
    for path in roots:
        if not is_utf8(str(path)):
            raise LibraryError(f"The name of {path} is not UTF-8, which a library cannot store; rename it.")
    missing = [path for path in roots if not path.exists() and path not in known]
    documents = [Path(document.path) for document in store.documents()] if missing else []
    for path in missing:
        if not any(document.is_relative_to(path) for document in documents):
            raise LibraryError(f"{path} does not exist; name a file or folder that does.")
    return roots or known
