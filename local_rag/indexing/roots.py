"""Find which indexed files and folders can be reached, and which of them a document belongs to.

A folder that held documents is unreachable if it is missing or empty, or if it is on another disk and holds none of
them: that is exactly how an unmounted drive looks. Its documents are kept; only `remove` deletes them. A file is
reachable if its folder is. The same holds for a drive that is mounted below an indexed folder.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from local_rag.errors import LibraryError, nearest
from local_rag.files import GONE, LOCAL_DISK, Disk, as_listed, is_utf8
from local_rag.store.database import Store, StoredDocument

_UNKNOWN = -1  # the device of a folder that the system did not let us look at
_NOTHING_YET = "The library has no documents yet; name a folder: `local-rag index FOLDER`."


class Places:
    """Paths, and which of them is the innermost that contains another path. All paths are strings, for speed."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._of_folder: dict[str, str | None] = {"": None}

    def of(self, path: str) -> str | None:
        """Return the innermost place that is a path or contains it."""
        if path in self._paths:
            return path
        climbed, folder = list[str](), _above(path)
        while folder not in self._of_folder:
            climbed.append(folder)
            if folder in self._paths:
                self._of_folder[folder] = folder
                break
            folder = _above(folder)
        found = self._of_folder[folder]
        self._of_folder |= dict.fromkeys(climbed, found)
        return found

    def around(self, path: str) -> str | None:
        """Return the innermost place that contains a path and is not the path itself."""
        return self.of(_above(path))


def _above(path: str) -> str:
    return path[: path.rfind("/")] or ("/" if len(path) > 1 else "")


class Roots:
    """The roots of one run: those given, and every known one below them."""

    def __init__(
        self, store: Store, given: Iterable[Path], documents: Mapping[str, StoredDocument], disk: Disk = LOCAL_DISK
    ) -> None:
        asked, self._documents, self._disk = set(map(str, given)), documents, disk
        devices, self.mounts = {str(path): one for path, one in store.root_devices().items()}, store.mounts()
        roots = asked | devices.keys()
        self._roots, self._places = Places(roots), Places(roots | self.mounts.keys())
        # A root that is new has no device yet, but may be a known mount.
        seen = {path: device for path, device in devices.items() if device is not None}
        self._devices: Mapping[str, int] = {**self.mounts, **seen}
        self._held: dict[str, list[str]] = {}
        for path in documents:
            if (place := self._places.of(path)) is not None:
                self._held.setdefault(place, []).append(path)
        within = Places(asked)
        self._looked_at = {path for path in roots | self.mounts.keys() if within.of(path) is not None}
        self._unreachable = {path for path in self._held if not self._is_reachable(path)}
        self.unreachable = set(map(Path, self._unreachable))
        reachable = (self._looked_at & roots) - self._unreachable
        self.present = sorted(Path(path) for path in reachable if self._device(path) is not None)

    def root_of(self, path: str) -> str | None:
        """Return the innermost root that contains a path."""
        return self._roots.of(path)

    def is_looked_at(self, path: str) -> bool:
        """Say whether a path lies below a root of this run that can be reached."""
        place = self._places.of(path)
        return place in self._looked_at and place not in self._unreachable

    def is_out_of_reach(self, document: StoredDocument) -> bool:
        """Say whether a document lies where the system cannot be asked for it now."""
        return self._places.of(document.path) in self._unreachable

    def devices(self) -> dict[Path, int]:
        """Return the device of each root that is walked through."""
        found = {path: self._device(self._folder(str(path))) for path in self.present}
        return {path: device for path, device in found.items() if device not in (None, _UNKNOWN)}

    def _folder(self, root: str) -> str:
        return _above(root) if root in self._documents or Path(root).is_file() else root

    def _is_reachable(self, place: str) -> bool:
        folder = self._folder(place)
        device, before = self._device(folder), self._devices.get(place)
        if device is None or self._is_empty(folder):
            # Inside another root that exists, on the same disk: the folder was deleted.
            outer = self._places.around(place)
            return outer is not None and before in (None, self._device(outer)) and self._is_reachable(outer)
        return before in (None, device) or any(map(self._exists, self._held.get(place, ())))

    def _exists(self, path: str) -> bool:
        with suppress(OSError):
            self._disk.status(path)
            return True
        return False

    def _device(self, folder: str) -> int | None:
        try:
            return self._disk.status(folder).st_dev
        except OSError as error:
            return None if error.errno in GONE else _UNKNOWN

    def _is_empty(self, folder: str) -> bool:
        with suppress(OSError):
            return not self._disk.names(folder)
        return False


def require_documents(paths: Iterable[Path | str]) -> None:
    """Raise LibraryError if there are no paths, or one does not exist: what a new library is made of."""
    paths = list(paths)
    if not paths:
        raise LibraryError(_NOTHING_YET)
    for path in paths:
        if not Path(path).expanduser().exists():
            raise _missing(Path(path))


def _missing(path: Path) -> LibraryError:
    for scheme in ("https:", "http:"):
        if scheme in path.parts:
            address = f"{scheme}//{'/'.join(path.parts[path.parts.index(scheme) + 1 :])}"
            return LibraryError(f"{address} is a web address; save its pages with `local-rag scrape {address}` first.")
    beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    return LibraryError(f"{path} does not exist; {nearest(path.name, beside) or 'name a file or folder that does.'}")


def roots_to_index(store: Store, paths: Iterable[Path | str], disk: Disk = LOCAL_DISK) -> list[Path]:
    """Return the roots to index: the given ones, which must exist or be known, or all known ones."""
    known = store.roots()
    roots = [as_listed(Path(path).expanduser().resolve(), disk) for path in paths]
    if not roots and not known:
        raise LibraryError(_NOTHING_YET)
    for path in roots:
        require_no_library(store, path)
        if not is_utf8(str(path)):
            raise LibraryError(f"The name of {path} is not UTF-8, which a library cannot store; rename it.")
    missing = [path for path in roots if not path.exists() and path not in known]
    documents = [Path(document.path) for document in store.documents()] if missing else []
    for path in missing:
        if not any(document.is_relative_to(path) for document in documents):
            raise _missing(path)
    return roots or known


def require_no_library(store: Store, root: Path) -> None:
    """Raise LibraryError for a root in the folder of the library itself."""
    if root.is_relative_to(store.folder):
        raise LibraryError(f"{root} is the folder of the library itself; name the folder of the documents.")
