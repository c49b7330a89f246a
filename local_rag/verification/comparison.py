"""Compare a statement with a sentence of a document, word by word: what it says in its place that is not the same."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from local_rag.digests.alignment import Part, common_parts
from local_rag.digests.differences import Value, changed_values, find_values
from local_rag.extraction.values import denies
from local_rag.text.facts import Source, find_facts, normalize
from local_rag.text.quantities import unit_of
from local_rag.text.tokens import STOP_WORDS, key_of_word
from local_rag.text.words import caseless, plain
from local_rag.verification.verdicts import Difference

_WORD = re.compile(
    r"[^\W_]+(?:[.,:/'\u2019][^\W_]+)*|[%\u2030\u20ac\u00a3\u00a5\u20b9$<>\u2264\u2265\u00b1]|(?<![^\W_])-(?=[\d.])"
)
_MOST_WORDS = 600  # of a sentence that is compared
_SHORT = 6  # words that are shown as what stands in the place of others
_DENIAL = 2  # words in a gap that do nothing but deny
_SAME_ORDER = 0.7  # the share of the words in the same order from which on values have their places
_FAR = 6  # words between a single word in common and the others, from which on it only happens to be there


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text with its span, and the key by which words are compared: without case and inflection."""

    text: str
    start: int
    end: int
    key: str

    @property
    def is_content(self) -> bool:
        """Return whether it is more than one of the words that every text has."""
        return self.key not in _EMPTY and any(map(str.isalnum, self.text))

    @property
    def is_capital(self) -> bool:
        """Return whether it is written like a name."""
        return self.text[:1].isupper() and len(self.text) > 1


_EMPTY = frozenset(key_of_word(word) for word in STOP_WORDS)


def words_in(text: str) -> list[Word]:
    """Return the words and signs of a text."""
    found = (one for one, _ in zip(_WORD.finditer(text), range(_MOST_WORDS), strict=False))
    return [Word(one[0], *one.span(), key_of_word(caseless(plain(one[0])).removesuffix("'s"))) for one in found]


@dataclass(frozen=True, slots=True)
class Gap:
    """Words of a statement, and those that stand in their place in a sentence; either may be none."""

    said: Sequence[Word]
    written: Sequence[Word]


class Comparison:
    """A statement beside a sentence; `ordinary` are words that documents write in lower case.

    The sentence may be longer: what it says before and after the words in common does not count.
    """

    def __init__(self, statement: str, sentence: str, ordinary: Collection[str]) -> None:
        self.statement, self.sentence, self._ordinary = statement, sentence, ordinary
        self.said, self.written = words_in(statement), words_in(sentence)
        own, other = ([word.key for word in words] for words in (self.said, self.written))
        self._parts = _near(common_parts(own, other))

    @cached_property
    def share(self) -> float:
        """The share of the words of the statement that the sentence has in the same order."""
        return sum(size for _, _, size in self._parts) / max(1, len(self.said))

    @cached_property
    def gaps(self) -> list[Gap]:
        """What differs, in the order of the statement."""
        if not self._parts:
            return [Gap(self.said, ())]
        first, second, _ = self._parts[0]
        last_one, last_two, size = self._parts[-1]
        # At its edges the statement may have other words than the sentence in their place.
        begin = max(0, second - first)
        end = min(len(self.written), last_two + size + len(self.said) - last_one - size)
        gaps, one, two = list[Gap](), 0, begin
        for at, there, length in (*self._parts, (len(self.said), end, 0)):
            if one < at or two < there:
                gaps.append(Gap(self.said[one:at], self.written[two:there]))
            one, two = at + length, there + length
        return gaps

    @cached_property
    def longest_gap(self) -> float:
        """The largest share of the content words of the statement that are in one gap."""
        total = sum(word.is_content for word in self.said)
        return max((sum(word.is_content for word in gap.said) for gap in self.gaps), default=0) / max(1, total)

    @cached_property
    def longest_run(self) -> int:
        """The most words one after the other that both have."""
        return max((size for _, _, size in self._parts), default=0)

    @cached_property
    def differences(self) -> list[Difference]:
        """What the statement says otherwise: values, names, whether it denies, and other words."""
        found = [one for gap in self.gaps if (one := self._difference(gap))]
        told = {id(one) for gap in self.gaps for one in self._values_in(gap)[0]}
        # The sentence may have a sign or a unit beside the same digits.
        others = [one for one in self._values[0] if id(one) not in told and self._lacks([one])]
        return [*found, *(Difference("value", one.text, self._instead([one])) for one in others)]

    @cached_property
    def _values(self) -> tuple[list[Value], list[Value]]:
        return find_values(self.statement), find_values(self.sentence)

    @cached_property
    def _source(self) -> Source:
        return Source(self.sentence)

    def _difference(self, gap: Gap) -> Difference | None:
        sides = gap.said, gap.written
        texts = [self._text(side, words) for side, words in enumerate(sides)]
        said, written = self._values_in(gap)
        keys = {(one.kind, one.key) for one in written}
        new = [one for one in said if (one.kind, one.key) not in keys]
        if new and self._is_new(new, written):
            return Difference("value", _texts(new), _texts(written) or self._instead(new))
        units = [{unit for word in words if (unit := unit_of(word.text))} for words in sides]
        if all(units) and units[0] != units[1] and not written:
            return Difference("value", *texts)
        names, others = (self._names(words) for words in sides)
        if names and not {one.key for one in names} <= {one.key for one in others}:
            return Difference("name", " ".join(one.text for one in names), " ".join(one.text for one in others))
        denied = [denies(text) for text in texts]
        if denied[0] != denied[1] and len(sides[denied[1]]) <= _DENIAL:  # and not "no later than" for "at most"
            return Difference(
                "negation", *(text if len(sides[side]) <= _SHORT else "" for side, text in enumerate(texts))
            )
        known = {one.key for one in self.written}
        content = (one for one in gap.said if one.is_content and one not in _inside(said, gap.said))
        if any(one.key not in known for one in content):
            return Difference("words", *texts)
        return None

    def _is_new(self, said: Sequence[Value], written: Sequence[Value]) -> bool:
        """Return whether the sentence lacks a value, or has it elsewhere and another of its kind in its place."""
        if self._lacks(said):
            return True
        kinds = {one.kind for one in said} & {one.kind for one in written}
        return bool(kinds) and self.share >= _SAME_ORDER and not self._same_facts(said, written)

    def _instead(self, values: Sequence[Value]) -> str:
        """Return what stands in the sentence in place of values of which it lacks only the sign or the unit."""
        texts = {one.text for one in values}
        changed = changed_values(self.statement, self.sentence, self._ordinary)
        return ", ".join(one.after for one in changed if one.before in texts and one.after)

    def _values_in(self, gap: Gap) -> list[list[Value]]:
        """Return the values of both texts that a gap touches."""
        return [
            [one for one in values if words and one.start < words[-1].end and words[0].start < one.end]
            for values, words in zip(self._values, (gap.said, gap.written), strict=True)
        ]

    def _lacks(self, values: Sequence[Value]) -> bool:
        """Return whether the sentence lacks one of some values of the statement, however it is written."""
        plain_text = normalize(self.statement)
        facts = [
            one for one in find_facts(plain_text) if any(one.start < v.end and v.start <= one.start for v in values)
        ]
        return not facts or any(not fact.occurs_in(self._source) for fact in facts)

    def _same_facts(self, said: Sequence[Value], written: Sequence[Value]) -> bool:
        """Return whether what stands in the place of values says the same in another way."""
        if not written:
            return False
        there = Source(self.sentence[min(one.start for one in written) : max(one.end for one in written)])
        own = self.statement[min(one.start for one in said) : max(one.end for one in said)]
        facts = find_facts(normalize(own))
        return bool(facts) and all(fact.occurs_in(there) for fact in facts)

    def _names(self, words: Sequence[Word]) -> list[Word]:
        """Return the words that are written like names, and that documents do not write otherwise."""
        return [one for one in words if one.is_capital and one.is_content and one.text.casefold() not in self._ordinary]

    def _text(self, side: int, words: Sequence[Word]) -> str:
        text = (self.statement, self.sentence)[side]
        return text[words[0].start : words[-1].end] if words else ""


def _inside(values: Sequence[Value], words: Sequence[Word]) -> list[Word]:
    """Return the words that belong to values."""
    return [word for word in words if any(one.start < word.end and word.start < one.end for one in values)]


def _texts(values: Sequence[Value]) -> str:
    return ", ".join(one.text for one in values)


def _near(parts: Sequence[Part]) -> list[Part]:
    """Return the parts in common without single words at the edges that are far from all others in the sentence."""
    kept = list(parts)
    while len(kept) > 1 and kept[0][2] == 1 and _distance(kept[0], kept[1]) > _FAR:
        del kept[0]
    while len(kept) > 1 and kept[-1][2] == 1 and _distance(kept[-2], kept[-1]) > _FAR:
        del kept[-1]
    return kept


def _distance(one: Part, following: Part) -> int:
    """Return how many more words are between two parts in the sentence than in the statement."""
    return (following[1] - one[1] - one[2]) - (following[0] - one[0] - one[2])


def spans_of(text: str, phrases: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where differing words stand in a text, each after the one before where it can."""
    at = 0
    for phrase in phrases:
        start = text.find(phrase, at) if phrase else -1
        start = text.find(phrase) if phrase and start < 0 else start
        if start >= 0:
            at = start + len(phrase)
            yield start, at
