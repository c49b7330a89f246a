"""Find the files to read in folders, with the rules of .gitignore."""

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from os import stat_result
from pathlib import Path
from typing import NamedTuple

from local_rag.document_records import Skipped
from local_rag.errors import LocalRagError
from local_rag.files import GONE, LOCAL_DISK, Disk, FileStamp, is_utf8, open_regular, stamp_of
from local_rag.reading.formats import NOT_REGULAR, PLAIN_TEXT, format_named, format_of
from local_rag.reading.ignore import IgnorePattern, parse_pattern
from local_rag.reading.mailbox import MAILBOX_INDEX, is_mail_folder, is_mailbox, messages, names_to_read

MAX_BYTES = 50 * 1024 * 1024
_MAX_RULES_BYTES = 128 * 1024  # of a .gitignore, because each line is compared with each path

# What opening a .gitignore gives that is missing, a link, or something else than a file.
_NO_RULES = GONE | {errno.ELOOP, errno.EMLINK, errno.EINVAL, errno.ENXIO}
_MOST_MESSAGES = 1_000_000  # of a mailbox, which may consist of beginnings of messages
_LIBRARY = "library.sqlite3"  # a folder with this file is a library
NEVER_ENTERED = {"node_modules", "__pycache__"}

# The .gitignore files that apply to a folder, outermost first: each with the depth of its folder and its patterns, last
# one first.
_Rules = tuple[tuple[int, tuple[IgnorePattern, ...]], ...]


class Found(NamedTuple):
    """A file to read, with its stamp. Its path is a string: a large library has many files, and most are unchanged."""

    path: str
    stamp: FileStamp


class Walk:
    """Walk through folders. `mounts` are the folders seen below them where another disk begins, with its device."""

    def __init__(
        self,
        *,
        max_bytes: int = MAX_BYTES,
        exclude: Sequence[Path] = (),
        is_erased: Callable[[str], bool] = lambda _path: False,
        disk: Disk = LOCAL_DISK,
    ) -> None:
        self._max_bytes, self._disk = max_bytes, disk
        self._excluded, self._is_erased = {str(path.resolve()) for path in exclude}, is_erased
        self._token = str(Path(os.environ.get("LOCAL_RAG_TOKEN_FILE", "/")).expanduser().resolve())
        self.mounts: dict[str, int] = {}

    def files(self, paths: Sequence[Path]) -> Iterator[Found | Skipped]:
        """Yield every readable file once, in a fixed order, as an absolute path; yield other files as Skipped.

        Omit hidden and ignored files unless they are named in `paths`. `kept` marks what the system did not let us
        look at, a file or all that is below a folder, and files that are too large: what was known of it still holds.
        Raise LocalRagError before the first file if one of the paths does not exist.
        """
        roots = [path.resolve() for path in paths]
        for path, root in zip(paths, roots, strict=True):
            if not self._exists(str(root)):
                raise LocalRagError(f"File or folder {path} does not exist; check the spelling of the path.")
        seen = set[str]()
        for root in roots:
            for found in self._root(root):
                absolute = str(found.path)
                if absolute not in seen:
                    seen.add(absolute)
                    yield found

    def _exists(self, path: str) -> bool:
        try:
            self._disk.status(path)
        except OSError as error:
            return error.errno not in GONE
        return True

    def _root(self, root: Path) -> Iterator[Found | Skipped]:
        """Yield the files in a folder, or a file that was named."""
        path, looked_ns = str(root), time.time_ns()
        try:
            status = self._disk.status(path)
            is_folder = stat.S_ISDIR(status.st_mode)
            waiting = self._contents(path, _rules_above(root), status.st_dev) if is_folder else []
        except OSError as error:
            yield from _not_seen(path, error)
            return
        if is_folder:
            yield from self._below(root, waiting)
        else:
            yield from self._found(path, root.name, status, looked_ns)

    def _below(self, root: Path, waiting: list[tuple[str, str, _Rules, int]]) -> Iterator[Found | Skipped]:
        """Yield the files in a folder, depth first, sorted by name; `waiting` is what it contains."""
        while waiting:
            folder, name, rules, device = waiting.pop()
            path = f"{folder}{name}"
            if not is_utf8(name):
                yield Skipped(Path(path), "name is not UTF-8")
                continue
            looked_ns = time.time_ns()
            try:
                status = self._disk.status(path)
                is_folder = stat.S_ISDIR(status.st_mode)
                if rules and _is_ignored(path, is_folder, rules):
                    continue
                if is_folder:
                    if status.st_dev != device:
                        self.mounts[path] = status.st_dev
                    waiting += self._contents(path, rules, status.st_dev, nested=True)
                    continue
            except OSError as error:
                yield from _not_seen(path, error)
                continue
            if stat.S_ISLNK(status.st_mode):
                yield Skipped(Path(path), _reason_of_link(Path(path), root))
            else:
                yield from self._found(path, name, status, looked_ns)

    def _contents(
        self, folder: str, rules: _Rules, device: int, *, nested: bool = False
    ) -> list[tuple[str, str, _Rules, int]]:
        """Return what is in a folder, the last name first: its path with a slash, name, rules and device.

        Nothing is in a library below an indexed folder: what it was made of is read where it is.
        """
        names = self._disk.names(folder)
        if nested and _LIBRARY in names:
            return []
        if nested and folder.rpartition("/")[2].startswith(".") and not is_mail_folder(names):
            return []  # only those of a Maildir are looked into
        if ".gitignore" in names:
            rules += _rules_of(Path(folder))
        start = f"{folder.rstrip('/')}/"
        return [
            (start, name, rules, device)
            for name in sorted(names_to_read(names), reverse=True)
            if not (name in NEVER_ENTERED or self._is_excluded(f"{start}{name}"))
        ]

    def _is_excluded(self, path: str) -> bool:
        return path in self._excluded or self._is_erased(path)

    def _found(self, path: str, name: str, status: stat_result, looked_ns: int) -> Iterator[Found | Skipped]:
        """Yield a file or the messages of a mailbox, or why they are skipped without being read."""
        if not stat.S_ISREG(status.st_mode):
            yield Skipped(Path(path), NOT_REGULAR)
        elif path == self._token:
            yield Skipped(Path(path), "the token of the server")
        elif reason := format_of(Path(path)).unsupported:
            yield Skipped(Path(path), reason)
        elif is_mailbox(name) or (format_named(name) == PLAIN_TEXT and self._exists(f"{path}{MAILBOX_INDEX}")):
            yield from self._messages(path, stamp_of(status, looked_ns))
        else:
            yield self._within_limit(path, stamp_of(status, looked_ns))

    def _messages(self, mailbox: str, stamp: FileStamp) -> Iterator[Found | Skipped]:
        """Yield the messages of a mailbox as files below it, each with its own size."""
        empty = True
        try:
            for number, (path, size) in enumerate(messages(mailbox)):
                if number == _MOST_MESSAGES:
                    yield Skipped(Path(mailbox), f"the messages after the first {_MOST_MESSAGES:,} are left out")
                    return
                empty = False
                if not self._is_excluded(path):
                    yield self._within_limit(path, stamp._replace(size=size))
        except OSError as error:
            yield from _not_seen(mailbox, error)
        else:
            if empty:
                yield Skipped(Path(mailbox), "a mailbox without messages")

    def _within_limit(self, path: str, stamp: FileStamp) -> Found | Skipped:
        if stamp.size <= self._max_bytes:
            return Found(path, stamp)
        sizes = f"{stamp.size / 2**20:.1f} MiB, larger than the limit of {self._max_bytes / 2**20:.1f} MiB"
        return Skipped(Path(path), sizes, kept=True)


def _not_seen(path: str, error: OSError) -> Iterator[Skipped]:
    """Yield what the system did not let us look at, unless it says that it is gone by now."""
    if error.errno not in GONE:
        yield Skipped(Path(path), f"cannot be opened ({error.strerror})", kept=True)


def _reason_of_link(path: Path, root: Path) -> str:
    """Return why a symbolic link is not followed; its target is read at its own path or not at all."""
    try:
        target = path.resolve(strict=True)
    except FileNotFoundError:
        return "broken symbolic link"
    except (OSError, RuntimeError):  # Python 3.11 and 3.12 raise RuntimeError for a loop, later ones OSError
        return "symbolic link loop"
    if path.is_relative_to(target):
        return "symbolic link loop"
    if target.is_relative_to(root):
        return "symbolic link to another path in the same folder"
    return "symbolic link out of the folder"


def _is_ignored(path: str, is_folder: bool, rules: _Rules) -> bool:
    """Return whether a path is ignored; the first matching pattern of the innermost .gitignore decides."""
    parts = path.split("/")
    for depth, patterns in reversed(rules):
        names = parts[depth:]
        for pattern in patterns:
            if pattern.matches(names, is_folder=is_folder):
                return pattern.ignores
    return False


def _rules_above(root: Path) -> _Rules:
    """Return the rules of the .gitignore files between the enclosing git repository and the folder."""
    folders = (root, *root.parents)
    top = next((folder for folder in folders if (folder / ".git").exists()), root)
    rules: _Rules = ()
    for folder in reversed(folders[: folders.index(top)]):
        rules += _rules_of(folder.parent)
        if _is_ignored(str(folder), True, rules):
            # The user named an ignored folder on purpose. The rules above it would hide all its files.
            return ()
    return rules


def _rules_of(folder: Path) -> _Rules:
    """Return the rules of a folder's own .gitignore; raise OSError if there is one that cannot be read."""
    try:
        with open_regular(folder / ".gitignore") as file:
            data = file.read(_MAX_RULES_BYTES + 1)
    except OSError as error:
        if error.errno in _NO_RULES:
            return ()
        # Without its rules, files that nobody wants to have read would be read.
        raise OSError(error.errno, f"its .gitignore: {error.strerror}") from error
    if len(data) > _MAX_RULES_BYTES:
        raise OSError(errno.EFBIG, f"its .gitignore is larger than {_MAX_RULES_BYTES // 1024} KiB")
    lines = data.decode("utf-8-sig", errors="replace").split("\n")
    patterns = tuple(filter(None, (parse_pattern(line.removesuffix("\r")) for line in reversed(lines))))
    return ((len(folder.parts), patterns),) if patterns else ()
