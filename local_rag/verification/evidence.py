"""Find what documents say about a statement: the sentences that share most of its words, and where else it stands."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import PurePath
from typing import Protocol

from local_rag.answering.blocks import ENDED
from local_rag.answering.units import Unit, headings_of, source_heading, split_units
from local_rag.digests.statements import Place, ordinary_words, readable
from local_rag.extraction.values import find_phrase
from local_rag.passage_records import Passage
from local_rag.store.database import NamedDocument
from local_rag.text.facts import Fact, Source, find_facts, normalize
from local_rag.text.tokens import key_of_word, keyword_tokens
from local_rag.text.words import words_of
from local_rag.verification.comparison import Comparison

MOST_PASSAGES = 12  # that are read for a statement
_COMPARED = 6  # units that are compared word by word, those with most words of the statement first
_WORD = re.compile(r"[^\W_]+")
_GAP = 3  # characters between two passages that adjoin
_COPIED, _PART_COPIED = 4, 0.3  # words, and their share of a statement, one after the other, that are a copy
_REST = 0.2  # the share of the content words beside a copy that may be other ones
_LONGEST = 2000  # characters of a unit that are compared


class Documents(Protocol):
    """What is seen of a library: how statements are looked up in it."""

    def search(self, text: str, within: Sequence[str] = ()) -> Sequence[Passage]:
        """Return the passages that fit a text best, of all documents or of those with these paths."""

    def quoting(self, words: str) -> Passage | None:
        """Return a passage of some document that has these words one after the other; None if none has."""

    def named(self) -> Sequence[NamedDocument]:
        """Return what the documents are called."""


@dataclass(frozen=True)
class Candidate:
    """A unit, or two that follow each other, that may say a statement; `coverage` is the share of its words there."""

    passage: Passage
    unit: Unit
    coverage: float
    comparison: Comparison

    @property
    def strength(self) -> float:
        """Return how much of the statement it has: in any order, and in the same."""
        return (self.coverage + self.comparison.share) / 2

    @cached_property
    def around(self) -> str:
        """What a reader knows of the unit beside its text: title, headings, and the name and date of the document."""
        passage, stem = self.passage, PurePath(self.passage.path).stem.replace("_", " ").replace("-", " ")
        parts = source_heading(passage), headings_of(passage), self.unit.heading, passage.terms, stem
        return "\n".join([*parts, passage.table_header])

    @cached_property
    def source(self) -> Source:
        """The facts of the unit and of what is around it."""
        return Source(f"{self.around}\n{self.unit.text[:_LONGEST]}")

    def missing(self, facts: Sequence[Fact]) -> list[Fact]:
        """Return the facts that it lacks."""
        return [fact for fact in facts if not fact.occurs_in(self.source)]

    @cached_property
    def _unsaid(self) -> list[bool]:
        """Of each content word of the statement, whether neither the unit nor what is around it has it."""
        known = {*map(key_of_word, words_of(self.around)), *(one.key for one in self.comparison.written)}
        return [word.key not in known for word in self.comparison.said if word.is_content]

    @cached_property
    def longest_unsaid(self) -> int:
        """The most content words of the statement, one after the other, that it does not say."""
        return max((len([*run]) for unsaid, run in groupby(self._unsaid) if unsaid), default=0)

    @property
    def is_part_copied(self) -> bool:
        """Return whether a part of the statement is the unit word for word, and the rest is something else.

        Halves of two sentences look so. Who writes something in other words begins with the first one.
        """
        copied = self.comparison.longest_run >= max(_COPIED, _PART_COPIED * len(self.comparison.said))
        return copied and sum(self._unsaid) > _REST * len(self._unsaid)

    @property
    def place(self) -> Place:
        """Return the unit as a quotation with its place."""
        return place_of(self.passage, self.unit.start, self.unit.end, self.unit.heading)


def place_of(passage: Passage, start: int, end: int, heading: str = "") -> Place:
    """Return a span of a passage as a quotation with its place in the document."""
    # A heading within the passage stands in the place of the one that the passage begins below.
    above = (*passage.headings[:-1], heading) if heading else passage.headings
    headings = [one for one in above if one != passage.title]
    line = None if passage.line is None else passage.line + passage.text.count("\n", 0, start)
    text, section, offset = passage.text[start:end], " > ".join(headings), passage.start
    where = passage.page, line, offset + start, offset + end, passage.page_label
    return Place(text, passage.path, passage.title, section, *where)


def candidates_for(statement: str, passages: Sequence[Passage]) -> list[Candidate]:
    """Return the units of passages that may say a statement, the strongest first."""
    passages = joined(passages)
    wanted = frozenset(keyword_tokens(statement))
    units = [(passages[one.passage], one) for one in _with_pairs(split_units(passages))]
    tokens = [frozenset(keyword_tokens(f"{headings_of(passage)}\n{unit.text[:_LONGEST]}")) for passage, unit in units]
    counts = Counter(token for some in tokens for token in some & wanted)

    def weight(some: Collection[str]) -> float:
        return sum(math.log(1 + len(units) / (1 + counts[token])) for token in some)

    whole = weight(wanted) or 1.0
    covered = [weight(some & wanted) / whole for some in tokens]
    best = sorted(range(len(units)), key=lambda one: (-covered[one], len(units[one][1].text)))[:_COMPARED]
    ordinary = frozenset[str]().union(*(ordinary_words(passage.text) for passage in passages))
    found = [
        Candidate(*units[one], covered[one], Comparison(statement, readable(units[one][1].text[:_LONGEST]), ordinary))
        for one in best
        if covered[one] > 0
    ]
    return sorted(found, key=lambda one: (-round(one.strength, 2), len(one.unit.text)))


def joined(passages: Sequence[Passage]) -> list[Passage]:
    """Return passages with those in one between which a sentence of their document is cut."""
    found = list[Passage]()
    for one in sorted(passages, key=lambda one: (one.path, one.start)):
        before = found[-1] if found else None
        if before and _goes_on(before, one):
            text = before.text + "\n" * max(0, one.start - before.end) + one.text[max(0, before.end - one.start) :]
            found[-1] = replace(before, text=text, end=max(before.end, one.end))
        else:
            found.append(one)
    return found


def _goes_on(before: Passage, one: Passage) -> bool:
    adjoin = before.path == one.path and before.kind == one.kind == "chunk" and one.start - before.end <= _GAP
    return adjoin and not ENDED.search(before.text.rstrip())


def _with_pairs(units: Sequence[Unit]) -> Iterator[Unit]:
    """Yield units, and those sentences of a paragraph together that follow each other, as a statement may join them."""
    yield from units
    for one, following in pairwise(units):
        same = one.passage == following.passage and one.paragraph == following.paragraph
        if same and one.kind == following.kind == "sentence":
            text = f"{one.text} {following.text}"
            yield Unit(one.passage, "sentence", text, one.start, following.end, one.paragraph, one.heading)


def facts_of(statement: str) -> list[Fact]:
    """Return the dates, numbers, codes and names of a statement."""
    return find_facts(normalize(statement))


def verbatim(words: str, passages: Sequence[Passage]) -> tuple[Passage, tuple[int, int]] | None:
    """Return where one of some passages has words one after the other, whatever their case; None if none has."""
    for passage in passages:
        if span := find_phrase(passage.text, words):
            return passage, span
    return None


@dataclass(frozen=True, slots=True)
class Mention:
    """A name of documents within a text, without case, its span, and the paths of these documents."""

    name: str
    paths: Sequence[str]
    start: int
    end: int


class Names:
    """What documents are called: the names of their files, and their titles where these have several words."""

    def __init__(self, documents: Sequence[NamedDocument]) -> None:
        self._paths = dict[str, list[str]]()
        self._beginnings = dict[str, list[tuple[str, ...]]]()
        for one in documents:
            path = PurePath(one.path)
            for name in dict.fromkeys((path.name, path.stem, one.title, one.path)):
                key = " ".join(name.casefold().split())
                self._paths.setdefault(key, []).append(one.path)
            for name in dict.fromkeys((path.stem, one.title)):
                words = tuple(_words(name))
                if len(words) > 1:
                    self._beginnings.setdefault(words[0], []).append(words)
        self._by_words = dict[tuple[str, ...], dict[str, None]]()  # several names may have the same words
        for key, paths in self._paths.items():
            self._by_words.setdefault(tuple(_words(key)), {}).update(dict.fromkeys(paths))

    def at(self, name: str) -> Sequence[str]:
        """Return the paths of the documents with this file name, path or title."""
        key = " ".join(name.casefold().split())
        if found := self._paths.get(key):
            return found
        last = key.rpartition("/")[2]
        return [path for path in self._paths.get(last, ()) if path.casefold().endswith(f"/{key}")] if "/" in key else ()

    def within(self, text: str) -> Iterator[Mention]:
        """Yield the names of several words that a text has, the longest ones."""
        spans, at = [found.span() for found in _WORD.finditer(text)], 0
        words = [text[start:end].casefold() for start, end in spans]
        while at < len(words):
            known = (one for one in self._beginnings.get(words[at], ()) if tuple(words[at : at + len(one)]) == one)
            longest = max(known, key=len, default=())
            if longest:
                paths = list(self._by_words.get(longest, ()))
                yield Mention(" ".join(longest), paths, spans[at][0], spans[at + len(longest) - 1][1])
            at += max(1, len(longest))


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]
