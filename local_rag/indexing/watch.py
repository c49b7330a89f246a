"""Wait until something changes below the indexed folders: told by the system where it does, else by looking.

Linux tells of changes on a disk of its own through inotify, which costs nothing while nothing happens. What lies on a
network drive, or on another system, is looked at from time to time. So is, everywhere, whether each folder is there:
one that goes away and comes back counts as a change. What changes shortly after one another is one batch.
"""

import ctypes
import errno
import os
import select
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from time import monotonic

from local_rag.machine import file_system, is_network

QUIET_SECONDS, BATCH_SECONDS = 1.0, 30.0  # a batch ends when nothing has changed for so long, or has for so long
POLL_SECONDS = 30.0
_STEP_SECONDS = 5.0  # after which somebody who wants to stop is heard at the latest

_CREATED, _DELETED, _WRITTEN, _MOVED, _SELF = 0x100, 0x200, 0x008, 0x0C0, 0xC00
_MASK = _CREATED | _DELETED | _WRITTEN | _MOVED | _SELF
_HEAD = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows


class Inotify:
    """Be told by Linux of changes in folders; raises OSError where that cannot be had, or not for so many folders."""

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise OSError(errno.ENOSYS, "there is no inotify here")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify cannot be used")

    def add(self, folder: Path) -> None:
        """Be told of a folder too; one that has vanished is passed over."""
        if self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), _MASK) < 0:
            code = ctypes.get_errno()
            if code not in {errno.ENOENT, errno.EACCES, errno.ENOTDIR}:
                raise OSError(code, os.strerror(code), str(folder))

    def wait(self, seconds: float) -> bool:
        """Wait for a change at most so long; say whether there was one, in anything that is not hidden."""
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return False
        changed = False
        with suppress(BlockingIOError):
            while data := os.read(self._descriptor, 1024 * 1024):
                changed |= any(not name.startswith(b".") for name in _names(data))
        return changed

    def close(self) -> None:
        """End being told."""
        os.close(self._descriptor)


def _names(events: bytes) -> Iterator[bytes]:
    """Yield the name that each event is about, empty for the folder itself, or where some were lost."""
    place = 0
    while place < len(events):
        length = _HEAD.unpack_from(events, place)[3]
        place += _HEAD.size + length
        yield events[place - length : place].rstrip(b"\0")


class Watch:
    """Watch what lies below some roots, but not the library's own folder."""

    def __init__(self, library: Path, *, poll_seconds: float = POLL_SECONDS) -> None:
        self._library, self._poll_seconds = library, poll_seconds
        self._told: Inotify | None = None
        with suppress(OSError):
            self._told = Inotify()
        self._roots: tuple[Path, ...] = ()
        self._polled: list[Path] = []
        self._seen: object = None
        self._looked = monotonic()

    def close(self) -> None:
        """End watching."""
        if self._told:
            self._told.close()

    def look(self, roots: Sequence[Path]) -> None:
        """Watch these roots, with whatever folders are below them now, and take them as they are."""
        self._roots, self._polled = tuple(roots), []
        for root in roots:
            if not (self._told and self._be_told_of(root, self._told)):
                self._polled.append(root)
        self._seen, self._looked = self._state(), monotonic()

    def wait(self, seconds: float) -> bool:
        """Wait for a change at most so long; say whether there was one."""
        if self._told:
            changed = self._told.wait(seconds)
        else:
            Event().wait(seconds)
            changed = False
        if not changed and monotonic() - self._looked >= self._poll_seconds:
            before, self._seen, self._looked = self._seen, self._state(), monotonic()
            changed = before != self._seen
        return changed

    def _be_told_of(self, root: Path, told: Inotify) -> bool:
        """Ask to be told of a root; return whether that could be had."""
        top = root.parent if root.is_file() else root
        if is_network(file_system(top)):
            return False
        try:
            for folder in [top] if top != root else self._folders(root):
                told.add(folder)
        except OSError:  # more folders than the system allows
            return False
        return True

    def _folders(self, root: Path) -> Iterator[Path]:
        """Yield the folders below a root that may hold documents."""
        for folder, names, _ in os.walk(root):
            names[:] = [name for name in names if not name.startswith(".") and Path(folder, name) != self._library]
            yield Path(folder)

    def _state(self) -> object:
        """Return what differs as soon as a root goes or comes, or what is below a polled one is another."""
        present = tuple(map(_is_there, self._roots))
        files = []
        for root in self._polled:
            for folder in self._folders(root) if root.is_dir() else [root.parent]:
                with suppress(OSError), os.scandir(folder) as entries:
                    for entry in entries:
                        with suppress(OSError):
                            status = entry.stat(follow_symlinks=False)
                            files.append((entry.path, status.st_size, status.st_mtime_ns, status.st_ino))
        return present, sorted(files)


def _is_there(root: Path) -> bool:
    """Say whether a root is a file, or a folder that holds anything."""
    with suppress(OSError):
        return next(root.iterdir(), None) is not None if root.is_dir() else root.exists()
    return False


def batches(
    watch: Watch, roots: Callable[[], Sequence[Path]], stop: Event, *, quiet_seconds: float = QUIET_SECONDS
) -> Iterator[None]:
    """Yield whenever something has changed and nothing more does, and once at the beginning, until `stop` is set.

    What changes while a batch is dealt with makes the next one.
    """
    watch.look(roots())
    while not stop.is_set():
        yield
        watched = roots()
        watch.look(watched)
        while not stop.is_set() and not watch.wait(_STEP_SECONDS):
            pass
        # New folders are watched at once: what is put into them belongs to the same batch.
        watch.look(watched)
        ends = monotonic() + BATCH_SECONDS
        while monotonic() < ends and not stop.is_set() and watch.wait(quiet_seconds):
            watch.look(watched)
