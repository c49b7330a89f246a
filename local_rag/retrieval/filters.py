"""Find the chunks of the documents that pass filters: exactly, and before any candidate is chosen."""

import re
from collections.abc import Callable, Collection, Sequence
from datetime import date
from pathlib import Path

from local_rag.errors import LibraryError
from local_rag.index.protocol import Allowed, PassageStore
from local_rag.reading.ignore import parse_pattern
from local_rag.records import EVERYTHING, DocumentFacts, Filters

_WILD = set("*?[")
Outdated = Callable[[date, Filters], Collection[int]]  # the documents not valid on a day, for a person's limits
_REMEMBERED = 16  # filters whose documents are kept


class Filtering:
    """Apply filters to the documents of one index; remember their facts, and the results of the last filters.

    Documents that `index` adds meanwhile are not in that index, so it does not matter that they are not looked at.
    """

    def __init__(self, passages: PassageStore, outdated: Outdated | None = None) -> None:
        self._passages, self._outdated = passages, outdated
        self._version: object = None
        self._facts: Sequence[DocumentFacts] = ()
        self._allowed = dict[Filters, Allowed]()  # in the order of their last use

    def allowed(self, filters: Filters) -> Allowed:
        """Return the chunks whose documents pass, None if there are no filters."""
        if not filters:
            return None
        if (selected := self._passages.select(filters)) is not None:
            return selected
        if self._version != (version := self._passages.version()):
            self._version, self._facts = version, self._passages.facts()
            self._allowed.clear()
        if (allowed := self._allowed.pop(filters, None)) is None:
            passes = document_filter(filters, self._passages.roots())
            outdated = outdated_of(filters, self._outdated)
            passing = [facts.id for facts in self._facts if passes(facts) and facts.id not in outdated]
            allowed = self._passages.chunks_of(passing)
        self._allowed[filters] = allowed
        if len(self._allowed) > _REMEMBERED:
            del self._allowed[next(iter(self._allowed))]
        return allowed


def outdated_of(filters: Filters, outdated: Outdated | None) -> Collection[int]:
    """Return the documents that were not valid on the day of the filters; none without such a day."""
    if filters.as_of is None:
        return ()
    if outdated is None:
        raise LibraryError("Versions are known only where the library was indexed; ask there, or without --as-of.")
    return outdated(filters.as_of, filters.limits or EVERYTHING)


def document_filter(filters: Filters, roots: Sequence[Path]) -> Callable[[DocumentFacts], bool]:
    """Return a function that tells whether a document passes."""
    path_filters = [_path_filter(pattern, [str(root) for root in roots]) for pattern in filters.within]
    suffixes = tuple(f".{kind.lower().removeprefix('.')}" for kind in filters.types)
    tags = {tag.casefold() for tag in filters.tags}
    since = filters.since.isoformat() if filters.since else None
    before = filters.before.isoformat() if filters.before else None
    within_limits = document_filter(filters.limits, roots) if filters.limits else None

    def passes(facts: DocumentFacts) -> bool:
        if within_limits and not within_limits(facts):
            return False
        if path_filters and not any(fits(facts.path) for fits in path_filters):
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


def _path_filter(wanted: str, roots: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tells whether a path matches: an absolute pattern, or one relative to any root.

    Without wildcards it may name a folder, which matches everything below it.
    """
    absolute = wanted.startswith("/")
    literal = not _WILD & set(wanted)
    # In a .gitignore a leading ! or # is not part of a name.
    pattern = parse_pattern(f"\\{wanted}" if wanted[:1] in {"!", "#"} else wanted.removeprefix("./"))
    folders = [f"{root.rstrip('/')}/" for root in roots]
    # Comparing the beginning rejects most paths, many times faster than matching their names.
    anchored = wanted.removeprefix("./") if pattern and pattern.has_slash else ""
    literal_part = re.split(r"[*?[\\]", anchored, maxsplit=1)[0]
    beginning = literal_part[: literal_part.rfind("/") + 1]
    beginnings = (beginning,) if absolute else tuple(folder + beginning for folder in folders)

    def names_in(path: str) -> list[list[str]]:
        if absolute:
            return [path[1:].split("/")]
        below = [path.removeprefix(folder).split("/") for folder in folders if path.startswith(folder)]
        return [*below, [path.rpartition("/")[2]]] if path in roots else below

    def fits(path: str) -> bool:
        if path == wanted:
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
