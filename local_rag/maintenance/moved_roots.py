"""List the indexed folders and files, and record that one has moved."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from local_rag.errors import LibraryError
from local_rag.files import is_utf8
from local_rag.index.protocol import Indexes
from local_rag.indexing.roots import Roots, require_no_library
from local_rag.maintenance.removal import publish_paths
from local_rag.store.cell_rows import move_cells, move_tables
from local_rag.store.database import Store
from local_rag.store.erasing import note_moved
from local_rag.store.history import kept_history
from local_rag.store.people_file import patterns_of_limits


@dataclass(frozen=True, slots=True)
class Root:
    """A folder or file that was given to `index`; a document belongs to the innermost root that contains it."""

    path: Path
    documents: int
    reachable: bool


def list_roots(store: Store) -> list[Root]:
    """Return all roots, by path."""
    known, documents = store.roots(), {document.path: document for document in store.documents()}
    roots = Roots(store, known, documents)
    counts = Counter(roots.root_of(path) for path in documents)
    return [Root(path, counts[str(path)], path in roots.present) for path in known]


def move_root(store: Store, indexes: Indexes, former: Path | str, present: Path | str) -> int:
    """Record that a root, or a folder that contains roots, has moved; return the number of documents in it.

    An index that holds the paths itself is published again; if that fails, nothing has moved.
    """
    # Links are not followed, because the folder is gone; the library stores paths without links.
    old = Path(os.path.abspath(Path(former).expanduser()))  # noqa: PTH100
    new = Path(present).expanduser().resolve()
    if not any(root.is_relative_to(old) for root in store.roots()):
        raise LibraryError(
            f"{old} is not an indexed folder and contains none; `local-rag roots` lists them (`local-rag index` finds "
            "what has moved within one)."
        )
    require_no_library(store, new)
    if not new.exists():
        raise LibraryError(f"{new} does not exist; name the folder to which {old} has moved.")
    if not is_utf8(str(new)):
        raise LibraryError(f"The name of {new} is not UTF-8, which a library cannot store; rename it.")
    if new.is_relative_to(old) or old.is_relative_to(new):
        raise LibraryError(f"One of {new} and {old} contains the other; move the folder elsewhere, or index it again.")
    if store.count_below(new):
        raise LibraryError(
            f"The library already holds documents of {new}; remove the outdated ones with `local-rag remove {old}` or "
            f"`local-rag remove {new}`."
        )
    documents = [one.path for one in store.documents() if Path(one.path).is_relative_to(old)]
    with store.transaction():
        store.move_paths(old, new)
        note_moved(store, {str(old): str(new)}, patterns_of_limits(store.folder))
        move_tables(store, _moved(documents, old, new))
        move_cells(store, _moved(documents, old, new))
        publish_paths(store, indexes)
    with kept_history(store.folder) as history:
        if history:
            history.move_documents(_moved([*documents, *(path for _, path in history.documents())], old, new))
    return len(documents)


def _moved(paths: Iterable[str], old: Path, new: Path) -> dict[str, str]:
    """Return where the files below a folder that has moved are now."""
    below = (path for path in paths if Path(path).is_relative_to(old))
    return {path: str(new / Path(path).relative_to(old)) for path in below}
