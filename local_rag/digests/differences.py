"""Say what changed between two documents: each change with both quotations and their places, important ones first."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Literal

from local_rag.digests.alignment import Alignment, Pair, align
from local_rag.digests.statements import DocumentText, Place, Statement, ordinary_words, readable
from local_rag.digests.value_changes import ChangedValue, changed_values
from local_rag.errors import QuestionError

ChangeKind = Literal["amounts", "dates", "numbers", "names", "removed", "added", "reworded", "moved"]
KINDS: tuple[ChangeKind, ...] = ("amounts", "dates", "numbers", "names", "removed", "added", "reworded", "moved")
# Words that turn what a sentence demands into something else.
_BINDING = frozenset(
    """not no never none nor without shall must may can cannot should will only unless except required prohibited
    optional""".split()  # noqa: SIM905  a list of that many quoted words is no easier to read
)
_FEWEST_MOVED = 4  # words
_NEAR = 2  # statements from one that moved to the next that moved with it
_VERB = re.compile(
    r" (?:is|are|was|were|be|shall|must|may|can|cannot|will|should|has|have|had|amounts?|begins?|starts?|ends?|"
    r"expires?|runs?|lasts?|costs?|equals?|totals?|pays?|receives?|requires?|applies|takes?|comes?|reports?)\b",
    re.IGNORECASE,
)
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
        for part in (label if colon else "", text[: verb.start()] if verb else ""):
            words = _DETERMINER.sub("", part, count=1) if _DETERMINER.match(part) else part
            if 0 < len(words.split()) <= _MOST_WORDS and not any(one in words for one in changed):
                is_ordinary = words[1:2].islower() and words.split()[0].casefold() in self._ordinary
                return _cut(f"{words[0].lower()}{words[1:]}" if is_ordinary else words)
        return _cut(_last(statement.section))


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
    return f"{' '.join(gone) or 'nothing'} -> {' '.join(new) or 'nothing'}" if few else ""


def _in_common(own: Sequence[str], other: Sequence[str]) -> int:
    """Return with how many of the same words two lists begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(own, other, strict=False)))


def _last(section: Collection[str]) -> str:
    return [*section, ""][len(section) - 1] if section else ""


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1].rpartition(' ')[0]}\u2026"
