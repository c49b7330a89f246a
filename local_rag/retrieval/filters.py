"""Find the chunks of the documents that pass filters: exactly, and before any candidate is chosen."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from functools import lru_cache
from pathlib import Path

from local_rag.asking import Filters
from local_rag.errors import LibraryError
from local_rag.files import literal_path
from local_rag.index.protocol import Allowed, PassageStore
from local_rag.keys import key_of
from local_rag.passage_records import DocumentFacts, path_of
from local_rag.reading.ignore import parse_pattern
from local_rag.serialization import to_line
from local_rag.store.database import Store
from local_rag.store.seen import Seen, compared_limits, find_seen, seen_stamp, show_only
from local_rag.text.words import normalize

_WILD = set("*?[\\")
Outdated = Callable[[date], Collection[int]]  # the documents not valid on a day
_REMEMBERED = 64  # filters whose documents are kept, and limits for which it is kept what they show
_Fits = Callable[[str], bool]


class Filtering:
    """Apply filters to the documents of one index; remember their facts, and the results of the last filters.

    Documents that `index` adds meanwhile are not in that index, so it does not matter that they are not looked at.
    """

    def __init__(self, passages: PassageStore, outdated: Outdated | None = None) -> None:
        self._passages, self._outdated = passages, outdated
        self._version: object = None
        self._documents = DocumentsByPath(())
        self._chunks_of = lru_cache(_REMEMBERED)(self._find_chunks)

    def allowed(self, filters: Filters) -> Allowed:
        """Return the chunks whose documents pass, None if there are no filters."""
        if not filters:
            return None
        if (selected := self._passages.select(filters)) is not None:
            return selected
        if self._version != (version := self._passages.version()):
            self._version, self._documents = version, DocumentsByPath(self._passages.facts())
            self._chunks_of.cache_clear()
        return self._chunks_of(filters)

    def _find_chunks(self, filters: Filters) -> Allowed:
        passing = self._documents.passing(filters, self._passages.roots())
        outdated = outdated_of(filters, self._outdated)
        return self._passages.chunks_of([facts.id for facts in passing if facts.id not in outdated])


class DocumentsByPath:
    """Documents in the order of their paths: those below a folder are found without looking at the others."""

    def __init__(self, facts: Sequence[DocumentFacts]) -> None:
        named = sorted(((_composed(one.path), one) for one in facts), key=lambda one: one[0])
        self._paths, self._facts = [path for path, _ in named], [one for _, one in named]

    def passing(self, filters: Filters, roots: Sequence[Path]) -> list[DocumentFacts]:
        """Return the documents that pass, as `document_filter` does it with each of them."""
        passes = document_filter(replace(filters, within=()), roots)
        return [one for one in (self._within(filters.within, roots) if filters.within else self._facts) if passes(one)]

    def _within(self, within: Sequence[str], roots: Sequence[Path]) -> list[DocumentFacts]:
        found, paths = set[int](), [_composed(str(root)) for root in roots]
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


def document_filter(
    filters: Filters, roots: Sequence[Path], *, are_limits: bool = False
) -> Callable[[DocumentFacts], bool]:
    """Return a function that tells whether a document passes filters, or the limits of a person."""
    paths = [_composed(str(root)) for root in roots]
    path_filters = [_path_filter(pattern, paths, are_limits=are_limits)[1] for pattern in filters.within]
    suffixes = tuple(f".{kind.lower().removeprefix('.')}" for kind in filters.types)
    tags = {tag.casefold() for tag in filters.tags}
    since, before = _beginning(filters.since), _beginning(filters.before)

    def passes(facts: DocumentFacts) -> bool:
        if path_filters:
            path = _composed(facts.path)
            if not any(fits(path) for fits in path_filters):
                return False
        if suffixes and not facts.path.lower().endswith(suffixes):
            return False
        if tags and not tags <= set(with_outer(facts.tags)):
            return False
        if facts.date:
            return (since is None or facts.date >= since[0]) and (before is None or facts.date < before[0])
        changed = facts.modified_ns
        return (since is None or changed >= since[1]) and (before is None or changed < before[1])

    return passes


def with_outer(tags: Iterable[str]) -> Iterator[str]:
    """Yield tags without case, and those that they are nested in: harbour of harbour/crane."""
    for tag in map(str.casefold, tags):
        yield tag
        if "=" not in tag:
            yield from (tag[: slash.start()] for slash in re.finditer("/", tag))


def _beginning(day: date | None) -> tuple[str, int] | None:
    """Return a day as it is written, and when it begins here, in nanoseconds."""
    if day is None:
        return None
    try:
        begins = int(datetime.combine(day, time.min).timestamp())
    except (OverflowError, ValueError, OSError):  # the time zone leads out of the calendar
        begins = (day - date(1970, 1, 1)).days * 86_400
    return day.isoformat(), begins * 10**9


def _composed(path: str) -> str:
    """Return a path with its letters composed; some systems store them decomposed."""
    return path if path.isascii() else normalize("NFC", path)


def _path_filter(wanted: str, roots: Sequence[str], *, are_limits: bool = False) -> tuple[Sequence[str], _Fits]:
    """Return the beginnings of matching paths, and a function that tells whether a path matches.

    What is wanted is a pattern, or a path as it is or as results show it: from the name of a root on, with a line or a
    page. What a person may see is never widened so. Every matching path has one of the beginnings or is a root.
    """
    wanted = _composed(wanted)
    shown = [wanted] if are_limits else list(dict.fromkeys((wanted, path_of(wanted))))
    patterns = [(one, _is_literal(one)) for one in shown]
    patterns += [(literal_path(one), True) for one in shown if _WILD & set(one)]
    if not are_limits:
        below = [(root.rpartition("/")[0], one) for root in roots for one in shown if _begins_with_name(one, root)]
        patterns += [(f"{literal_path(parent)}/{one}", _is_literal(one)) for parent, one in below]
        patterns += [(f"{literal_path(parent)}/{literal_path(one)}", True) for parent, one in below if _WILD & set(one)]
    every = [_one_path_filter(pattern, roots, literal=literal) for pattern, literal in patterns]
    beginnings = [beginning for some, _ in every for beginning in some]

    def fits(path: str) -> bool:
        return path in shown or any(one(path) for _, one in every)

    return beginnings, fits


def _begins_with_name(wanted: str, root: str) -> bool:
    name = root.rpartition("/")[2]
    return bool(name) and (wanted == name or wanted.startswith(f"{name}/"))


def _is_literal(pattern: str) -> bool:
    return not set("*?[") & set(pattern)


def _one_path_filter(wanted: str, roots: Sequence[str], *, literal: bool) -> tuple[Sequence[str], _Fits]:
    """Return what `_path_filter` does for one pattern, absolute or relative to any root.

    A `literal` one may name a folder, which matches everything below it.
    """
    absolute = wanted.startswith("/")
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
        if pattern is None or not (path.startswith(beginnings) or path in roots):
            return False
        for names in names_in(path):
            if pattern.matches(names, is_folder=False):
                return True
            if literal and any(pattern.matches(names[:depth], is_folder=True) for depth in range(1, len(names))):
                return True
        return False

    return beginnings, fits


class Sight:
    """Find out what limits let somebody see of one library, and show no more of it."""

    def __init__(self) -> None:
        self._known = dict[Filters, tuple[object, Seen]]()

    def show_only(self, store: Store, limits: Filters) -> Seen | None:
        """Let a store hold only what these limits let somebody see, and return what that is; None without limits."""
        if not limits:
            return None
        seen = self._of(store, limits)
        show_only(store, seen)
        return seen

    def _of(self, store: Store, limits: Filters) -> Seen:
        stamp = seen_stamp(store)
        known = self._known.get(limits)
        if known is None or known[0] != stamp:
            passes = document_filter(limits, outermost(store.roots()), are_limits=True)
            contexts = limits_key(limits) in compared_limits(store)
            known = stamp, find_seen(store, passes, contexts=contexts)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[limits] = known
        return known[1]


def limits_key(limits: Filters) -> str:
    """Return a key of limits, which tells nothing of the paths that they name."""
    return key_of(to_line(limits).decode())


def outermost(roots: Iterable[Path]) -> list[Path]:
    """Return the roots that lie below no other: below these alone count the patterns of limits.

    So a folder that is indexed once more by itself shows nothing else to anybody.
    """
    known = set(roots)
    return [root for root in sorted(known) if known.isdisjoint(root.parents)]
