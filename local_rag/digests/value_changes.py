"""Find the values of a statement, and tell which of two statements differ: amounts, dates, numbers, names."""

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from local_rag.digests.common_parts import Part, common_parts
from local_rag.text.dates import find_dates, find_times
from local_rag.text.facts import find_codes, normalize
from local_rag.text.quantities import CURRENCIES, Quantity, find_numbers
from local_rag.text.words import blank

ValueKind = Literal["amounts", "dates", "numbers", "names"]
VALUE_KINDS: tuple[ValueKind, ...] = ("amounts", "dates", "numbers", "names")
_NAME_WORD = re.compile(r"[^\W\d_](?:[\w'&.\u2019-]*\w)?")


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a statement, as it is written there; `key` is the same for all spellings of it."""

    kind: ValueKind
    text: str
    start: int
    end: int
    key: Hashable


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """A value before and after a change; either is empty if only one document has it."""

    kind: ValueKind
    before: str
    after: str


def find_values(text: str) -> list[Value]:
    """Return the amounts, dates and numbers of a readable statement in their order."""
    rest = normalize(text)
    found = list[Value]()

    def take(values: Iterable[Value]) -> None:
        nonlocal rest
        taken = dict[int, Value]()
        for one in values:  # a place may have several readings, of which the first is as good as any
            taken.setdefault(one.start, one)
        found.extend(taken.values())
        rest = blank(rest, [(one.start, one.end) for one in taken.values()])

    dates = find_dates(rest)
    take(Value("dates", one.text, one.start, one.end, (one.year, one.month, one.day)) for one in dates)
    take(Value("numbers", one[0], *one.span(), one[0].casefold()) for one in find_codes(rest))
    take(Value("numbers", one.text, one.start, one.end, ("time", min(one.values))) for one in find_times(rest))
    take(
        Value(_kind_of(one), one.text, one.start, one.end, (min(one.values), one.unit))
        for one in find_numbers(rest)
        if one.counts
    )
    return sorted(found, key=lambda one: one.start)


def _kind_of(number: Quantity) -> ValueKind:
    return "amounts" if number.unit in CURRENCIES else "numbers"


def changed_values(before: str, after: str, ordinary: Collection[str]) -> list[ChangedValue]:
    """Return the values that one of two readable statements has and the other lacks, those that stand for each other.

    The `ordinary` words are those that the documents write in lower case.
    """
    first, second = find_values(before), find_values(after)
    gone, new = _without_common(first, second)
    changed, rest = list[ChangedValue](), (list[Value](), list[Value]())
    for kind in VALUE_KINDS:
        own, other = ([one for one in values if one.kind == kind] for values in (gone, new))
        changed += [ChangedValue(kind, one.text, instead.text) for one, instead in zip(own, other, strict=False)]
        rest[0].extend(own[len(other) :])
        rest[1].extend(other[len(own) :])
    left = (sorted(side, key=lambda one: one.start) for side in rest)
    for one, instead in zip_longest(*left):  # of another kind, or nothing, stands in its place
        changed.append(ChangedValue((instead or one).kind, one.text if one else "", instead.text if instead else ""))
    return [*changed, *_changed_names((before, first), (after, second), ordinary)]


def _changed_names(
    before: tuple[str, Sequence[Value]], after: tuple[str, Sequence[Value]], ordinary: Collection[str]
) -> Iterator[ChangedValue]:
    """Yield the names that stand for each other where the words of two statements differ."""
    sides = [_named(*side) for side in (before, after)]
    own, other = ([word.casefold() for word, _ in side] for side in sides)
    for first, last, start, end in _between(common_parts(own, other), len(own), len(other)):
        gone, new = sides[0][first:last], sides[1][start:end]
        proper = [all(is_name for _, is_name in side) for side in (gone, new)]
        unusual = any(word.casefold() not in ordinary for side in (gone, new) for word, is_name in side if is_name)
        if all(proper) if gone and new else unusual and all(proper):
            texts = (" ".join(word for word, _ in side) for side in (gone, new))
            yield ChangedValue("names", *texts)


def _between(parts: Sequence[Part], own: int, other: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield what lies between the common parts of two sequences of these lengths, as the span of each."""
    first = start = 0
    for one, two, size in (*parts, (own, other, 0)):
        if first < one or start < two:
            yield first, one, start, two
        first, start = one + size, two + size


def _named(text: str, values: Sequence[Value]) -> list[tuple[str, bool]]:
    """Return the words of a statement outside its values, each with whether it is written like a name."""
    rest = blank(text, [(one.start, one.end) for one in values])
    return [(found[0], found[0][0].isupper() and len(found[0]) > 1) for found in _NAME_WORD.finditer(rest)]


def _without_common(first: Sequence[Value], second: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    """Return the values of each side that the other lacks; the order tells which of several equal ones they are."""
    own, other = ([one.text.casefold() for one in side] for side in (first, second))
    between = [*_between(common_parts(own, other), len(own), len(other))]
    gone = [value for start, end, _, _ in between for value in first[start:end]]
    new = [value for _, _, start, end in between for value in second[start:end]]
    # In another order, or written in another way.
    same = Counter((one.kind, one.key) for one in gone) & Counter((one.kind, one.key) for one in new)
    return _without(gone, same), _without(new, same)


def _without(values: Iterable[Value], same: Counter[tuple[ValueKind, Hashable]]) -> list[Value]:
    """Return values without so many of each."""
    left, kept = Counter(same), list[Value]()
    for one in values:
        if left[one.kind, one.key] > 0:
            left[one.kind, one.key] -= 1
        else:
            kept.append(one)
    return kept
