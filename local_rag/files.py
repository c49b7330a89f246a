"""Files: open and hash them, tell whether they changed, replace them atomically, flush them, measure their size."""

import contextlib
import errno
import hashlib
import os
import re
import shlex
import stat
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from local_rag.errors import LocalRagError

DEFAULT_FOLDER = Path(".local-rag")  # of a library, in the current folder
_PARENT = Path(__file__).parents[1]  # the checkout, or where packages are installed
AUDIT_FILE = "audit.jsonl"  # who asked what, in the library's folder
SETTINGS_FILE = "settings.toml"  # the user's own settings, in the library's folder
# The file in which `scrape` records the pages of a folder; reading takes the URL of a PDF from it.
SCRAPE_STATE = ".scrape.json"

GONE = frozenset({errno.ENOENT, errno.ENOTDIR})  # the errors by which the system says that there is no such file
# The ticks of the clocks of file systems: of one that counts whole seconds, at most (FAT), and of any other.
_COARSE_NS, _FINE_NS = 2_000_000_000, 20_000_000
_FULL_FLUSH = 51 if sys.platform == "darwin" else None  # F_FULLFSYNC: what fsync leaves in the cache of a disk on macOS
_MOST = 2**63 - 1  # SQLite stores no larger number
_RENUMBERING = ("vfat", "msdos", "exfat", "fuse", "cifs", "smb3", "9p")  # file systems; prefixes of their names


class FileStamp(NamedTuple):
    """What the system said of a file at one moment, to tell later whether the file has changed.

    Times are in nanoseconds. `changed_ns`, the time of the last change of the file or its name, is 0 if the file was
    looked at so soon after it that another change could bear the same time: such a stamp matches nothing, and only the
    content tells. `inode` is 0 where the file system does not keep its numbers.
    """

    size: int = 0
    modified_ns: int = 0
    changed_ns: int = 0
    inode: int = 0

    def matches(self, now: "FileStamp") -> bool:
        """Say whether a file that had this stamp and has another one now is certainly unchanged."""
        inodes = self.inode == now.inode or not (self.inode and now.inode)
        return self[:3] == now[:3] and self.changed_ns != 0 and inodes


def uploads_folder(library: Path) -> Path:
    """Return the folder beside a library for files from the page: they outlast the library."""
    return library.parent / f"{library.name.lstrip('.') or 'library'}-uploads"


def stamp_of(status: os.stat_result, looked_ns: int) -> FileStamp:
    """Return the stamp of a file that was looked at, at `looked_ns` or after it.

    Times after 11 April 2262, which some archives contain, count as that day.
    """
    modified, changed = (max(-_MOST, min(_MOST, one)) for one in (status.st_mtime_ns, status.st_ctime_ns))
    is_young = _is_young(modified, looked_ns) or _is_young(changed, looked_ns)
    inode = 0 if status.st_dev in _renumbering_devices() else status.st_ino & _MOST
    return FileStamp(status.st_size, modified, 0 if is_young else changed or 1, inode)


def _is_young(time_ns: int, now_ns: int) -> bool:
    """Say whether another change could bear the same time as one that happened just before (or after) now."""
    return abs(now_ns - time_ns) <= (_FINE_NS if time_ns % 1_000_000_000 else _COARSE_NS)


@lru_cache(maxsize=1)
def _renumbering_devices(mounts: Path = Path("/proc/self/mountinfo")) -> frozenset[int]:
    """Return the devices whose file systems number their files anew; none where the system does not tell."""
    found = set()
    with contextlib.suppress(OSError, ValueError):
        for line in mounts.read_text(errors="replace").splitlines():
            mount, _, file_system = line.partition(" - ")
            if file_system.startswith(_RENUMBERING):
                major, minor = map(int, mount.split(" ")[2].split(":"))
                found.add(os.makedev(major, minor))
    return frozenset(found)


UNKNOWN_STAMP = FileStamp()


class Disk(Protocol):
    """What the system says of folders and files; tests put faults between."""

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder; raise OSError if it cannot be listed to the end."""

    def status(self, path: str) -> os.stat_result:
        """Return what the system says of a path, of a link itself; raise OSError if it says nothing."""


class LocalDisk:
    """The folders and files of this machine."""

    def names(self, folder: str) -> list[str]:
        """List a folder."""
        return os.listdir(folder)  # noqa: PTH208  half of the time that Path.iterdir takes

    def status(self, path: str) -> os.stat_result:
        """Look at a path."""
        return os.lstat(path)


LOCAL_DISK = LocalDisk()


def as_listed(path: Path, disk: Disk = LOCAL_DISK) -> Path:
    """Return a path with its names as the folders list them: a disk that ignores case knows a file by several names."""
    found = Path(path.anchor)
    for name in path.parts[1:]:
        listed = name
        with contextlib.suppress(OSError):
            if name not in (names := disk.names(str(found))):
                there = disk.status(str(found / name))
                alike = (one for one in names if one.casefold() == name.casefold())
                listed = next((one for one in alike if os.path.samestat(there, disk.status(str(found / one)))), name)
        found /= listed
    return found


def state_of(path: Path) -> tuple[int, int, int] | None:
    """Return what changes with the content of a file: its inode, its time and last its size; None without a file."""
    with contextlib.suppress(FileNotFoundError):
        status = path.stat()
        return status.st_ino, status.st_mtime_ns, status.st_size
    return None


@contextlib.contextmanager
def writable(shown: Path | str) -> Iterator[None]:
    """Turn what keeps a file from being written into a sentence."""
    try:
        yield
    except OSError as error:
        raise LocalRagError(f"{shown} cannot be written ({error.strerror}); name another file.") from None


def require_place(path: Path) -> None:
    """Raise LocalRagError for a file that cannot be written, before much is computed for it."""
    folder = path.resolve().parent
    with writable(path):
        permissions_of_regular(path.resolve())
        if not folder.is_dir():
            raise LocalRagError(f"{path} cannot be written (its folder does not exist); make it, or name another file.")
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@contextlib.contextmanager
def open_regular(path: Path | str) -> Iterator[BufferedReader]:
    """Open a user's file for reading; raise OSError if it is not, or no longer, a regular file.

    O_NONBLOCK is needed because opening a FIFO would wait for a writer, O_NOFOLLOW because a link may lead anywhere.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    with os.fdopen(descriptor, "rb") as file:
        yield file


def read_stamped(path: Path, most: int) -> tuple[bytes, FileStamp]:
    """Return the content of a user's file, cut after `most` bytes, and the stamp of the file that was read."""
    looked_ns = time.time_ns()
    with open_regular(path) as file:
        stamp = stamp_of(os.fstat(file.fileno()), looked_ns)
        return file.read(most), stamp


@contextlib.contextmanager
def open_in_place(path: Path) -> Iterator[BufferedReader]:
    """Open an indexed file like `open_regular`; raise OSError also if a folder above it has become a link since."""
    only_name = getattr(os, "O_PATH", os.O_RDONLY)  # on Linux a folder need not be readable
    folder = os.open(path.anchor, only_name | os.O_DIRECTORY)
    try:
        for part in path.parts[1:-1]:
            below = os.open(part, only_name | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = below
        descriptor = os.open(path.name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        yield file


def is_utf8(name: str) -> bool:
    """Return whether a name, path or question is valid Unicode, without surrogates for bytes that are not UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of one of the program's own files."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def document_sha256(path: Path | str) -> str:
    """Return the SHA-256 of a user's file."""
    with open_regular(path) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def literal_path(path: str) -> str:
    """Return the filter that one path passes, whatever signs it has."""
    return re.sub(r"([*?\[\]\\])", r"\\\1", path)


def plain_pattern(pattern: str) -> str:
    """Return the pattern of a filter without the signs that let its special ones stand for themselves."""
    return re.sub(r"\\(.)", r"\1", pattern)


def move_filters(filters: dict[str, Any], moved: Mapping[str, str]) -> bool:
    """Let filters, as JSON, that name a moved file by its whole path name its present one; return whether any did."""
    new = [moved.get(plain_pattern(one)) for one in filters["within"]]
    filters["within"] = [
        one if path is None else literal_path(path) for one, path in zip(filters["within"], new, strict=True)
    ]
    return any(path is not None for path in new)


def write_whole(path: Path, content: bytes | str, *, durable: bool = False) -> None:
    """Replace a file atomically: a reader sees the old content or the new. With `durable` it also survives a power cut.

    The permissions of a file that is there stay. Raises OSError for a device, a pipe or a link, which stay too. A
    killed process may leave a hidden file that ends in `.tmp`.
    """
    mode = permissions_of_regular(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}{threading.get_ident()}.tmp")
    try:
        if mode is not None:
            temporary.touch(0o600)
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        if mode is not None:
            temporary.chmod(mode)
        if durable:
            flush(temporary)
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    if durable:
        flush(path.parent)


def permissions_of_regular(path: Path) -> int | None:
    """Return the permissions of a file, None if there is none; raise OSError for anything but a regular file."""
    if not os.path.lexists(path):
        return None
    if not stat.S_ISREG(mode := path.lstat().st_mode):
        kind = "a link" if stat.S_ISLNK(mode) else "no regular file"
        raise FileExistsError(errno.EEXIST, f"it is {kind}", str(path))
    return stat.S_IMODE(mode)


def flush(path: Path, command: int | None = _FULL_FLUSH) -> None:
    """Flush a file or folder to disk, so that it survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if command is not None:
            import fcntl

            with contextlib.suppress(OSError):  # not every disk knows it
                fcntl.fcntl(descriptor, command)
                return
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def folder_bytes(path: Path) -> int:
    """Return the size of a file or of all files below a folder; other processes may change the folder meanwhile."""
    total = 0
    # Unlike Path.rglob, os.walk passes over a folder that vanishes between being listed and being entered.
    below = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    for file in below if path.is_dir() else (path,):
        with contextlib.suppress(OSError):
            total += file.lstat().st_size if file.is_file() else 0
    return total


def is_locked(path: Path, locks: Path = Path("/proc/locks")) -> bool:
    """Return whether a process holds a lock on a file, without trying to take it; works only on Linux."""
    with contextlib.suppress(OSError, ValueError):
        held = [line.split() for line in locks.read_text().splitlines()]
        file = f"{_kernel_device(path)}:{path.stat().st_ino}"
        return any("WRITE" in fields and fields[fields.index("WRITE") + 2] == file for fields in held)
    return False


def _kernel_device(path: Path) -> str:
    """Return the device of a file as /proc/locks writes it; on btrfs and overlayfs `stat` may say another one."""
    descriptor = os.open(path, getattr(os, "O_PATH", os.O_RDONLY))
    try:
        device, facts = os.fstat(descriptor).st_dev, Path(f"/proc/self/fdinfo/{descriptor}").read_text()
    finally:
        os.close(descriptor)
    mount = facts.partition("mnt_id:")[2].split()[0]
    for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        number, _, numbers, *_ = line.split()
        if number == mount:
            device = os.makedev(*map(int, numbers.split(":")))
    return f"{os.major(device):02x}:{os.minor(device):02x}"


def constraints() -> Path | None:
    """Return the list of pinned package versions of the checkout, or of the installed package; None if missing."""
    package = Path(__file__).parent
    return next((path for folder in (package.parent, package) if (path := folder / "constraints.txt").is_file()), None)


def package_key(name: str) -> str:
    """Return a package's name as an index knows it."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def pinned_versions() -> dict[str, str]:
    """Return the pinned versions of packages; none if the list of them is missing."""
    lines = path.read_text(encoding="utf-8").splitlines() if (path := constraints()) else []
    return {package_key(name): pin.strip() for name, found, pin in (line.partition("==") for line in lines) if found}


def in_checkout() -> bool:
    """Return whether the running program is that of a checkout, and not an installed package."""
    return (_PARENT / "pyproject.toml").is_file()


def command_for(folder: Path, *words: str) -> str:
    """Return a command of local-rag for a library, which is named unless it is the usual one."""
    given = [] if folder.resolve() == DEFAULT_FOLDER.resolve() else ["--library", shlex.quote(str(folder))]
    return " ".join(["local-rag", *words, *given])


def no_library(folder: Path) -> str:
    """Say that there is no library in a folder, and how to make one."""
    return f"There is no library in {folder}; make one with `{command_for(folder, 'index', 'PATH')}`."


def extra_command(name: str) -> str:
    """Return the command that installs an extra at the pinned versions into the running program's environment."""
    what = ["--editable", f"{_PARENT}[{name}]"] if in_checkout() else [f"local-rag[{name}]"]
    pinned = ["--constraint", str(constraints())] if constraints() else []
    return shlex.join([sys.executable, "-m", "pip", "install", *pinned, *what])


def needs_package(what: str, package: str | None, extra: str) -> str:
    """Say that something needs a package that is not installed, and how to install the extra with it."""
    return f"{what} needs {package}, which is not installed; run `{extra_command(extra)}`."


def licence_file() -> Path:
    """Return the program's own licence, Apache-2.0, in the checkout or in the installed package."""
    package = Path(__file__).parent
    return next(path for folder in (package.parent, package) if (path := folder / "LICENSE").is_file())
