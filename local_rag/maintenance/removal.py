"""Remove documents from a library, and delete what it no longer needs."""

import os
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from local_rag.errors import LibraryError
from local_rag.files import LOCAL_DISK, Disk, as_listed, folder_bytes
from local_rag.index.generations import SEGMENTS
from local_rag.index.protocol import Indexes
from local_rag.indexing.added_texts import delete_texts
from local_rag.maintenance.erase import (
    count_missing,
    delete_files,
    finish_erasing,
    forget_missing_in_file,
    leftovers,
    publish_without_erased,
    require_finished,
    traces,
)
from local_rag.maintenance.republish import publish_without
from local_rag.store.context_rows import drop_unused_distinctions
from local_rag.store.counts import count_rows, is_unfinished
from local_rag.store.database import Store, StoredDocument
from local_rag.store.erasing import begin_erasing, erasing, forget_orders, hidden_among, ordered_erasures
from local_rag.store.published import require_own
from local_rag.store.upkeep import drop, orphaned_contexts, orphaned_vectors, prune_ocr_pages, purge_superseded, shrink


@dataclass(frozen=True, slots=True)
class Removal:
    """What `remove` deletes; `index` skips the `excluded` paths from now on.

    `named` are the paths that were given, and `earlier` those that only the history, a recorded question or a removed
    document names.
    """

    documents: tuple[StoredDocument, ...]
    roots: tuple[Path, ...]
    excluded: tuple[Path, ...]
    named: tuple[Path, ...]
    earlier: tuple[str, ...]


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


def find_documents(
    store: Store, paths: Iterable[Path | str], *, erase: bool = False, disk: Disk = LOCAL_DISK
) -> Removal:
    """Find the documents at or below each path, and the roots to forget; raise LibraryError if there are none.

    With `erase`, a path is enough that only the history, a recorded question or a removed document names.
    """
    roots, documents, is_erased = store.roots(), store.documents(), hidden_among(store.excluded())
    gone: dict[str, StoredDocument] = {}
    forgotten, excluded = set[Path](), set[Path]()
    named = set[Path]()
    for given in paths:
        path = Path(os.path.abspath(Path(given).expanduser()))  # noqa: PTH100  a link is removed under its own path
        both = {path, as_listed(path.resolve(), disk)}
        below = [one for one in documents if any(Path(one.path).is_relative_to(base) for base in both)]
        below_roots = {root for root in roots if any(root.is_relative_to(base) for base in both)}
        known = erase and (traces(store, both) or any(is_erased(str(base)) for base in both))
        if not (below or below_roots or known):
            raise LibraryError(f"The library holds nothing at or below {path}; `local-rag status` lists its folders.")
        gone |= {one.path: one for one in below}
        forgotten |= below_roots
        excluded |= {base for base in both for root in roots if base != root and base.is_relative_to(root)}
        named |= both
    kept = set(roots) - forgotten
    excluded = {path for path in excluded if any(path.is_relative_to(root) for root in kept)}
    earlier = sorted({path for _, path in traces(store, named)} - gone.keys()) if erase else ()
    return Removal(
        tuple(gone.values()), tuple(sorted(forgotten)), tuple(sorted(excluded)), tuple(sorted(named)), tuple(earlier)
    )


def remove(store: Store, indexes: Indexes, removal: Removal, *, erase: bool = False) -> None:
    """Remove documents, publish an index without them if there is an index, then delete their text.

    Added texts are deleted with their files.

    With `erase`, nothing of them is left in any file. An erasure that was killed is finished too.
    """
    if live := indexes.live():
        require_own(store, live)
    if erase:
        if not erasing(store):  # one that was killed has left no finished index
            require_finished(store, indexes)
        earlier = traces(store, removal.named)
        hashes = {one.sha256 for one in removal.documents} | {sha256 for sha256, _ in earlier if sha256}
        begin_erasing(store, removal.documents, removal.named, hashes, removal.roots)
    else:
        store.remove(removal.documents, removal.roots, removal.excluded)
    delete_texts(store.folder, {one.path for one in removal.documents}.union(map(str, removal.named)))
    publish_without(store, indexes, {one.path for one in removal.documents})
    if erase or (erasing(store) and not is_unfinished(store, indexes.live())):
        finish_erasing(store, indexes)
    else:
        purge_superseded(store, indexes)


def erase_ordered(store: Store, indexes: Indexes, disk: Disk = LOCAL_DISK) -> None:
    """Erase what was ordered while another process wrote; raise LibraryError while an `index` is unfinished."""
    for path in ordered_erasures(store):
        try:
            removal = find_documents(store, [path], erase=True, disk=disk)
        except LibraryError:  # it was erased meanwhile
            forget_orders(store, {path}.__contains__)
        else:
            remove(store, indexes, removal, erase=True)


def clean(folder: Path, indexes: Indexes, *, dry_run: bool) -> Cleaning:
    """Delete older generations, orphaned contexts and vectors, superseded documents and leftovers.

    Files are deleted first: on a full disk, SQLite needs their space to delete rows. The caller holds the lock.
    """
    with closing(Store(folder)) as store:  # raises for a folder that is no library of this version
        begun = bool(erasing(store))
    if begun and not dry_run:
        with closing(Store(folder, write=True)) as store:
            publish_without_erased(store, indexes)
    folders, left = indexes.unused(indexes.live_name()), leftovers(folder)
    before, freed = folder_bytes(folder), sum(folder_bytes(path) for path in (*folders, *left))
    if not dry_run:
        delete_files(folders, left)
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
            if erasing(store) and not kept:
                finish_erasing(store, indexes)
            forget_missing_in_file(store, indexes)
            if not kept:
                prune_ocr_pages(store.folder, store.content_hashes())
            shrink(store)
            indexes.over(store).expunge()
            indexes.over(store).prune()
        freed = before - folder_bytes(folder)
    unfinished = [path for path in folders if path.suffix == ".tmp" or path.parent.name == SEGMENTS]
    return Cleaning(
        generations=tuple(path.name for path in folders if path not in unfinished),
        leftovers=tuple(path.name for path in (*left, *unfinished)),
        documents=superseded,
        turns=turns,
        contexts=len(contexts),
        vectors=len(vectors),
        bytes=freed,
        kept_caches=kept,
    )
