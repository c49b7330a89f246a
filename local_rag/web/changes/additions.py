"""What people add through the page: from folders of the server, and files, in a folder of their own beside the library.

There none replaces another.
"""

import hashlib
import os
import re
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from local_rag.asking import Person
from local_rag.errors import ForbiddenError, LibraryError, MissingError
from local_rag.files import open_in_place, uploads_folder
from local_rag.machine import free_bytes
from local_rag.reading.formats import format_named
from local_rag.reading.walk import MAX_BYTES
from local_rag.text.words import normalize

MOST_FILES, MOST_BYTES = 100, 256 * 1024 * 1024  # of one upload
_MOST_LISTED = 500  # names of a folder
_LONGEST = 150  # bytes of a name without its suffix
_LONGEST_SUFFIX = 16
_FREE = 512 * 1024 * 1024  # bytes that stay free on the disk
_BLOCK = 1024 * 1024
_PART = re.compile(r"\.[0-9a-f]{16}\.part")
_LONGEST_UPLOAD = 3600  # seconds; a file that another server is writing is younger
_NOT_IN_NAMES = re.compile(r'[/\\:*?"<>|]')


class AllowedFolders:
    """The folders of the server below which documents may be added: those that `--may-add` names."""

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
            paths = [path for path in folder.iterdir() if not path.name.startswith(".") and not path.is_symlink()]
        except OSError as error:
            raise MissingError(f"{folder} cannot be listed ({error.strerror}).") from None
        return sorted(paths, key=lambda path: (path.is_file(), path.name))[:_MOST_LISTED]


class RefusedFileError(LibraryError):
    """Report a file that is not added, with a reason that follows its name."""


def folder_of(library: Path, person: Person) -> Path:
    """Return the folder for the files of a person: one of its own where the person may not see everything."""
    folder = uploads_folder(library)
    return folder / person.id if person.limits else folder


def clear_uploads(library: Path) -> None:
    """Delete what uploads have left that ended with the server in the middle."""
    folder, before = uploads_folder(library), time.time() - _LONGEST_UPLOAD
    for path in (*folder.glob(".*.part"), *folder.glob("*/.*.part")):
        with suppress(OSError):
            if _PART.fullmatch(path.name) and path.lstat().st_mtime < before:
                path.unlink()


def file_name(given: str) -> str:
    """Return a harmless name like the given one: no folder, no hidden file, nothing that a terminal obeys."""
    last = normalize("NFC", re.split(r"[/\\]", given)[-1])
    shown = "".join(sign if sign.isprintable() else "_" for sign in last)
    stem, dot, suffix = _NOT_IN_NAMES.sub("_", shown).strip().lstrip(". ").rpartition(".")
    if not dot or len(suffix.encode()) > _LONGEST_SUFFIX:
        stem, dot, suffix = stem + dot + suffix, "", ""
    cut = stem.encode("utf-8", "replace")[:_LONGEST].decode("utf-8", "ignore").strip()
    return f"{cut or 'document'}{dot}{suffix}"


def add_file(folder: Path, given: str, content: BinaryIO) -> tuple[Path, bool]:
    """Write a file into a folder under its own name or one like it; return its path, and whether it was there already.

    Raises RefusedFileError with a reason for what is not read anyway, too large, or empty.
    """
    name = file_name(given)
    if reason := format_named(name).unsupported:
        raise RefusedFileError(reason)
    try:
        for above in (folder.parent, folder):  # `parents` would make the outer one readable for all
            above.mkdir(mode=0o700, parents=True, exist_ok=True)
        if free_bytes(folder) < _FREE:
            raise RefusedFileError("the disk of the server is full")
        partial = folder / f".{secrets.token_hex(8)}.part"
        try:
            sha256, size = _write(partial, content)
            if size > MAX_BYTES:
                raise RefusedFileError(f"larger than the limit of {MAX_BYTES // 2**20} MiB")
            if not size:
                raise RefusedFileError("the file is empty")
            return _name_it(partial, folder, name, sha256)
        finally:
            with suppress(FileNotFoundError):
                partial.unlink()
    except OSError as error:
        raise RefusedFileError(f"it cannot be written ({error.strerror})") from None


def _write(path: Path, content: BinaryIO) -> tuple[str, int]:
    """Copy at most one byte more than is allowed; return the hash and the number of bytes."""
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while size <= MAX_BYTES and (block := content.read(_BLOCK)):
            digest.update(block)
            size += len(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest(), size


def _name_it(partial: Path, folder: Path, name: str, sha256: str) -> tuple[Path, bool]:
    """Give a written file its name, or the next one that is free; a link never replaces what is there."""
    stem, suffix = Path(name).stem, Path(name).suffix
    for number in range(1, 1000):
        path = folder / (name if number == 1 else f"{stem}-{number}{suffix}")
        try:
            os.link(partial, path, follow_symlinks=False)
        except FileExistsError:
            if _same(path, sha256):
                return path, True
            continue
        return path, False
    raise RefusedFileError("too many files have this name")


def _same(path: Path, sha256: str) -> bool:
    with suppress(OSError), open_in_place(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    return False
