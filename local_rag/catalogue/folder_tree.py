"""The documents of a library as a tree of folders, each with the number of documents in it and below."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from local_rag.catalogue.contents import Contents
from local_rag.display import Name, names_below
from local_rag.files import literal_path
from local_rag.retrieval.filters import outermost
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
