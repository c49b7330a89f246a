"""Look through the documents of a library: as a tree of folders, or in one folder with certain words, in an order."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from local_rag.catalogue.contents import Contents, FileStates, IndexedDocument
from local_rag.display import Name, names_below
from local_rag.files import literal_path
from local_rag.retrieval.filters import outermost
from local_rag.store.counts import document_states
from local_rag.store.database import Store, StoredDocument
from local_rag.text.words import normalize

_DEEPEST = 40  # folders within folders; what lies deeper stands in the last of them


@dataclass(frozen=True, slots=True)
class Leaf:
    """A document: its name, its path, and its `place`, which is the path from the name of its root on."""

    name: str
    path: str
    place: str
    id: int

    @property
    def pattern(self) -> str:
        """Return the pattern that matches this document alone."""
        return literal_path(self.path)


@dataclass(frozen=True, slots=True)
class Branch:
    """A folder with its folders and documents by name; `count` documents are in it and below.

    Of many documents the first ones are there, and `more` are not.
    """

    name: str
    path: str
    place: str
    count: int
    folders: "tuple[Branch, ...]"
    documents: tuple[Leaf, ...]
    more: int = 0

    @property
    def pattern(self) -> str:
        """Return the pattern that matches all that is in the folder."""
        return f"{literal_path(self.path)}/**"


@dataclass(slots=True)
class _Folder:
    folders: "dict[str, _Folder]" = field(default_factory=dict)
    documents: list[tuple[str, int]] = field(default_factory=list)
    count: int = 0


def folder_tree(contents: Contents, *, most: int = 200, containing: str = "") -> tuple[Branch | Leaf, ...]:
    """Return the tree below each outermost root, with at most so many documents of one folder.

    With `containing`, only documents are there whose place has all its words.
    """
    roots = outermost(contents.roots)
    fits, name, tops = fits_words(containing), names_below(roots), dict[str, _Folder]()
    for path, number in sorted(contents.documents.items()):
        if not fits(name(path)):
            continue
        root = next((str(one) for one in roots if Path(path).is_relative_to(one)), "")
        folder, below = tops.setdefault(root, _Folder()), path.removeprefix(root).strip("/").split("/", _DEEPEST)
        folder.count += 1
        for part in below[:-1]:
            folder = folder.folders.setdefault(part, _Folder())
            folder.count += 1
        folder.documents.append((path, number))
    return tuple(_tops(tops, name, most))


def fits_words(words: str) -> Callable[[str], bool]:
    """Return a function that tells whether a text has all these words, or parts of words, in it."""
    wanted = normalize("NFC", words).casefold().split()
    return lambda text: not wanted or all(word in normalize("NFC", text).casefold() for word in wanted)


def _tops(tops: Mapping[str, _Folder], name: Name, most: int) -> Iterator[Branch | Leaf]:
    for root, folder in sorted(tops.items()):
        if folder.documents and folder.documents[0][0] == root:  # a file that was indexed by itself
            yield _leaf(*folder.documents[0], name)
        else:
            yield _branch(root, folder, name, most)


def _branch(path: str, folder: _Folder, name: Name, most: int) -> Branch:
    below = tuple(
        _branch(f"{path.rstrip('/')}/{part}", one, name, most) for part, one in sorted(folder.folders.items())
    )
    leaves = tuple(_leaf(*one, name) for one in folder.documents[:most])
    place = name(path)
    return Branch(_last(place), path, place, folder.count, below, leaves, max(0, len(folder.documents) - most))


def _leaf(path: str, number: int, name: Name) -> Leaf:
    place = name(path)
    return Leaf(_last(place), path, place, number)


def _last(place: str) -> str:
    return place.rstrip("/").rpartition("/")[2] or place


def all_in(tree: Iterable[Branch | Leaf]) -> Iterator[Branch | Leaf]:
    """Yield all folders and documents of a tree."""
    for one in tree:
        yield one
        if isinstance(one, Branch):
            yield from all_in((*one.folders, *one.documents))


Order = Literal["path", "title", "changed", "size"]
ORDERS: Mapping[Order, Callable[[StoredDocument], Any]] = {
    "path": lambda one: one.path,
    "title": lambda one: (one.title.casefold(), one.path),
    "changed": lambda one: (one.stamp.modified_ns, one.path),
    "size": lambda one: (one.stamp.size, one.path),
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
            one.document.stamp.size,
            one.document.stamp.modified_ns // 10**9,
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
