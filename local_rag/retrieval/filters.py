"""Find the chunks of the documents that pass filters: exact, and before any candidate is chosen."""

import re
from collections.abc import Callable, Collection, Sequence
from datetime import date
from pathlib import Path
from typing import Protocol

from local_rag.index.protocol import Allowed
from local_rag.reading.ignore import parse_pattern
from local_rag.records import Filters
from local_rag.store.database import DocumentFacts

_WILD = set("*?[")


class Catalogue(Protocol):
    """What filters are compared with: a store, or an index that holds the facts of its documents itself."""

    def version(self) -> object:
        """Return a value that changes when filters may let other documents pass."""

    def roots(self) -> Sequence[Path]:
        """Return the paths that `index` was given."""

    def facts(self) -> Sequence[DocumentFacts]:
        """Return the facts of all documents."""

    def chunks_of(self, documents: Collection[int]) -> Allowed:
        """Return all chunks of some documents."""


class Filtering:
    """Hold filters against the documents of a catalogue; what it told and what the last ones let pass is remembered."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._facts: tuple[object, Sequence[DocumentFacts]] | None = None
        self._last: tuple[Filters, object, Allowed] | None = None

    def allowed(self, filters: Filters) -> Allowed:
        """Return the chunks whose documents pass; None where nothing is asked for."""
        if not filters:
            return None
        version = self._catalogue.version()
        if self._last is None or self._last[:2] != (filters, version):
            passes = document_filter(filters, self._catalogue.roots())
            if self._facts is None or self._facts[0] != version:
                self._facts = version, self._catalogue.facts()
            passing = [facts.id for facts in self._facts[1] if passes(facts)]
            self._last = filters, version, self._catalogue.chunks_of(passing)
        return self._last[2]


def document_filter(filters: Filters, roots: Sequence[Path]) -> Callable[[DocumentFacts], bool]:
    """Return what says of a document whether it passes."""
    places = [_place_filter(place, [str(root) for root in roots]) for place in filters.within]
    suffixes = tuple(f".{kind.lower().removeprefix('.')}" for kind in filters.types)
    tags = {tag.casefold() for tag in filters.tags}
    since = filters.since.isoformat() if filters.since else None
    before = filters.before.isoformat() if filters.before else None

    def passes(facts: DocumentFacts) -> bool:
        if places and not any(fits(facts.path) for fits in places):
            return False
        if suffixes and not facts.path.lower().endswith(suffixes):
            return False
        if tags and not tags <= {tag.casefold() for tag in facts.tags}:
            return False
        if since is None and before is None:
            return True
        day = facts.date or date.fromtimestamp(facts.modified_ns / 1e9).isoformat()
        return (since is None or day >= since) and (before is None or day < before)

    return passes


def _place_filter(place: str, roots: Sequence[str]) -> Callable[[str], bool]:
    """Return what says of a path whether it lies at a place: a pattern below any root, or an absolute one.

    A place without wildcards may be a folder, which stands for all that is below it.
    """
    place = str(place)
    absolute = place.startswith("/")
    literal = not _WILD & set(place)
    # To a .gitignore a leading ! or # is no part of a name.
    pattern = parse_pattern(f"\\{place}" if place[:1] in {"!", "#"} else place.removeprefix("./"))
    folders = [f"{root.rstrip('/')}/" for root in roots]
    # Most paths are told apart by how they begin, many times as quickly as by their names.
    anchored = place.removeprefix("./") if pattern and pattern.has_slash else ""
    literal_part = re.split(r"[*?[\\]", anchored, maxsplit=1)[0]
    beginning = literal_part[: literal_part.rfind("/") + 1]
    beginnings = (beginning,) if absolute else tuple(folder + beginning for folder in folders)

    def names_in(path: str) -> list[list[str]]:
        if absolute:
            return [path[1:].split("/")]
        below = [path.removeprefix(folder).split("/") for folder in folders if path.startswith(folder)]
        return [*below, [path.rpartition("/")[2]]] if path in roots else below

    def fits(path: str) -> bool:
        if path == place:
            return True
        if pattern is None or not (path.startswith(beginnings) or path in roots):
            return False
        for names in names_in(path):
            if pattern.matches(names, is_folder=False):
                return True
            if literal and any(pattern.matches(names[:depth], is_folder=True) for depth in range(1, len(names))):
                return True
        return False

    return fits
