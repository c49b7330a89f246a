"""The process that a command has left behind: it holds a library, and answers the next commands through its socket.

    python -m local_rag.serving.left FOLDER DESCRIPTOR

It ends some minutes after the last question (the setting `keep_warm`), when the memory of the machine runs short, and
when the library or its settings are replaced. New generations of the library are picked up as in any server.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from local_rag.files import SETTINGS_FILE
from local_rag.library import Library
from local_rag.machine import memory
from local_rag.serving.service import LocalService
from local_rag.serving.socket_client import socket_path
from local_rag.serving.threads import LateError
from local_rag.serving.unix_socket import SocketServer
from local_rag.serving.worker import LibraryWorker
from local_rag.store.schema import STORE_FILE

_LAST_SECONDS = 5.0  # for freeing the models
_SHORT = 0.1  # of the memory: with less available, it is given back


class Left:
    """A library that is kept for the next commands, until nobody needs it any more."""

    def __init__(
        self,
        listener: socket.socket,
        open_library: Callable[[], Library],
        *,
        memory: Callable[[], tuple[int, int]] = memory,
        look_seconds: float = 2.0,
    ) -> None:
        self._worker = LibraryWorker(open_library, idle_seconds=threading.TIMEOUT_MAX, answering=False)
        self._folder = self._worker.library.folder
        self._stamp = _stamp(self._folder)
        # No other server runs, and like the command it writes neither answers nor an audit log.
        self._service = LocalService(self._worker, lambda *_request: None, lambda: False)
        self._server = SocketServer(self._service, self, listener)
        self._memory, self._look_seconds = memory, look_seconds
        self._is_leaving, self._ended = False, asyncio.Event()

    @property
    def minutes(self) -> float:
        """Return for how long it stays after each question."""
        return self._worker.library.settings.keep_warm

    @property
    def seconds_left(self) -> float:
        """Return for how long it stays if nobody asks."""
        return 0.0 if self._is_leaving else max(0.0, self.minutes * 60 - self._worker.unasked_seconds)

    def is_current(self) -> bool:
        """Return whether the library is still the one that was opened, with the same settings."""
        return self._stamp == _stamp(self._folder)

    def leave(self) -> None:
        """End the process once it has done what it was asked for."""
        self._is_leaving = True

    def end(self) -> None:
        """End the process at once."""
        self._ended.set()

    async def run(self) -> None:
        """Answer until it is time to end."""
        self._worker.start()
        await self._server.open()
        while not self._ended.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), self._look_seconds)
            try:
                if await self._service.aside(self._may_end):
                    break
            except LateError:  # the disk of the library does not answer
                break
        await self._server.close()
        await asyncio.to_thread(self._worker.close, _LAST_SECONDS)

    def _may_end(self) -> bool:
        if self._worker.unasked_seconds < self._look_seconds:  # perhaps the command is about to ask
            return False
        total, available = self._memory()
        is_short = available < _SHORT * total
        return self.seconds_left == 0 or bool(self._worker.problem) or is_short or not self.is_current()


def _stamp(folder: Path) -> tuple[Any, ...]:
    """Return what changes when the library is replaced or gone, or the user changes its settings."""
    stamps = list[Any]()
    for path in (folder, folder / STORE_FILE, folder / SETTINGS_FILE):
        try:
            status = path.stat()
        except OSError:
            stamps.append(None)
        else:
            written = (status.st_mtime_ns, status.st_size) if path.name == SETTINGS_FILE else ()
            stamps.append((status.st_dev, status.st_ino, *written))
    return tuple(stamps)


async def _answer(left: Left) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, left.end)
    await left.run()


def main(folder: Path, descriptor: int) -> None:
    """Answer from a library until it is time to end."""
    path, listener = socket_path(folder), socket.socket(fileno=descriptor)
    try:
        inode = path.stat().st_ino
        os.chdir(folder)  # no other disk is kept in use
        asyncio.run(_answer(Left(listener, lambda: Library(folder, sealed=True))))
    finally:  # also where the library cannot be opened, of which the command tells
        with contextlib.suppress(OSError):
            if path.stat().st_ino == inode:
                path.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
    os._exit(0)  # whatever models are still being loaded
