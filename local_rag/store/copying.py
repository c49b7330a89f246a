"""Copy a library as it is at one moment: the store, the live index and the user's settings, without its history."""

import shutil
from contextlib import closing
from pathlib import Path

from local_rag.errors import LibraryError
from local_rag.files import SETTINGS_FILE
from local_rag.index.generations import SEGMENTS, Generations
from local_rag.index.segment import read_manifest
from local_rag.store.connect import STORE_FILE
from local_rag.store.database import Store


def copy_store(store: Store, folder: Path) -> None:
    """Write a copy of a store, with the same ids, into an empty folder."""
    store.connection.execute("VACUUM INTO ?", (str(folder / STORE_FILE),))


def copy_library(folder: Path, target: Path) -> None:
    """Write a copy of a library into an empty folder; the same library gives the same bytes.

    `index` may run meanwhile. If it replaces the index and deletes the one that is being copied, the copy starts again.
    """
    indexes = Generations(folder)
    while True:
        live = indexes.live_name()  # before the store is copied, so it names no chunk that the copy lacks
        try:
            _copy(folder, target, live)
            break
        except (OSError, LibraryError):
            if indexes.live_name() == live:
                raise
            shutil.rmtree(target, ignore_errors=True)


def _copy(folder: Path, target: Path, live: str) -> None:
    """Copy the store, this generation and the settings."""
    target.mkdir(parents=True, exist_ok=True)
    with closing(Store(folder)) as store:
        copy_store(store, target)
    if live:
        shutil.copytree(folder / "generations" / live, target / "generations" / live)
        for name in read_manifest(folder / "generations" / live).get("segments", ()):
            shutil.copytree(folder / SEGMENTS / name, target / SEGMENTS / name)
        (target / "CURRENT").write_text(live)
    if (folder / SETTINGS_FILE).is_file():
        shutil.copyfile(folder / SETTINGS_FILE, target / SETTINGS_FILE)
