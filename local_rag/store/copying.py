"""Copy a library as it is at one moment: the store, the live index and the user's settings, without its history."""

import shutil
from contextlib import closing
from pathlib import Path

from local_rag.files import SETTINGS_FILE
from local_rag.index.generations import SEGMENTS, Generations
from local_rag.index.segment import read_manifest
from local_rag.store.connect import STORE_FILE
from local_rag.store.database import Store


def copy_store(store: Store, folder: Path) -> None:
    """Write a copy of a store, with the same ids, into an empty folder."""
    store.connection.execute("VACUUM INTO ?", (str(folder / STORE_FILE),))


def copy_library(folder: Path, target: Path) -> None:
    """Write a copy of a library into an empty folder; the same library gives the same bytes."""
    target.mkdir(parents=True, exist_ok=True)
    with closing(Store(folder)) as store:
        live = Generations(folder).live_name()  # before the store is copied, so it names no chunk that the copy lacks
        copy_store(store, target)
    if live:
        shutil.copytree(folder / "generations" / live, target / "generations" / live)
        for name in read_manifest(folder / "generations" / live).get("segments", ()):
            shutil.copytree(folder / SEGMENTS / name, target / SEGMENTS / name)
        (target / "CURRENT").write_text(live)
    if (folder / SETTINGS_FILE).is_file():
        shutil.copyfile(folder / SETTINGS_FILE, target / SETTINGS_FILE)
