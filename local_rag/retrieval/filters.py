"""Find the chunks of the documents that pass filters: exactly, and before any candidate is chosen."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from pathlib import Path

from local_rag.errors import LibraryError
from local_rag.index.protocol import Allowed, PassageStore
from local_rag.reading.ignore import parse_pattern
from local_rag.records import DocumentFacts, Filters

_WILD = set("*?[")
Outdated = Callable[[date], Collection[int]]  # the documents not valid on a day
_REMEMBERED = 64  # filters whose documents are kept


class Filtering:
    """Apply filters to the documents of one index; remember their facts, and the results of the last filters.

    Documents that `index` adds meanwhile are not in that index, so it does not matter that they are not looked at.
    """

    def __init__(self, passages: PassageStore, outdated: Outdated | None = None) -> None:
        self._passages, self._outdated = passages, outdated
        self._version: object = None
        self._documents = DocumentsByPath(())
        self._allowed = dict[Filters, Allowed]()  # in the order of their last use

    def allowed(self, filters: Filters) -> Allowed:
        """Return the chunks whose documents pass, None if there are no filters."""
        if not filters:
            return None
        if (selected := self._passages.select(filters)) is not None:
            return selected
        if self._version != (version := self._passages.version()):
            self._version, self._documents = version, DocumentsByPath(self._passages.facts())
            self._allowed.clear()
        if (allowed := self._allowed.pop(filters, None)) is None:
            passing = self._documents.passing(filters, self._passages.roots())
            outdated = outdated_of(filters, self._outdated)
            allowed = self._passages.chunks_of([facts.id for facts in passing if facts.id not in outdated])
        self._allowed[filters] = allowed
        if len(self._allowed) > _REMEMBERED:
            del self._allowed[next(iter(self._allowed))]
        return allowed


class DocumentsByPath:
    """Documents in the order of their paths: those below a folder are found without looking at the others."""

    def __init__(self, facts: Sequence[DocumentFacts]) -> None:
        self._facts = sorted(facts, key=lambda one: one.path)
        self._paths = [one.path for one in self._facts]

    def passing(self, filters: Filters, roots: Sequence[Path]) -> list[DocumentFacts]:
        """Return the documents that pass, as `document_filter` does it with each of them."""
        passes = document_filter(replace(filters, within=()), roots)
        return [one for one in (self._within(filters.within, roots) if filters.within else self._facts) if passes(one)]

    def _within(self, within: Sequence[str], roots: Sequence[Path]) -> list[DocumentFacts]:
        found, paths = set[int](), [str(root) for root in roots]
        for wanted in within:
            beginnings, fits = _path_filter(wanted, paths)
            near = [*map(self._below, beginnings), *(self._below(path, whole=True) for path in paths)]
            found.update(row for rows in near for row in rows if row not in found and fits(self._paths[row]))
        return [self._facts[row] for row in sorted(found)]

    def _below(self, beginning: str, *, whole: bool = False) -> range:
        """Return the rows whose paths begin so, or only those of this path."""
        first, length = bisect_left(self._paths, beginning), None if whole else len(beginning)
        return range(first, bisect_right(self._paths, beginning, first, key=lambda path: path[:length]))


def outdated_of(filters: Filters, outdated: Outdated | None) -> Collection[int]:
    """Return the documents that were not valid on the day of the filters; none without such a day."""
    if filters.as_of is None:
        return ()
    if outdated is None:
        raise LibraryError("Versions are known only where the library was indexed; ask there, or without --as-of.")
    return outdated(filters.as_of)


def document_filter(filters: Filters, roots: Sequence[Path]) -> Callable[[DocumentFacts], bool]:
    """Return a function that tells whether a document passes."""
    path_filters = [_path_filter(pattern, [str(root) for root in roots])[1] for pattern in filters.within]
    suffixes = tuple(f".{kind.lower().removeprefix('.')}" for kind in filters.types)
    tags = {tag.casefold() for tag in filters.tags}
    since, before = _beginning(filters.since), _beginning(filters.before)

    def passes(facts: DocumentFacts) -> bool:
        if path_filters and not any(fits(facts.path) for fits in path_filters):
            return False
        if suffixes and not facts.path.lower().endswith(suffixes):
            return False
        if tags and not tags <= {tag.casefold() for tag in facts.tags}:
            return False
        if facts.date:
            return (since is None or facts.date >= since[0]) and (before is None or facts.date < before[0])
        changed = facts.modified_ns
        return (since is None or changed >= since[1]) and (before is None or changed < before[1])

    return passes


def _beginning(day: date | None) -> tuple[str, int] | None:
    """Return a day as it is written, and when it begins here, in nanoseconds."""
    if day is None:
        return None
    return day.isoformat(), int(datetime.combine(day, time.min).timestamp()) * 10**9


def _path_filter(wanted: str, roots: Sequence[str]) -> tuple[Sequence[str], Callable[[str], bool]]:
    """Return the beginnings of matching paths, and a function that tells whether a path matches.

    A pattern is absolute, or relative to any root. Without wildcards it may name a folder, which matches everything
    below it. Every matching path has one of the beginnings or is a root.
    """
    absolute = wanted.startswith("/")
    literal = not _WILD & set(wanted)
    # In a .gitignore a leading ! or # is not part of a name.
    pattern = parse_pattern(f"\\{wanted}" if wanted[:1] in {"!", "#"} else wanted.removeprefix("./"))
    folders = [f"{root.rstrip('/')}/" for root in roots]
    # Comparing the beginning rejects most paths, many times faster than matching their names.
    anchored = wanted.removeprefix("./").rstrip(" ") if pattern and pattern.has_slash else ""
    beginning = re.split(r"[*?[\\]", anchored, maxsplit=1)[0]
    if beginning != anchored:
        beginning = beginning[: beginning.rfind("/") + 1]
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

    return beginnings, fits
