"""Find the values of a statement, and tell which of two statements differ: amounts, dates, numbers, names."""

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

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
    changed = list[ChangedValue]()
    for kind in VALUE_KINDS:
        own, other = ([one for one in values if one.kind == kind] for values in (gone, new))
        for one, instead in zip(own, other, strict=False):
            changed.append(ChangedValue(kind, one.text, instead.text))
            gone.remove(one)
            new.remove(instead)
    for one, instead in zip_longest(gone, new):  # of another kind, or nothing, stands in its place
        changed.append(ChangedValue((instead or one).kind, one.text if one else "", instead.text if instead else ""))
    return [*changed, *_changed_names((before, first), (after, second), ordinary)]


def _changed_names(
    before: tuple[str, Sequence[Value]], after: tuple[str, Sequence[Value]], ordinary: Collection[str]
) -> Iterator[ChangedValue]:
    """Yield the names that stand for each other where the words of two statements differ."""
    sides = [_named(*side) for side in (before, after)]
    own, other = ([word.casefold() for word, _ in side] for side in sides)
    for tag, first, last, start, end in SequenceMatcher(None, own, other, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        gone, new = sides[0][first:last], sides[1][start:end]
        proper = [all(is_name for _, is_name in side) for side in (gone, new)]
        unusual = any(word.casefold() not in ordinary for side in (gone, new) for word, is_name in side if is_name)
        if all(proper) if gone and new else unusual and all(proper):
            texts = (" ".join(word for word, _ in side) for side in (gone, new))
            yield ChangedValue("names", *texts)


def _named(text: str, values: Sequence[Value]) -> list[tuple[str, bool]]:
    """Return the words of a statement outside its values, each with whether it is written like a name."""
    rest = blank(text, [(one.start, one.end) for one in values])
    return [(found[0], found[0][0].isupper() and len(found[0]) > 1) for found in _NAME_WORD.finditer(rest)]


def _without_common(first: Sequence[Value], second: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    """Return the values of each side that the other lacks; the order tells which of several equal ones they are."""
    own, other = ([one.text.casefold() for one in side] for side in (first, second))
    blocks = SequenceMatcher(None, own, other, False).get_matching_blocks()
    same = [(one.a + step, one.b + step) for one in blocks for step in range(one.size)]
    gone = [value for number, value in enumerate(first) if number not in {one for one, _ in same}]
    new = [value for number, value in enumerate(second) if number not in {one for _, one in same}]
    for value in [*gone]:  # in another order, or written in another way
        if instead := next((one for one in new if (one.kind, one.key) == (value.kind, value.key)), None):
            gone.remove(value)
            new.remove(instead)
    return gone, new
