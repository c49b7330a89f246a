"""A store and its published index: whether they belong together, and a copy of both as they are at one moment.

The ids of chunks in an index mean something else in any other version of the file. A store therefore remembers the
content of the index that is being published, and of the live one until it is replaced. An index that it does not know
belongs to another version of the file, of before or after a backup that was put back.
"""

import shutil
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from local_rag.errors import DamagedLibraryError, LibraryError
from local_rag.files import SETTINGS_FILE
from local_rag.index.generations import SEGMENTS, Generations
from local_rag.index.protocol import Index, Indexes, PassageStore
from local_rag.index.segment import read_manifest
from local_rag.store.database import Store
from local_rag.store.schema import STORE_FILE

FOREIGN = "library.sqlite3 is not the version that the index was made from"
_NAME = "published"  # among what a store remembers


def note_publish(store: Store, indexes: Indexes, manifest: Mapping[str, Any]) -> None:
    """Record that an index with this manifest is about to replace the live one."""
    live, known = None, _known(store)
    with suppress(DamagedLibraryError):
        live = indexes.live()
    kept = [live.manifest["content"]] if live and made_from(store, live) else []
    if (now := list(dict.fromkeys([manifest["content"], *kept]))) != known:
        store.remember({_NAME: now})


def made_from(store: Store, index: Index) -> bool:
    """Say whether an index was made from this version of a store, as far as is known."""
    known = _known(store)
    return known is None or index.manifest.get("content") in known


def ever_published(store: Store) -> bool:
    """Say whether an index of a store has been published, or nearly."""
    return _known(store) is not None


def _known(store: Store) -> list[str] | None:
    known = store.remembered(_NAME)
    return None if known is None else list(map(str, known))


def require_own(passages: PassageStore, index: Index) -> None:
    """Raise LibraryError if a store is not the version of the file that an index was made from."""
    if isinstance(passages, Store) and not made_from(passages, index):
        raise LibraryError(
            f"The {FOREIGN} in {passages.folder} (was a backup put back?); run `local-rag index` to make it again."
        )


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
