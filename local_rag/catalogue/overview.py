"""What a library holds at a glance: how many documents, in which folders, of which kinds and years, and the newest."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import PurePosixPath

from local_rag.display import Name
from local_rag.records import DocumentFacts

_NEWEST, _MOST_FOLDERS, _MOST_KINDS, _LONGEST_SUFFIX = 4, 8, 20, 6


@dataclass(frozen=True, slots=True)
class NewDocument:
    """One of the newest documents: its `day` is its own, or else that of its file."""

    id: int
    path: str
    day: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The number of documents and of files that could not be read, and the documents by folder, suffix and year.

    The largest folders come first, `others` is the number of documents outside them, and years begin with the latest.
    """

    documents: int
    unread: int
    folders: tuple[tuple[str, int], ...]
    others: int
    newest: tuple[NewDocument, ...]
    types: tuple[tuple[str, int], ...]
    years: tuple[tuple[int, int], ...]


def overview(facts: Sequence[DocumentFacts], ids: Mapping[str, int], name: Name, *, unread: int) -> Overview:
    """Return what documents are at a glance; `ids` are those that are told, by path, and `name` names a place."""
    known = [one for one in facts if one.path in ids]
    latest = sorted(known, key=lambda one: (_day_of(one), one.path), reverse=True)[:_NEWEST]
    folders = _folders([name(one.path) for one in known])
    suffixes = Counter(PurePosixPath(one.path).suffix.lower().removeprefix(".") for one in known)
    years = Counter(int(_day_of(one)[:4]) for one in known)
    return Overview(
        documents=len(known),
        unread=unread,
        folders=tuple(folders[:_MOST_FOLDERS]),
        others=len(known) - sum(count for _, count in folders[:_MOST_FOLDERS]),
        newest=tuple(NewDocument(ids[one.path], name(one.path), _day_of(one)) for one in latest),
        types=tuple(
            (suffix, count)
            for suffix, count in suffixes.most_common(_MOST_KINDS)
            if suffix.isalnum() and len(suffix) <= _LONGEST_SUFFIX
        ),
        years=tuple(sorted(years.items(), reverse=True)[:_MOST_KINDS]),
    )


def _day_of(facts: DocumentFacts) -> str:
    try:
        return date.fromisoformat(facts.date[:10]).isoformat() if facts.date else _day_of_file(facts)
    except ValueError:
        return _day_of_file(facts)


def _day_of_file(facts: DocumentFacts) -> str:
    try:
        return date.fromtimestamp(facts.modified_ns // 10**9).isoformat()
    except (OverflowError, OSError, ValueError):
        return date.min.isoformat()


def _folders(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return the folders in which documents part, with their numbers, the largest first."""
    parts = [name.strip("/").split("/")[:-1] for name in names]
    depth = 0
    while parts and all(len(one) > depth for one in parts) and len({one[depth] for one in parts}) == 1:
        depth += 1
    counts = Counter("/".join(one[: depth + 1]) for one in parts if len(one) > depth)
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))
