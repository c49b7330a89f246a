"""Remove documents from a library, and delete what it no longer needs."""

import itertools
import os
import re
import shutil
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from local_rag.errors import LibraryError
from local_rag.files import folder_bytes
from local_rag.index.generations import SEGMENTS
from local_rag.index.protocol import Indexes
from local_rag.maintenance.erase import count_missing, forget_documents, forget_missing_in_file
from local_rag.maintenance.removal import publish_without
from local_rag.store.database import Store, StoredDocument
from local_rag.store.inspection import (
    compact,
    count_rows,
    drop,
    drop_unused_distinctions,
    is_unfinished,
    orphaned_contexts,
    orphaned_vectors,
    purge_superseded,
    shrink,
)

# Only files with names that this program gives are deleted.
_LEFTOVER = re.compile(r"library\.sqlite3\.(?:damaged(?:-wal|-shm)?|salvaged\.tmp.*)|\.CURRENT\.\d+\.tmp")


@dataclass(frozen=True, slots=True)
class Removal:
    """What `remove` deletes; `index` skips the `excluded` paths from now on."""

    documents: tuple[StoredDocument, ...]
    roots: tuple[Path, ...]
    excluded: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What `clean` deletes; `bytes` is the disk space that it frees, estimated in a dry run.

    `turns` are the turns of conversations that quote documents which the library no longer holds. `kept_caches` says
    that contexts and vectors were kept because an unfinished run of `index` may still need them.
    """

    generations: tuple[str, ...]
    leftovers: tuple[str, ...]
    documents: int
    turns: int
    contexts: int
    vectors: int
    bytes: int
    kept_caches: bool


def find_documents(store: Store, paths: Iterable[Path | str]) -> Removal:
    """Find the documents at or below each path, and the roots to forget; raise LibraryError if there are none."""
    roots, documents = store.roots(), store.documents()
    gone: dict[str, StoredDocument] = {}
    forgotten, excluded = set[Path](), set[Path]()
    for given in paths:
        path = Path(os.path.abspath(Path(given).expanduser()))  # noqa: PTH100  a link is removed under its own path
        both = {path, path.resolve()}
        below = [one for one in documents if any(Path(one.path).is_relative_to(base) for base in both)]
        named = {root for root in roots if any(root.is_relative_to(base) for base in both)}
        if not below and not named:
            raise LibraryError(f"The library holds nothing at or below {path}; `local-rag status` lists its folders.")
        gone |= {one.path: one for one in below}
        forgotten |= named
        excluded |= {base for base in both for root in roots if base != root and base.is_relative_to(root)}
    kept = set(roots) - forgotten
    excluded = {path for path in excluded if any(path.is_relative_to(root) for root in kept)}
    return Removal(tuple(gone.values()), tuple(sorted(forgotten)), tuple(sorted(excluded)))


def remove(store: Store, indexes: Indexes, removal: Removal, *, erase: bool = False) -> None:
    """Remove documents, publish an index without them if there is an index, then delete their text.

    With `erase`, nothing of them is left in any file: contexts and vectors that no other document wants, older indexes
    and damaged copies are deleted too. Deleted rows are overwritten.
    """
    if erase and is_unfinished(store, indexes.live()):
        raise LibraryError(
            "The last `index` is unfinished, so it is not known yet which contexts belong to these documents; run "
            "`local-rag index` to completion, then erase."
        )
    store.remove(removal.documents, removal.roots, removal.excluded)
    publish_without(store, indexes, {one.path for one in removal.documents}, rebuild=erase)
    purge_superseded(store, indexes)
    if erase:
        drop(
            store, {"contexts": list(orphaned_contexts(store)), "vectors": list(orphaned_vectors(store))}, wanted=False
        )
        documents = removal.documents
        forget_documents(store, {one.path for one in documents}, {one.sha256 for one in documents})
        indexes.prune()
        _delete(_leftovers(store.folder))
        compact(store)


def clean(folder: Path, indexes: Indexes, *, dry_run: bool) -> Cleaning:
    """Delete older generations, orphaned contexts and vectors, superseded documents and leftovers.

    Files are deleted first: on a full disk, SQLite needs their space to delete rows. The caller holds the lock.
    """
    with closing(Store(folder)):  # raises for a folder that is no library of this version
        pass
    folders, leftovers = indexes.unused(indexes.live_name()), _leftovers(folder)
    before, freed = folder_bytes(folder), sum(folder_bytes(path) for path in (*folders, *leftovers))
    if not dry_run:
        _delete(folders, leftovers)
    with closing(Store(folder, write=True)) as store, store.transaction(keep=not dry_run):
        superseded = count_rows(store)["superseded_documents"]
        purge_superseded(store, indexes)
        turns = count_missing(store)
        kept = is_unfinished(store, indexes.live())
        contexts, vectors = ({}, {}) if kept else (orphaned_contexts(store), orphaned_vectors(store))
        drop(store, {"contexts": list(contexts), "vectors": list(vectors)}, wanted=False)
        if not kept:
            drop_unused_distinctions(store)
        superseded -= count_rows(store)["superseded_documents"]
        freed += sum((contexts | vectors).values())
    if not dry_run:
        with closing(Store(folder, write=True)) as store:
            forget_missing_in_file(store, indexes)
            shrink(store)
        freed = before - folder_bytes(folder)
    unfinished = [path for path in folders if path.suffix == ".tmp" or path.parent.name == SEGMENTS]
    return Cleaning(
        generations=tuple(path.name for path in folders if path not in unfinished),
        leftovers=tuple(path.name for path in (*leftovers, *unfinished)),
        documents=superseded,
        turns=turns,
        contexts=len(contexts),
        vectors=len(vectors),
        bytes=freed,
        kept_caches=kept,
    )


def _leftovers(folder: Path) -> list[Path]:
    """Return the files that killed runs and repairs have left."""
    return sorted(path for path in folder.iterdir() if _LEFTOVER.fullmatch(path.name))


def _delete(*groups: Iterable[Path]) -> None:
    for path in itertools.chain(*groups):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
