"""Take documents out of a library, and delete what nothing in it needs any more."""

import itertools
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from local_rag.errors import LibraryError
from local_rag.files import folder_bytes
from local_rag.index.generations import SEGMENTS
from local_rag.index.protocol import Indexes
from local_rag.indexing.indexer import Indexer
from local_rag.store.database import Store, StoredDocument
from local_rag.store.history import HistoryFile
from local_rag.store.inspection import (
    compact,
    count_rows,
    drop,
    is_unfinished,
    orphaned_contexts,
    orphaned_vectors,
    purge_superseded,
)

# Nothing is deleted but what this program makes: by the names it gives.
_LEFTOVER = re.compile(
    r"library\.sqlite3\.(?:damaged(?:-wal|-shm)?|salvaged\.tmp.*)|\.(?:CURRENT|settings\.toml)\.\d+\.tmp"
    r"|CURRENT\.tmp|settings\.tmp"
)


@dataclass(frozen=True, slots=True)
class Removal:
    """What `remove` takes out; `excluded` are the paths that `index` passes over from now on."""

    documents: tuple[StoredDocument, ...]
    roots: tuple[Path, ...]
    excluded: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What `clean` deletes; `bytes` is the space on disk that it frees, estimated in a dry run.

    `kept_caches` says that contexts or vectors were left alone because a stopped run may still want them.
    """

    generations: tuple[str, ...]
    leftovers: tuple[str, ...]
    documents: int
    contexts: int
    vectors: int
    bytes: int
    kept_caches: bool


def find_documents(store: Store, paths: Iterable[Path | str]) -> Removal:
    """Find the documents at or below each path, and the roots to forget; raise LibraryError where there is neither."""
    roots, documents = store.roots(), store.documents()
    gone: dict[str, StoredDocument] = {}
    forgotten, excluded = set[Path](), set[Path]()
    for given in paths:
        path = Path(os.path.abspath(Path(given).expanduser()))  # noqa: PTH100  a link is removed as what it was read as
        places = {path, path.resolve()}
        below = [one for one in documents if any(Path(one.path).is_relative_to(place) for place in places)]
        named = {root for root in roots if any(root.is_relative_to(place) for place in places)}
        if not below and not named:
            raise LibraryError(
                f"{path} is not in the library, nor is anything below it; `local-rag status` names its folders."
            )
        gone |= {one.path: one for one in below}
        forgotten |= named
        excluded |= {place for place in places for root in roots if place != root and place.is_relative_to(root)}
    kept = set(roots) - forgotten
    excluded = {path for path in excluded if any(path.is_relative_to(root) for root in kept)}
    return Removal(tuple(gone.values()), tuple(sorted(forgotten)), tuple(sorted(excluded)))


def remove(store: Store, indexes: Indexes, indexer: Indexer | None, removal: Removal, *, erase: bool = False) -> None:
    """Take the documents out, publish an index without them where there is one, then delete their text.

    With `erase` nothing of them is left in any file: contexts and vectors that no other document wants go as well, and
    so do older indexes and damaged copies. Deleted rows are overwritten.
    """
    if erase and is_unfinished(store, indexes.live()):
        raise LibraryError(
            "An `index` has yet to run to its end, and before nobody knows which contexts are of these documents; "
            "run `local-rag index`, then erase."
        )
    store.remove(removal.documents, removal.roots, removal.excluded)
    if indexer:
        indexer.publish(rebuild=erase)
    purge_superseded(store, indexes)
    if erase:
        drop(
            store, {"contexts": list(orphaned_contexts(store)), "vectors": list(orphaned_vectors(store))}, wanted=False
        )
        HistoryFile(store.folder).erase([document.path for document in removal.documents])
        _delete(indexes.unused(indexes.live_name()), _leftovers(store.folder))
        compact(store)


def clean(store: Store, indexes: Indexes, *, dry_run: bool) -> Cleaning:
    """Delete all generations but the live one, orphaned contexts and vectors, superseded documents and leftovers."""
    folder = store.folder
    folders, leftovers = indexes.unused(indexes.live_name()), _leftovers(folder)
    before = folder_bytes(folder)
    superseded = count_rows(store)["superseded_documents"]
    if not dry_run:
        purge_superseded(store, indexes)
    kept = is_unfinished(store, indexes.live())
    contexts, vectors = ({}, {}) if kept else (orphaned_contexts(store), orphaned_vectors(store))
    freed = sum(folder_bytes(path) for path in (*folders, *leftovers)) + sum((contexts | vectors).values())
    if not dry_run:
        drop(store, {"contexts": list(contexts), "vectors": list(vectors)}, wanted=False)
        _delete(folders, leftovers)
        compact(store)
        superseded -= count_rows(store)["superseded_documents"]
        freed = before - folder_bytes(folder)
    unfinished = [path for path in folders if path.suffix == ".tmp" or path.parent.name == SEGMENTS]
    return Cleaning(
        generations=tuple(path.name for path in folders if path not in unfinished),
        leftovers=tuple(path.name for path in (*leftovers, *unfinished)),
        documents=superseded,
        contexts=len(contexts),
        vectors=len(vectors),
        bytes=freed,
        kept_caches=kept,
    )


def _leftovers(folder: Path) -> list[Path]:
    """Return what killed runs and repairs have left behind."""
    return sorted(path for path in folder.iterdir() if _LEFTOVER.fullmatch(path.name))


def _delete(*groups: Iterable[Path]) -> None:
    for path in itertools.chain(*groups):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
