"""Say what changed between two documents: each change with both quotations and their places, important ones first."""

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile, zip_longest
from typing import Literal

from local_rag.digests.alignment import Alignment, Pair, Part, align, common_parts
from local_rag.digests.statements import DocumentText, Place, Statement, ordinary_words, readable, without_stop
from local_rag.errors import QuestionError
from local_rag.text.dates import find_dates, find_times
from local_rag.text.facts import find_codes, normalize
from local_rag.text.languages import FUNCTION_WORDS, language_of
from local_rag.text.quantities import CURRENCIES, Quantity, find_numbers
from local_rag.text.tokens import STOP_WORDS
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
            taken.setdefault(one.start, replace(one, text=without_stop(one.text)))
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


ChangeKind = Literal["amounts", "dates", "numbers", "names", "removed", "added", "reworded", "moved"]
KINDS: tuple[ChangeKind, ...] = ("amounts", "dates", "numbers", "names", "removed", "added", "reworded", "moved")
# Words that turn what a sentence demands into something else.
_BINDING = frozenset(
    """not no never none nor without shall must may can cannot should will only unless except required prohibited
    optional""".split()  # noqa: SIM905  a list of that many quoted words is no easier to read
)
_FEWEST_MOVED = 4  # words
_NEAR = 2  # statements from one that moved to the next that moved with it
_AUXILIARY = r"(?:is|are|was|were|be|shall|must|may|can|cannot|will|should|has|have|had)\b"
_ACTS = "amount|begin|start|end|expire|run|last|cost|equal|total|pay|receive|require|take|come|report|continue|remain"
# "Full pay" and "annual costs" hold no verb: without its s, a word is one only behind a plural.
_VERB = re.compile(
    rf" (?:{_AUXILIARY}|(?:(?:{_ACTS})s|applies)\b(?! {_AUXILIARY})|(?<=s )(?:{_ACTS})\b)", re.IGNORECASE
)
_RELATIVE = frozenset("who whom whose which that what when where whether if".split())  # noqa: SIM905
_DETERMINER = re.compile(r"(?:(?:the|a|an|this|each|every|any|all|our|your|its) )+", re.IGNORECASE)
_MOST_WORDS, _LONGEST_LABEL = 6, 60  # of a label
_MOST_CHARACTERS = 2_000_000  # of two documents that are compared while others wait
_COMPARED = 5000  # characters of a statement in which values are looked for


@dataclass(frozen=True, slots=True)
class Change:
    """A change: its most important kind, what it is about, the values, and both quotations.

    `before` or `after` is None if only one document says it.
    """

    kind: ChangeKind
    about: str
    values: tuple[ChangedValue, ...]
    before: Place | None
    after: Place | None

    @property
    def summary(self) -> str:
        """Say the change on one line."""
        if self.values:
            said = "; ".join(f"{one.before or 'nothing'} -> {one.after or 'nothing'}" for one in self.values)
            return f"{self.about}: {said}" if self.about else said
        return f"{self.kind}: {self.about}" if self.about else self.kind


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed between two documents, the important changes first.

    `common` is the share of the statements of the shorter one that correspond to statements of the other.
    """

    before: str
    after: str
    changes: tuple[Change, ...]
    common: float

    @property
    def counts(self) -> dict[str, int]:
        """Return how many changes there are of each kind."""
        counts = Counter(one.kind for one in self.changes)
        return {kind: counts[kind] for kind in KINDS if counts[kind]}


def require_comparable(before: DocumentText, after: DocumentText) -> None:
    """Raise QuestionError for documents that take long to compare, where others wait for it."""
    size = len(before.text) + len(after.text)
    if size > _MOST_CHARACTERS:
        raise QuestionError(
            f"These documents have {size:,} characters together; more than {_MOST_CHARACTERS:,} are compared only by "
            "`local-rag diff`."
        )


def compare(before: DocumentText, after: DocumentText) -> Difference:
    """Compare two documents by code; no model takes part."""
    aligned = align(before.statements, after.statements)
    changes = sorted(_Comparing(before, after).changes(aligned), key=_importance)
    shorter = min(len(before.statements), len(after.statements))
    return Difference(before.path, after.path, tuple(changes), len(aligned.pairs) / max(1, shorter))


def _importance(change: Change) -> tuple[int, int, int]:
    rank = KINDS.index(change.kind)
    if change.kind == "reworded" and _binding(change.before) != _binding(change.after):
        rank = KINDS.index("names")
    place = change.after or change.before
    return rank, not (change.values and change.values[0].before and change.values[0].after), place.start if place else 0


def _binding(place: Place | None) -> Counter[str]:
    words = re.findall(r"\w+", place.text.casefold()) if place else []
    return Counter(word for word in words if word in _BINDING)


class _Comparing:
    def __init__(self, before: DocumentText, after: DocumentText) -> None:
        self._documents = before, after
        self._statements = before.statements, after.statements
        self._ordinary = ordinary_words(before.text) | ordinary_words(after.text)
        self._empty = STOP_WORDS | FUNCTION_WORDS.get(language_of(after.text), frozenset())

    def changes(self, aligned: Alignment) -> Iterator[Change]:
        """Yield all that changed."""
        for pair in aligned.pairs:
            if change := self._of_pair(pair):
                yield change
        yield from self._of_one_side("removed", 0, aligned.removed)
        yield from self._of_one_side("added", 1, aligned.added)
        yield from self._moved(aligned)

    def _of_pair(self, pair: Pair) -> Change | None:
        """Return what changed within a pair, None if both say the same in the same words."""
        first = [self._statements[0][number] for number in pair.before]
        second = [self._statements[1][number] for number in pair.after]
        if [word for one in first for word in one.words] == [word for one in second for word in one.words]:
            return None
        said, says = (" ".join(readable(one.read) for one in some)[:_COMPARED] for some in (first, second))
        values = changed_values(said, says, self._ordinary)
        ranked = sorted(values, key=lambda one: KINDS.index(one.kind))
        before, after = self._place(0, pair.before), self._place(1, pair.after)
        if not ranked:
            return Change("reworded", _reworded(said, says) or _cut(_last(second[0].section)), (), before, after)
        return Change(ranked[0].kind, self._about(second[0], ranked), tuple(ranked), before, after)

    def _of_one_side(self, kind: ChangeKind, side: int, numbers: Sequence[int]) -> Iterator[Change]:
        """Yield statements that only one document has, those of a section that follow each other as one change."""
        own = self._statements[side]
        runs = groupby(enumerate(numbers), key=lambda one: (one[1] - one[0], own[one[1]].section))
        for _, run in runs:
            found = [number for _, number in run]
            place = self._place(side, found)
            yield Change(kind, _cut(_called(own[found[0]])), (), place if side == 0 else None, place if side else None)

    def _moved(self, aligned: Alignment) -> Iterator[Change]:
        """Yield what stands elsewhere now: a section as one change, or statements that follow each other."""
        moved = sorted((pair for pair in aligned.pairs if pair.moved), key=lambda pair: pair.before)
        runs = list[list[Pair]]()
        for pair in moved:
            if runs and _follows(runs[-1][-1], pair):
                runs[-1].append(pair)
            else:
                runs.append([pair])
        for run in runs:
            own = [self._statements[0][number] for pair in run for number in pair.before]
            if sum(len(one.words) for one in own) < _FEWEST_MOVED:
                continue
            before = self._place(0, [number for pair in run for number in pair.before])
            after = self._place(1, [number for pair in run for number in pair.after])
            heading = next((one for one in own if one.kind == "heading"), None)
            about = readable(heading.text) if heading else _last(own[0].section)
            yield Change("moved", _cut(about), (), before, after)

    def _place(self, side: int, numbers: Sequence[int]) -> Place:
        own = self._statements[side]
        return self._documents[side].place(own[min(numbers)].start, own[max(numbers)].end)

    def _about(self, statement: Statement, values: Sequence[ChangedValue]) -> str:
        """Say what a value is about: the subject of its sentence, the name of its row, or else the heading above."""
        text = readable(statement.read)
        if statement.kind == "heading":
            return ""
        label, colon, _ = text.partition(": ")
        if statement.kind == "row":
            return _cut(statement.name)
        changed = {one for value in values for one in (value.before, value.after) if one}
        verb = _VERB.search(text)
        subject = text[: verb.start()] if verb else ""
        for part in (label if colon else "", subject if self._is_name(subject) else ""):
            words = _DETERMINER.sub("", part, count=1) if _DETERMINER.match(part) else part
            if 0 < len(words.split()) <= _MOST_WORDS and not any(one in words for one in changed):
                is_ordinary = words[1:2].islower() and words.split()[0].casefold() in self._ordinary
                return _cut(f"{words[0].lower()}{words[1:]}" if is_ordinary else words)
        return _cut(_last(statement.section))

    def _is_name(self, subject: str) -> bool:
        """Return whether a subject says what it is about: "they" and "staff who" do not."""
        words = subject.casefold().split()
        return bool(words) and words[-1] not in self._empty and _RELATIVE.isdisjoint(words)


def _called(statement: Statement) -> str:
    """Return what a statement is called: a heading or the name of a row, else the heading above."""
    if statement.kind == "heading":
        return readable(statement.text)
    return statement.name if statement.kind == "row" else _last(statement.section)


def _follows(before: Pair, pair: Pair) -> bool:
    """Return whether a pair has moved together with the one before it."""
    return pair.before[0] - before.before[-1] <= _NEAR and 0 < pair.after[0] - before.after[-1] <= _NEAR


def _reworded(before: str, after: str) -> str:
    """Return the words that stand for each other in two statements, if they are few and in one place."""
    own, other = before.split(), after.split()
    first = _in_common(own, other)
    last = _in_common(own[first:][::-1], other[first:][::-1])
    gone, new = own[first : len(own) - last], other[first : len(other) - last]
    few = max(len(gone), len(new)) <= _MOST_WORDS
    said, says = (without_stop(" ".join(words)) or "nothing" for words in (gone, new))
    return f"{said} -> {says}" if few else ""


def _in_common(own: Sequence[str], other: Sequence[str]) -> int:
    """Return with how many of the same words two lists begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(own, other, strict=False)))


def _last(section: Collection[str]) -> str:
    return [*section, ""][len(section) - 1] if section else ""


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1].rpartition(' ')[0]}\u2026"
