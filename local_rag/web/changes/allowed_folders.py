"""Folders of the server from which documents may be added: what lies below those that `--may-add` names."""

from collections.abc import Sequence
from pathlib import Path

from local_rag.errors import ForbiddenError, MissingError

_MOST = 500  # names of a folder


class MayAdd:
    """The folders below which documents may be added from the page."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(dict.fromkeys(folder.resolve() for folder in folders))

    def __bool__(self) -> bool:
        """Return whether anything may be added."""
        return bool(self.folders)

    def require(self, named: str) -> Path:
        """Return the path that a text names, links followed; raise ForbiddenError where it lies outside."""
        outside = ForbiddenError(f"{named[:200]} is not below a folder that --may-add names.")
        if not named.startswith("/") or "\0" in named:
            raise outside
        try:
            path = Path(named).resolve()
        except (OSError, RuntimeError):
            raise outside from None
        if not any(path.is_relative_to(folder) for folder in self.folders):
            raise outside
        if not path.exists():
            raise MissingError(f"{path} does not exist; name a file or folder that does.")
        return path

    def below(self, folder: Path) -> list[Path]:
        """Return the folders in a folder, and its files, by name; hidden ones and links are left out."""
        try:
            found = [path for path in folder.iterdir() if not path.name.startswith(".") and not path.is_symlink()]
        except OSError as error:
            raise MissingError(f"{folder} cannot be listed ({error.strerror}).") from None
        return sorted(found, key=lambda path: (path.is_file(), path.name))[:_MOST]
