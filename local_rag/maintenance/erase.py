"""Leave nothing of erased documents in any file, and forget what quotes documents that the library no longer holds.

What is to be erased is recorded in the store before anything is deleted, so a run that was killed, or that failed, is
finished by the next `remove`, `index` or `clean`.
"""

import itertools
import re
import shutil
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from local_rag.errors import LibraryError
from local_rag.index.protocol import Indexes, content_key
from local_rag.indexing.distinction import Distinction
from local_rag.maintenance.republish import publish_without
from local_rag.store.context_rows import drop_unused_distinctions, put_distinction, stored_distinction
from local_rag.store.counts import is_unfinished
from local_rag.store.database import Store
from local_rag.store.erasing import Erasing, earlier_documents, end_erasing, erasing, forget_names
from local_rag.store.history import History, IsGone, kept_history
from local_rag.store.people_file import forget_limits
from local_rag.store.recorded_questions import forget_questions, questioned_documents
from local_rag.store.upkeep import compact, drop, orphaned_contexts, orphaned_vectors, prune_ocr_pages, purge_superseded

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
    found = earlier_documents(store, bases) + questioned_documents(store.folder)
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
    _forget_names(store)
    prune_ocr_pages(store.folder, store.content_hashes())
    names = _names_of(store, work)
    with kept_history(store.folder) as history:
        if history:
            history.forget_documents(is_gone, erased=names)
    forget_questions(store.folder, is_gone)
    forget_limits(store.folder, names)
    indexes.over(store).expunge()
    indexes.over(store).prune()
    delete_files(leftovers(store.folder))
    forget_names(store)
    compact(store)
    end_erasing(store)


def _names_of(store: Store, work: Erasing) -> Callable[[str], bool]:
    """Return a function that says whether a pattern names what is erased: by its path, or by a name of its own.

    A name that other documents have in their paths tells nothing.
    """
    others = {name for document in store.documents() for name in document.path.split("/")}
    names = {Path(path).name for path in work.paths} - others
    return lambda pattern: work.names(pattern.rstrip("/")) or not names.isdisjoint(pattern.split("/"))


def _forget_names(store: Store) -> None:
    """Forget the names of other documents, which an earlier version kept with what sets a document apart."""
    with store.transaction():
        for document in store.documents():
            kept = stored_distinction(store, document.id)
            if kept and kept != (now := Distinction.from_json(kept).as_json()):
                put_distinction(store, document.id, now)


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
