"""Find the versions of a document: a family of documents with the same name or title and nearly the same text.

Names are the same if they differ only in a year, a date, a version number or a word such as "final". Forms, contracts
and manuals of one kind have nearly the same text, but each its own name: they are no versions of each other. Families
are derived from keys that indexing stores, so a setting can split a wrong one at once.

A sketch of a text is made of the smallest hashes of all pairs of neighbouring words: the share that two sketches have
in common estimates the share that the texts have in common (Broder, 1997).
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from itertools import pairwise

import numpy as np

from local_rag.asking import Filters
from local_rag.passage_records import DocumentFacts, Passage, found_passage
from local_rag.retrieval.filters import document_filter, outdated_of
from local_rag.store.database import Store
from local_rag.store.related_documents import StoredVersion, sharing_versions, version_at, versions_named
from local_rag.text.dates import dates_in, without_dates
from local_rag.text.tokens import keyword_tokens
from local_rag.text.words import normalize

_SKETCH = 256  # hashes
_MOST_WORDS = 200_000  # of a text
_WORD = re.compile(r"[^\W_]+")
_LETTERS_AND_DIGITS = re.compile(r"[^\W\d_]+|\d+")
OLDER_WORDS = frozenset({"old", "previous", "archive", "archived", "superseded", "obsolete", "backup", "bak", "draft"})
_VERSION_WORDS = OLDER_WORDS | frozenset(
    """v ver version versions rev revision revised r final copy new latest updated update current issue edition release
    valid effective as of from jan january feb february mar march apr april may jun june jul july aug august sep sept
    september oct october nov november dec december""".split()  # noqa: SIM905  so many quoted words are hard to read
)
_NUMBERED = re.compile(
    r"(?<![^\W_])(?:v|ver|version|rev|revision|r|draft|copy|issue|edition|release)[\s._-]*(\d+(?:[._]\d+)*)(?![^\W_])"
    r"|\((\d{1,3})\)",
    re.IGNORECASE,
)


def key_words(name: str) -> str:
    """Return the words of a name in lower case, without dates, numbers of versions and words such as "final"."""
    text = _NUMBERED.sub(" ", without_dates(normalize("NFKC", name)))
    words = (word for part in _WORD.findall(text.lower()) for word in _LETTERS_AND_DIGITS.findall(part))
    return " ".join(word for word in words if word not in _VERSION_WORDS)


def date_of_name(name: str) -> str:
    """Return the last date in a name as YYYY, YYYY-MM or YYYY-MM-DD; empty if there is none."""
    return ([*dates_in(name)] or [""])[-1]


def version_of_name(name: str) -> tuple[bool, tuple[int, ...]]:
    """Return what orders the versions of a name: whether no word says that it is an old one, and its number."""
    number = max((found[1] or found[2] for found in _NUMBERED.finditer(name)), key=len, default="")
    is_current = not OLDER_WORDS.intersection(_WORD.findall(name.lower()))
    return is_current, tuple(int(part) for part in re.findall(r"\d{1,9}", number))


def version_numbers(text: str) -> set[tuple[int, ...]]:
    """Return the numbers of versions that a text names; v1.0 is v1."""
    return {_without_zeros(re.findall(r"\d{1,9}", named[1])) for named in _NUMBERED.finditer(text) if named[1]}


def _without_zeros(parts: Sequence[str]) -> tuple[int, ...]:
    numbers = [*map(int, parts)]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def sketch(text: str) -> bytes:
    """Return the smallest different hashes of the pairs of neighbouring words of a text, ascending, as uint32."""
    words = [found[0].lower() for found, _ in zip(_WORD.finditer(text), range(_MOST_WORDS), strict=False)]
    hashes = {zlib.crc32(f"{one} {other}".encode("utf-8", "surrogatepass")) for one, other in pairwise(words)}
    smallest: bytes = np.sort(np.array([*hashes], dtype="<u4"))[:_SKETCH].tobytes()
    return smallest


def likeness(one: bytes, other: bytes) -> float:
    """Return the share of pairs of words that two texts have in common, estimated from their sketches."""
    first, second = (np.frombuffer(sketch, dtype="<u4") for sketch in (one, other))
    smallest = np.union1d(first, second)[:_SKETCH]
    shared = np.intersect1d(np.intersect1d(first, second), smallest)
    return len(shared) / max(1, len(smallest))


_MOST_NAMED = 500  # documents with the same words in their names that are compared with one
_ALIKE, _ALIKE_BY_NAME, _ALIKE_BY_TITLE = 0.3, 0.4, 0.7  # the share of pairs of words that versions have in common
# Of "policy 2023" and "policy 2025" with one title. Minutes, which are no versions, have a day in their names.
_REVISED = 0.2
_REMEMBERED = 4096  # families of documents that are kept in memory
_PART, _REMEMBERED_PARTS = 200, 8  # passages of a long version that are read at a time, and such parts kept in memory
_CORRESPONDING = 0.5  # the share of words that corresponding passages have in common
_HELD = 0.75  # or the share of a sentence's words that a passage has, where all around it was written anew
_SAME_HEADING = 0.25
HEADING = re.compile(r"^#{1,6} (?P<number>(?:\d{1,2}[.) ]+)*)(?P<words>.*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Version:
    """A document of a family; `stated` is false if only its file says its date, which is written YYYY-MM-DD."""

    id: int
    path: str
    title: str
    date: str
    stated: bool = True


class Versions:
    """The families of a library's live documents; those that match one of the `apart` patterns have no versions."""

    def __init__(self, store: Store, apart: Sequence[str] = ()) -> None:
        self._store, self._roots = store, store.roots()
        self._matches = document_filter(Filters(within=tuple(apart)), self._roots) if apart else None
        self._folders = [f"{root}/" for root in self._roots]
        self.family = lru_cache(_REMEMBERED)(self._family)
        self._read = lru_cache(_REMEMBERED_PARTS)(self._passages)

    def _is_apart(self, one: StoredVersion) -> bool:
        """Return whether a document has no versions by the user's will."""
        return self._matches is not None and self._matches(DocumentFacts(one.id, one.path, 0, "", ()))

    def _family(self, path: str) -> tuple[Version, ...]:
        """Return the versions of the document at a path, newest first and itself included; none if it has no other."""
        first = version_at(self._store, path)
        if first is None or self._is_apart(first):
            return ()
        family, waiting = {first.id: first}, [first]
        while waiting:
            one = waiting.pop()
            for other in versions_named(self._store, one.name_key, one.title_key, most=_MOST_NAMED):
                if other.id not in family and not self._is_apart(other) and self._are_versions(one, other):
                    family[other.id] = other
                    waiting.append(other)
        return tuple(_ordered(family.values())) if len(family) > 1 else ()

    def within(self, path: str, filters: Filters) -> list[Version]:
        """Return the versions of the document at a path that pass filters, newest first."""
        family = self.family(path)
        if not filters or not family:
            return [*family]
        passes, ids = document_filter(filters, self._roots), {one.id for one in family}
        passing = {facts.id for facts in self._store.facts(ids) if passes(facts)}
        return [one for one in family if one.id in passing]

    def passing(self, filters: Filters) -> set[int]:
        """Return the documents that pass filters, of several versions those that were valid on their day."""
        passes, outdated = document_filter(filters, self._roots), outdated_of(filters, self.outdated)
        return {facts.id for facts in self._store.facts() if passes(facts) and facts.id not in outdated}

    def text(self, version: Version) -> str:
        """Return the text of a version."""
        return self._store.document_text(version.id)

    def passages(self, version: Version, passage: Passage, own: Version) -> Sequence[Passage]:
        """Return the passages of a version that stand about where a passage stands in its `own` version."""
        before = self._chunks(own)
        near = before.index(passage.chunk_id) / len(before) if passage.chunk_id in before else 0.0
        ids = self._chunks(version)
        part = int(near * len(ids) / _PART)
        return self._read(tuple(ids[max(0, part - 1) * _PART : (part + 2) * _PART]))

    def _chunks(self, version: Version) -> list[int]:
        return [one for one, position in self._store.positions(version.id) if position >= 0]

    def _passages(self, ids: Sequence[int]) -> list[Passage]:
        stored = self._store.chunks_by_id(ids)
        return [found_passage(stored[one], 0.0, (), "none") for one in ids if one in stored]

    def newest(self, path: str) -> str:
        """Return the path of the newest version of a document; empty if it is the newest or has no versions."""
        family = self.family(path)
        return family[0].path if family and family[0].path != path else ""

    def marked(self, passage: Passage) -> Passage:
        """Name the newest version in a passage of an older one."""
        newest = self.newest(passage.path)
        return replace(passage, newest=newest) if newest else passage

    def families(self) -> Iterator[tuple[Version, ...]]:
        """Yield each family, newest version first, in the order of the first path."""
        seen = set[int]()
        for one in list(sharing_versions(self._store)):
            if one.id not in seen and (family := self.family(one.path)):
                seen.update(version.id for version in family)
                yield family

    def outdated(self, day: date) -> set[int]:
        """Return the documents that were not valid on a day: not written yet, or replaced by a newer version.

        A document without versions is left out only if it states a later date itself.
        """
        last, found, in_families = day.isoformat(), set[int](), set[int]()
        for family in self.families():
            in_families.update(version.id for version in family)
            valid = valid_on(day, family)
            found.update(version.id for version in family if version != valid)
        later = (facts.id for facts in self._store.facts() if facts.date > last and facts.id not in in_families)
        return found | set(later)

    def _are_versions(self, one: StoredVersion, other: StoredVersion) -> bool:
        """Return whether two documents with the same words in name or title are versions of each other."""
        folders = self._folder_words(one.path, other.path)
        same_name = bool(one.name_key) and one.name_key == other.name_key
        same_title = bool(one.title_key) and one.title_key == other.title_key
        names = (one.name_key.split(), other.name_key.split())
        titles = (one.title_key.split(), other.title_key.split())
        pairs = (tuple(map(set, words)) for words in (folders, names, titles))
        if not all(first <= second or second <= first for first, second in pairs):
            return False  # each of the two has words of its own
        least = _ALIKE if same_name and same_title else _ALIKE_BY_NAME if same_name else _ALIKE_BY_TITLE
        if same_name and same_title and _is_numbered(one.path) and _is_numbered(other.path):
            least = _REVISED
        return likeness(one.sketch, other.sketch) >= least

    def _folder_words(self, one: str, other: str) -> tuple[list[str], list[str]]:
        """Return the words of the folders, below the indexed ones, that two paths do not share."""
        parts = [self._below(path).split("/")[:-1] for path in (one, other)]
        while parts[0] and parts[1] and parts[0][0] == parts[1][0]:
            parts = [folders[1:] for folders in parts]
        first, second = (key_words(" ".join(folders)).split() for folders in parts)
        return first, second

    def _below(self, path: str) -> str:
        return next((path.removeprefix(folder) for folder in self._folders if path.startswith(folder)), path)


def _is_numbered(path: str) -> bool:
    """Return whether the name of a file says a year or the number of a version, and no month or day."""
    name = path.rpartition("/")[2]
    dates = [*dates_in(name)]
    return all(len(one) == len("2025") for one in dates) and bool(dates or _NUMBERED.search(name))


def valid_on(day: date, family: Sequence[Version]) -> Version | None:
    """Return the version of a family, newest first, that was valid on a day; None if all say that they are later.

    A version is valid until the next one. The oldest, if it states no date, is taken to be older than any day: the date
    of its file only says when it was copied.
    """
    valid = next((one for one in family if one.date <= day.isoformat()), None)
    return valid or (family[-1] if family and not family[-1].stated else None)


def _ordered(family: Iterable[StoredVersion]) -> list[Version]:
    """Return versions newest first: by the dates they state, else by the numbers in their names, else by files."""
    known = sorted(family, key=lambda one: one.path)
    all_state = all(one.dated for one in known)

    def age(one: StoredVersion) -> tuple[object, ...]:
        named = version_of_name(one.path.rpartition("/")[2])
        return (one.dated if all_state else "", *named, _date(one), one.modified_ns)

    ordered = sorted(known, key=age, reverse=True)
    return [Version(one.id, one.path, one.title, _date(one), bool(one.dated)) for one in ordered]


def _date(one: StoredVersion) -> str:
    return one.dated or date.fromtimestamp(one.modified_ns / 1e9).isoformat()


def corresponding(passage: Passage, sentence: str, own: Version, version: Version, versions: Versions) -> list[Passage]:
    """Return the passages of a version that correspond to a passage of its `own` version, the likest first.

    Each is like all of the passage, or has the words of a `sentence` in it. Of a policy that was written anew, it may
    also be the section with the same heading.
    """
    wanted, said, found = words_of(passage.text), words_of(sentence), list[tuple[float, Passage]]()
    section = _headings_in(passage, max(0, passage.text.find(sentence)))[-1:]
    anew = _is_numbered(own.path) and _is_numbered(version.path)
    for other in versions.passages(version, passage, own):
        words = words_of(other.text)
        alike, held = shared(wanted, words), len(said & words) / max(1, len(said))
        is_section = anew and alike >= _REVISED and bool(section) and section[0] in _headings_in(other)
        if alike >= _CORRESPONDING or held >= _HELD or is_section:
            found.append((alike + held + _SAME_HEADING * (other.headings == passage.headings), other))
    return [other for _, other in sorted(found, key=lambda one: -one[0])]


def _headings_in(passage: Passage, end: int | None = None) -> list[str]:
    """Return the heading above a passage and those in its text, up to an offset, without their numbers."""
    above = "".join(f"# {one}\n" for one in passage.headings[-1:])
    found = HEADING.finditer(above + passage.text[:end])
    return [words for one in found if (words := one["words"].casefold().strip())]


@lru_cache(4096)
def words_of(text: str) -> frozenset[str]:
    """Return the words of a text, without numbers: these are what may differ."""
    return frozenset(token for token in keyword_tokens(text) if not token[:1].isdigit())


def shared(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of their words that two texts have in common."""
    return 2 * len(one & other) / max(1, len(one) + len(other))
