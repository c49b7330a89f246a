"""The indexed folders and files: how many documents each holds, whether it can be reached, where it has moved."""

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from local_rag.errors import LibraryError
from local_rag.files import is_utf8
from local_rag.indexing.roots import Roots
from local_rag.store.database import Store


@dataclass(frozen=True, slots=True)
class Root:
    """A folder or file that was given to `index`; a document counts to the innermost root that holds it."""

    path: Path
    documents: int
    reachable: bool


def list_roots(store: Store) -> list[Root]:
    """Return all roots, by path."""
    known, documents = store.roots(), {document.path: document for document in store.documents()}
    roots = Roots(store, known, documents)
    counts = Counter(roots.root_of(Path(path)) for path in documents)
    return [Root(path, counts[path], path in roots.present) for path in known]


def move_root(store: Store, former: Path | str, present: Path | str) -> int:
    """Record that a root, or a folder that holds roots, lies elsewhere now; return how many documents went with it."""
    # Without links followed, for what is gone: the path that the library knows is one that had none.
    old = Path(os.path.abspath(Path(former).expanduser()))  # noqa: PTH100
    new = Path(present).expanduser().resolve()
    if not any(root.is_relative_to(old) for root in store.roots()):
        raise LibraryError(
            f"{old} is no indexed folder, nor is any below it; `local-rag roots` lists them, and what moved within one "
            "is found by `local-rag index`."
        )
    if not new.exists():
        raise LibraryError(f"{new} does not exist; name the place where {old} lies now.")
    if not is_utf8(str(new)):
        raise LibraryError(f"The name of {new} is not UTF-8; rename it, since a library could not store it.")
    if new.is_relative_to(old) or old.is_relative_to(new):
        raise LibraryError(f"{new} and {old} lie within each other; move it elsewhere, or index it anew.")
    if store.count_below(new):
        raise LibraryError(
            f"Documents of {new} are in the library already; take those out that are out of date: "
            "`local-rag remove` one of the two."
        )
    documents = store.count_below(old)
    store.move_paths(old, new)
    return documents
