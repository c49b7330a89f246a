"""Lock a library for writing: one process at a time, and only in a folder that is a library or may become one."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from local_rag.errors import LibraryError
from local_rag.files import no_library
from local_rag.store.connect import OWN_FILES, is_library
from local_rag.store.database import Store
from local_rag.store.storage_errors import storage_errors


@contextmanager
def library_lock(folder: Path, *, create: bool = False) -> Iterator[None]:
    """Hold a library's lock, which the system releases when the process ends; `create` makes a missing folder.

    Raises LibraryError if another process holds the lock, or if the folder holds other files and no library.
    """
    if not create and not folder.is_dir():
        raise LibraryError(no_library(folder))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        others = [] if is_library(folder) else [path.name for path in folder.iterdir()]
    except OSError as error:
        raise LibraryError(
            f"The library {folder} cannot be made ({error}); name another folder with `--library`."
        ) from None
    if strangers := sorted(set(others) - OWN_FILES):
        raise LibraryError(
            f"{folder} holds other files ({strangers[0]}) and no library; name an empty or new folder with `--library`."
        )
    owner = folder / "lock.pid"
    with storage_errors(folder):
        lock = FileLock(folder / "lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            pid = owner.read_text().strip() if owner.exists() else ""
            raise LibraryError(
                f"Another local-rag (process {pid or 'unknown'}) is writing to {folder}; wait for it or stop it."
            ) from None
        try:
            with suppress(OSError):  # on a full disk `clean` must work
                owner.write_text(str(os.getpid()))
            yield
        finally:
            lock.release()


@contextmanager
def locked_store(folder: Path, *, create: bool = False) -> Iterator[Store]:
    """Hold a library's lock and yield its store, opened for writing; `create` makes both if they are missing."""
    with library_lock(folder, create=create), closing(Store(folder, create=create, write=True)) as store:
        yield store
