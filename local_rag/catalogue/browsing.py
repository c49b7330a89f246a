"""Look through the documents of a library: in a folder, with certain words, in an order, a page at a time."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from local_rag.catalogue.contents import FileStates, IndexedDocument
from local_rag.catalogue.folder_tree import fits_words
from local_rag.display import names_below
from local_rag.retrieval.filters import outermost
from local_rag.store.counts import document_states
from local_rag.store.database import Store, StoredDocument

Order = Literal["path", "title", "changed", "size"]
ORDERS: Mapping[Order, Callable[[StoredDocument], Any]] = {
    "path": lambda one: one.path,
    "title": lambda one: (one.title.casefold(), one.path),
    "changed": lambda one: (one.modified_ns, one.path),
    "size": lambda one: (one.size, one.path),
}


@dataclass(frozen=True, slots=True)
class Look:
    """Which documents to look at: those below a `folder` that have all words, perhaps only those read in `part`."""

    folder: str = ""
    words: str = ""
    part: bool = False
    order: Order = "path"
    down: bool = False


@dataclass(frozen=True, slots=True)
class FolderCount:
    """A folder with the number of documents in it and below that are looked at."""

    path: str
    name: str
    documents: int


@dataclass(frozen=True, slots=True)
class Listing:
    """Some of the `found` documents, the folders to go on to, and those above, from the root on."""

    documents: tuple[IndexedDocument, ...]
    found: int
    folders: tuple[FolderCount, ...]
    above: tuple[FolderCount, ...]
    in_part: int


def look(store: Store, wanted: Look) -> list[StoredDocument]:
    """Return the documents that are looked at, in their order."""
    name, partly = names_below(outermost(store.roots())), _in_part(store)
    fits, below = fits_words(wanted.words), f"{wanted.folder.rstrip('/')}/"
    found = [
        one
        for one in store.documents()
        if (not wanted.folder or one.path.startswith(below))
        and (not wanted.part or one.path in partly)
        and fits(f"{name(one.path)} {one.title}")
    ]
    return sorted(found, key=ORDERS[wanted.order], reverse=wanted.down)


def browse(store: Store, files: FileStates, wanted: Look, *, start: int, count: int) -> Listing:
    """Return `count` of the documents that are looked at, from the one at position `start` on."""
    found, roots = look(store, wanted), outermost(store.roots())
    shown = document_states(store, [one.id for one in found[start : start + count]])
    states = files.of([one.document for one in shown])
    documents = tuple(
        IndexedDocument(
            one.document.id,
            one.document.path,
            one.document.title,
            states[one.document.id],
            one.chunks,
            one.vectors,
            one.notes,
            one.document.size,
            one.document.modified_ns // 10**9,
        )
        for one in shown
    )
    name, folder = names_below(roots), wanted.folder.rstrip("/")
    if folder:
        folders = Counter(_next_below(one.path, folder) for one in found)
    else:
        folders = Counter(_root_of(one.path, roots) for one in found)
        if len(folders) == 1 and (only := next(iter(folders))):  # there is nothing to choose
            folders = Counter(_next_below(one.path, only) for one in found)
    del folders[""]
    return Listing(
        documents,
        len(found),
        tuple(FolderCount(path, Path(path).name or path, number) for path, number in sorted(folders.items())),
        _above(folder, roots, name) if folder else (),
        len(_in_part(store)),
    )


def _in_part(store: Store) -> set[str]:
    return {str(note.path) for note in store.notes()}


def _next_below(path: str, folder: str) -> str:
    """Return the folder right below a folder in which a path lies, empty if it lies in none."""
    first, is_below, _ = path.removeprefix(f"{folder}/").partition("/")
    return f"{folder}/{first}" if is_below else ""


def _root_of(path: str, roots: list[Path]) -> str:
    """Return the folder that was indexed in which a path lies, empty if the file itself was."""
    return next((str(root) for root in roots if path.startswith(f"{root}/")), "")


def _above(folder: str, roots: list[Path], name: Callable[[str], str]) -> tuple[FolderCount, ...]:
    root = _root_of(f"{folder}/", roots)
    parts = folder.removeprefix(root).strip("/").split("/") if root and folder != root else []
    paths = [f"{root}/{'/'.join(parts[: depth + 1])}" for depth in range(len(parts))]
    return tuple(FolderCount(one, Path(one).name, 0) for one in ([root, *paths] if root else [folder]))
