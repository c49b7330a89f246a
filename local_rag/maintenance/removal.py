"""Remove or erase documents, and delete what a library no longer needs.

What is to be erased is recorded in the store before anything is deleted, so a run that was killed, or that failed, is
finished by the next `remove`, `index` or `clean`.
"""

import itertools
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from local_rag.errors import LibraryError
from local_rag.files import LOCAL_DISK, Disk, as_listed, folder_bytes, plain_pattern
from local_rag.index.generations import SEGMENTS
from local_rag.index.protocol import Contents, Index, Indexes, content_key
from local_rag.indexing.added_texts import delete_texts
from local_rag.indexing.embedding import index_rows
from local_rag.indexing.indexer import content_of
from local_rag.store.cell_rows import drop_unused_cells, forget_tables, forget_tables_that_quote
from local_rag.store.context_rows import drop_unused_distinctions
from local_rag.store.counts import count_rows, is_unfinished
from local_rag.store.database import Store, StoredDocument
from local_rag.store.erasing import (
    Erasing,
    begin_erasing,
    earlier_documents,
    end_erasing,
    erasing,
    forget_former,
    forget_names,
    forget_orders,
    former_paths,
    hidden_among,
    ordered_erasures,
)
from local_rag.store.history import History, IsGone, kept_history
from local_rag.store.housekeeping import (
    compact,
    drop,
    orphaned_contexts,
    orphaned_vectors,
    prune_ocr_pages,
    purge_superseded,
    shrink,
)
from local_rag.store.people_file import forget_limits
from local_rag.store.published import note_publish, require_own
from local_rag.store.recorded_questions import forget_questions, questioned_documents
from local_rag.store.vector_rows import count_rows_of


def publish_without(store: Store, indexes: Indexes, paths: Collection[str]) -> None:
    """Publish the live index without the documents at these paths, if there is an index that holds any of them.

    What a stopped `index` has left to do stays to be done, under the settings of that run.
    """
    if (live := indexes.live()) is None:
        return
    gone = store.ids_at(paths).intersection(live.documents()[0].tolist())
    if gone:
        _publish(store, indexes, live, gone)


def publish_paths(store: Store, indexes: Indexes) -> None:
    """Publish the live index again if it holds the paths of its documents itself, which have changed."""
    live = indexes.live()
    if live is not None and live.passages() is not None:
        _publish(store, indexes, live, set())


def _publish(store: Store, indexes: Indexes, live: Index, gone: Collection[int]) -> None:
    ids, versions = live.documents()
    kept = ~np.isin(ids, list(gone))
    place_of = store.order_by_path()
    order = np.argsort([place_of[one] for one in ids[kept].tolist()])
    ids, versions = ids[kept][order], versions[kept][order]
    said = live.manifest
    lost = count_rows_of(store, gone)
    manifest = {
        **said,
        "content": content_of(said["fingerprint"], ids, versions),
        **{name: said[name] - count for name, count in lost.items()},
    }
    note_publish(store, indexes, manifest)
    rows = partial(index_rows, store, said["fingerprint"]["context"])
    indexes.over(store).publish(Contents(ids, versions, rows), manifest)


# Only files with names that this program gives are deleted.
_LEFTOVER = re.compile(r"library\.sqlite3\.(?:damaged(?:-wal|-shm)?|salvaged\.tmp.*)|\.CURRENT\.\d+\.tmp")


def forget_missing(store: Store, indexes: Indexes, history: History) -> int:
    """Delete every turn that quotes a document of which the library holds neither the content nor the path.

    Cached answers made with another index than the live one are deleted too. Return the number of turns.
    """
    live = indexes.live()
    return history.forget_documents(_missing(store), made_with=content_key(live.manifest) if live else "")


def forget_missing_in_file(store: Store, indexes: Indexes) -> None:
    """Do this to the history file, if there is one."""
    with kept_history(store.folder) as history:
        if history:
            forget_missing(store, indexes, history)


def count_missing(store: Store) -> int:
    """Return how many turns of the history file quote a document that the library no longer holds."""
    with kept_history(store.folder) as history:
        return history.count_quoting(_missing(store)) if history else 0


def _missing(store: Store) -> IsGone:
    return lambda sha256, path: bool(sha256) and not store.holds(sha256, path)


def traces(store: Store, bases: Collection[Path]) -> list[tuple[str, str]]:
    """Return SHA-256 and path of what anything but the live documents knows at or below these paths."""
    named = Erasing(frozenset(map(str, bases)))
    found = earlier_documents(store) + questioned_documents(store.folder)
    with kept_history(store.folder) as history:
        found += history.documents() if history else []
    return [(sha256, path) for sha256, path in found if named.names(path)]


def publish_without_erased(store: Store, indexes: Indexes) -> None:
    """Publish the live index without the documents that are being erased, if it holds any of them."""
    work = erasing(store)
    publish_without(store, indexes, [path for path in store.superseded_paths() if work.names(path)])


def finish_erasing(store: Store, indexes: Indexes) -> None:
    """Leave nothing of what is being erased in any file.

    Contexts and vectors that no document wants are deleted, also older indexes and damaged copies. Can be repeated.
    """
    publish_without_erased(store, indexes)
    require_finished(store, indexes)
    work = erasing(store)

    def is_gone(sha256: str, path: str) -> bool:
        return work.names(path) or (sha256 in work.hashes and not store.holds("", path))

    purge_superseded(store, indexes)
    drop(store, {"contexts": list(orphaned_contexts(store)), "vectors": list(orphaned_vectors(store))}, wanted=False)
    drop_unused_distinctions(store)
    drop_unused_cells(store)
    prune_ocr_pages(store.folder, store.content_hashes())
    names = _names_of(store, work.paths | former_paths(store, work.paths))
    with kept_history(store.folder) as history:
        if history:
            history.forget_documents(is_gone, erased=names)
    forget_questions(store.folder, is_gone)
    forget_limits(store.folder, names)
    forget_tables(store, names)
    forget_former(store, work.names)
    indexes.over(store).expunge()
    indexes.over(store).prune()
    delete_files(leftovers(store.folder))
    forget_names(store)
    compact(store)
    end_erasing(store)


def _names_of(store: Store, paths: frozenset[str]) -> Callable[[str], bool]:
    """Return a function that says whether a pattern names what is erased: by one of its paths, or a name of its own.

    A name that other documents have in their paths tells nothing.
    """
    others = {name for document in store.documents() for name in document.path.split("/")}
    names, erased = {Path(path).name for path in paths} - others, Erasing(paths)

    def name(pattern: str) -> bool:
        forms = {pattern, plain_pattern(pattern)}
        return any(erased.names(one.rstrip("/")) or not names.isdisjoint(one.split("/")) for one in forms)

    return name


def require_finished(store: Store, indexes: Indexes) -> None:
    """Raise LibraryError if an unfinished run of `index` leaves it unknown which contexts and vectors are needed."""
    if is_unfinished(store, indexes.live()):
        raise LibraryError(
            "The last `index` is unfinished, so it is not known yet which contexts belong to these documents; run "
            "`local-rag index` to completion, then erase."
        )


def leftovers(folder: Path) -> list[Path]:
    """Return the files that killed runs and repairs have left."""
    return sorted(path for path in folder.iterdir() if _LEFTOVER.fullmatch(path.name))


def delete_files(*groups: Iterable[Path]) -> None:
    """Delete files and folders."""
    for path in itertools.chain(*groups):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


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
    removal, unknown = _found(store, paths, erase=erase, disk=disk)
    for path in unknown:
        raise LibraryError(
            f"The library holds nothing at or below {_absolute(path)}; `local-rag status` lists its folders."
        )
    return removal


def _found(store: Store, paths: Iterable[Path | str], *, erase: bool, disk: Disk) -> tuple[Removal, list[Path | str]]:
    """Return what there is at or below some paths, and those at and below which there is nothing."""
    bases = {given: {path := _absolute(given), as_listed(path.resolve(), disk)} for given in paths}
    every = set[Path]().union(*bases.values())
    below = Erasing(frozenset(map(str, every))).names
    gone = {one.path: one for one in store.documents() if below(one.path)}
    forgotten = {root for root in store.roots() if below(str(root))}
    earlier = {path for _, path in traces(store, every)} if erase else set[str]()
    is_erased = hidden_among(store.excluded() if erase else ())
    there = {*map(Path, gone), *map(Path, earlier), *forgotten}
    known = there.union(*(path.parents for path in there))
    found = {given: both for given, both in bases.items() if both & known or any(is_erased(str(one)) for one in both)}
    named = set[Path]().union(*found.values())
    kept = set(store.roots()) - forgotten
    removal = Removal(
        documents=tuple(gone.values()),
        roots=tuple(sorted(forgotten)),
        excluded=tuple(sorted(path for path in named if not kept.isdisjoint(path.parents))),
        named=tuple(sorted(named)),
        earlier=tuple(sorted(earlier - gone.keys())),
    )
    return removal, [given for given in bases if given not in found]


def _absolute(path: Path | str) -> Path:
    return Path(os.path.abspath(Path(path).expanduser()))  # noqa: PTH100  a link is removed under its own path


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
        forget_tables_that_quote(store, removal.documents)  # before their words are gone
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
    if not (ordered := ordered_erasures(store)):
        return
    removal, unknown = _found(store, ordered, erase=True, disk=disk)
    forget_orders(store, set(unknown).__contains__)  # they were erased meanwhile
    if removal.named:
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
        superseded = count_rows(store, ("superseded_documents",))["superseded_documents"]
        purge_superseded(store, indexes)
        turns = count_missing(store)
        kept = is_unfinished(store, indexes.live())
        contexts, vectors = ({}, {}) if kept else (orphaned_contexts(store), orphaned_vectors(store))
        drop(store, {"contexts": list(contexts), "vectors": list(vectors)}, wanted=False)
        if not kept:
            drop_unused_distinctions(store)
            drop_unused_cells(store)
        superseded -= count_rows(store, ("superseded_documents",))["superseded_documents"]
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
