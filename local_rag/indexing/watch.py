"""Wait until something changes below the indexed folders, by inotify or by polling.

Linux reports changes on local disks through inotify, at no cost while nothing happens. Network drives and other systems
are polled. Everywhere it is polled whether each folder exists: a folder that disappears and comes back counts as a
change. Changes in quick succession are one batch.
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
from local_rag.reading.mailbox import names_to_read
from local_rag.reading.walk import NEVER_ENTERED

QUIET_SECONDS, BATCH_SECONDS = 1.0, 30.0  # a batch ends when nothing changes for so long, or after so long
POLL_SECONDS = 30.0
_STEP_SECONDS = 5.0  # the longest wait before `stop` is checked

_CREATED, _DELETED, _WRITTEN, _MOVED, _SELF = 0x100, 0x200, 0x008, 0x0C0, 0xC00
_LOST, _FOLDER = 0x4000, 0x40000000  # events were lost; the event is about a folder
_MASK = _CREATED | _DELETED | _WRITTEN | _MOVED | _SELF
_HEAD = struct.Struct("iIII")  # watch, mask, cookie, length of the following name


class Inotify:
    """Changes in folders as Linux reports them; raises OSError if inotify is missing or its limit is reached."""

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise OSError(errno.ENOSYS, "inotify is missing")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify cannot be used")

    def add(self, folder: Path) -> None:
        """Watch another folder; skip one that has vanished."""
        if self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), _MASK) < 0:
            code = ctypes.get_errno()
            if code not in {errno.ENOENT, errno.EACCES, errno.ENOTDIR}:
                raise OSError(code, os.strerror(code), str(folder))

    def wait(self, seconds: float) -> tuple[bool, bool]:
        """Wait for a change for at most so long; say whether files have changed, and whether folders may be others."""
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return False, False
        changed = folders = False
        with suppress(BlockingIOError):
            while data := os.read(self._descriptor, 1024 * 1024):
                for mask, name in _events(data):
                    if not name.startswith(b".") or name == b".gitignore":
                        changed = True
                        folders |= bool(mask & (_FOLDER | _LOST | _SELF))
        return changed, folders

    def close(self) -> None:
        """Stop watching."""
        os.close(self._descriptor)


def _events(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the mask of each event and the name in it; empty for the folder itself and if events were lost."""
    end = 0
    while end < len(data):
        _, mask, _, length = _HEAD.unpack_from(data, end)
        end += _HEAD.size + length
        yield mask, data[end - length : end].rstrip(b"\0")


class Watch:
    """Watch the files below some roots, except the library's own folder."""

    def __init__(self, library: Path, *, poll_seconds: float = POLL_SECONDS) -> None:
        self._library, self._poll_seconds = library, poll_seconds
        self._inotify: Inotify | None = None
        with suppress(OSError):
            self._inotify = Inotify()
        self._roots: tuple[Path, ...] = ()
        self._polled: list[Path] = []
        self._seen: object = None
        self._looked = monotonic()
        self._stale = False  # folders may be there that are not watched

    def close(self) -> None:
        """Stop watching."""
        if self._inotify:
            self._inotify.close()

    def look(self, roots: Sequence[Path]) -> None:
        """Watch these roots with all folders now below them; changes count from now on."""
        self._roots, self._polled = tuple(roots), []
        for root in roots:
            if not (self._inotify and self._watches(root, self._inotify)):
                self._polled.append(root)
        self._seen, self._looked, self._stale = self._state(), monotonic(), False

    def follow(self) -> None:
        """Watch the folders that are new since the last look, if there are any: files put into them count too."""
        if self._stale:
            self.look(self._roots)

    def wait(self, seconds: float) -> bool:
        """Wait for a change for at most so long; say whether there was one."""
        if self._inotify:
            changed, folders = self._inotify.wait(seconds)
            self._stale |= folders
        else:
            Event().wait(seconds)
            changed = False
        if not changed and monotonic() - self._looked >= self._poll_seconds:
            before, self._seen, self._looked = self._seen, self._state(), monotonic()
            changed = before != self._seen
            self._stale |= changed
        return changed

    def _watches(self, root: Path, inotify: Inotify) -> bool:
        """Watch a root by inotify; return whether that is possible."""
        top = root.parent if root.is_file() else root
        if is_network(file_system(top)):
            return False
        try:
            for folder in [top] if top != root else self._folders(root):
                inotify.add(folder)
        except OSError:  # more folders than the system allows
            return False
        return True

    def _folders(self, root: Path) -> Iterator[Path]:
        """Yield the folders below a root that may hold documents."""
        for folder, names, files in os.walk(root):
            read = {*names_to_read([*names, *files])} - NEVER_ENTERED
            names[:] = [name for name in names if name in read and Path(folder, name) != self._library]
            yield Path(folder)

    def _state(self) -> object:
        """Return a value that changes when a root appears or disappears, or files below a polled root change."""
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
    """Say whether a root is a file, or a folder that is not empty."""
    with suppress(OSError):
        return next(root.iterdir(), None) is not None if root.is_dir() else root.exists()
    return False


def batches(
    watch: Watch, roots: Callable[[], Sequence[Path]], stop: Event, *, quiet_seconds: float = QUIET_SECONDS
) -> Iterator[None]:
    """Yield once at the beginning and then after each batch of changes, until `stop` is set.

    Changes during the processing of a batch belong to the next one.
    """
    watch.look(roots())
    while not stop.is_set():
        yield
        watch.look(roots())
        while not stop.is_set() and not watch.wait(_STEP_SECONDS):
            pass
        # Watch new folders at once: files put into them belong to the same batch.
        watch.follow()
        ends = monotonic() + BATCH_SECONDS
        while monotonic() < ends and not stop.is_set() and watch.wait(quiet_seconds):
            watch.follow()
