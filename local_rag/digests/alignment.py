"""Align the statements of two documents: the same ones in order, those that moved, and those that were reworded.

Statements that stand once in each document are anchors (patience diff); the longest chain of them in the order of both
documents stays, the others have moved. What is left is paired by the words that it shares and by its neighbours.
"""

from bisect import bisect_left
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from local_rag.digests.statements import Statement
from local_rag.text.tokens import STOP_WORDS

_ALIKE = 0.5  # the share of words that a reworded statement keeps
_ALIKE_IN_PLACE = 0.3  # if both of its neighbours are its neighbours still
_NEXT_TO = 0.2  # what a neighbour in common counts
_SAME_SECTION = 0.1
_MOST_WORDS, _MOST_HOLDERS = 12, 40  # words, the rarest first, that name candidates, and statements that have one
_MOST_COMPARED = 8  # of the candidates, those that are named most often
_HELD = 0.75  # the share of the words of a statement that another one has taken over
_ROUNDS = 3  # of pairing, each with the neighbours that the one before has found
_MOST_NESTED = 30  # anchors within the ranges between anchors; documents of usual kinds have a few


@dataclass(frozen=True, slots=True)
class Pair:
    """Statements of one document that correspond to statements of the other, as numbers; `moved` if out of order."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    moved: bool = False


@dataclass(frozen=True, slots=True)
class Alignment:
    """What corresponds to each other, and what is in one document alone."""

    pairs: tuple[Pair, ...]
    removed: tuple[int, ...]
    added: tuple[int, ...]


def align(before: Sequence[Statement], after: Sequence[Statement]) -> Alignment:
    """Align the statements of two documents."""
    aligning = _Aligning(before, after)
    aligning.pair_same()
    for _ in range(_ROUNDS):
        aligning.pair_alike()
    return aligning.result()


class _Aligning:
    def __init__(self, before: Sequence[Statement], after: Sequence[Statement]) -> None:
        self._before, self._after = before, after
        self._to: dict[int, int] = {}  # from `before` to `after`
        self._back: dict[int, int] = {}
        self._contents = [_contents(one) for one in before], [_contents(one) for one in after]

    def _pair(self, one: int, other: int) -> None:
        self._to[one], self._back[other] = other, one

    def pair_same(self) -> None:
        """Pair the statements with the same words: in order first, then those that moved."""
        waiting = [(0, len(self._before), 0, len(self._after), 0)]
        while waiting:
            first, last, start, end, depth = waiting.pop()
            chain = _chain(self._same_once(first, last, start, end))
            chain = [*self._grown(chain, first, last, start, end)]
            for one, other in chain:
                self._pair(one, other)
            edges = [(first - 1, start - 1), *chain, (last, end)]
            gaps = ((a + 1, b, c + 1, d, depth + 1) for (a, c), (b, d) in pairwise(edges))
            if chain and depth < _MOST_NESTED:
                waiting += [gap for gap in gaps if gap[0] < gap[1] and gap[2] < gap[3]]
        self._pair_moved()

    def _same_once(self, first: int, last: int, start: int, end: int) -> list[tuple[int, int]]:
        """Return the statements that occur once in each of two ranges."""
        once, others = (
            _places_of_single(side, span)
            for side, span in ((self._before, range(first, last)), (self._after, range(start, end)))
        )
        return [(place, others[words]) for words, place in once.items() if words in others]

    def _grown(
        self, chain: Sequence[tuple[int, int]], first: int, last: int, start: int, end: int
    ) -> Iterator[tuple[int, int]]:
        """Yield a chain with the same statements directly around its members, and at both ends of the ranges."""
        edges = [(first - 1, start - 1), *chain, (last, end)]
        for number, (edge, (next_one, next_other)) in enumerate(pairwise(edges)):
            if number:
                yield edge
            one, other = edge
            while one + 1 < next_one and other + 1 < next_other and self._is_same(one + 1, other + 1):
                one, other = one + 1, other + 1
                yield one, other
            room, behind = min(next_one - one, next_other - other), 1
            while behind < room and self._is_same(next_one - behind, next_other - behind):
                behind += 1
            yield from ((next_one - back, next_other - back) for back in range(behind - 1, 0, -1))

    def _is_same(self, one: int, other: int) -> bool:
        return self._before[one].words == self._after[other].words

    def _pair_moved(self) -> None:
        left = defaultdict[tuple[str, ...], OrderedDict[int, None]](OrderedDict)
        for other, statement in enumerate(self._after):
            if other not in self._back:
                left[statement.words][other] = None
        for one, statement in enumerate(self._before):
            if one not in self._to and (places := left.get(statement.words)):
                near = self._to.get(one - 1, -2) + 1
                other = near if near in places else next(iter(places))
                del places[other]
                self._pair(one, other)

    def pair_alike(self) -> None:
        """Pair what is left, the likest first."""
        scored = sorted(self._scored(), key=lambda found: (-found[0], found[1], found[2]))
        for _, one, other in scored:
            if one not in self._to and other not in self._back:
                self._pair(one, other)

    def _scored(self) -> Iterator[tuple[float, int, int]]:
        left = [number for number in range(len(self._before)) if number not in self._to]
        others = [number for number in range(len(self._after)) if number not in self._back]
        holders = defaultdict[str, list[int]](list)
        for other in others:
            for word in self._contents[1][other]:
                holders[word].append(other)
        for one in left:
            words = self._contents[0][one]
            rare = sorted((word for word in words if word in holders), key=lambda word: len(holders[word]))
            votes = Counter(other for word in rare[:_MOST_WORDS] for other in holders[word][:_MOST_HOLDERS])
            found = {other for other, _ in votes.most_common(_MOST_COMPARED)}
            near = self._to.get(one - 1, -2) + 1, self._to.get(one + 1, 0) - 1
            found |= {other for other in near if 0 <= other < len(self._after) and other not in self._back}
            for other in found:
                if (score := self._likeness(one, other)) is not None:
                    yield score, one, other

    def _likeness(self, one: int, other: int) -> float | None:
        """Return how well two statements fit each other; None if they do not."""
        first, second = self._before[one], self._after[other]
        if "heading" in {first.kind, second.kind} and first.kind != second.kind:
            return None
        words, others = self._contents[0][one], self._contents[1][other]
        alike = 2 * sum((words & others).values()) / max(1, words.total() + others.total())
        neighbours = (self._to.get(one - 1) == other - 1) + (self._to.get(one + 1) == other + 1)
        if not words and not others:  # only values: cells of a table
            alike = 1.0 if neighbours == len("||") else 0.0
        in_place = neighbours == len("||")
        if first.kind == second.kind == "row" and first.name != second.name and not in_place:
            return None  # rows with other names are of other things
        if alike < (_ALIKE_IN_PLACE if in_place else _ALIKE):
            return None
        return alike + _NEXT_TO * neighbours + _SAME_SECTION * (first.section[-1:] == second.section[-1:])

    def result(self) -> Alignment:
        """Return the pairs, with what was split or joined, and what is in one document alone."""
        pairs, kept = sorted(self._to.items()), set(_chain(self._to.items()))
        groups = {one: ([one], [other]) for one, other in pairs}
        removed = self._absorb(range(len(self._before)), groups, is_before=True)
        added = self._absorb(range(len(self._after)), groups, is_before=False)
        found = tuple(
            Pair(tuple(sorted(group[0])), tuple(sorted(group[1])), (one, self._to[one]) not in kept)
            for one, group in groups.items()
        )
        return Alignment(found, removed, added)

    def _absorb(
        self, numbers: range, groups: dict[int, tuple[list[int], list[int]]], *, is_before: bool
    ) -> tuple[int, ...]:
        """Add to a pair what stands beside one of its statements and in the other: a sentence was split or joined."""
        paired = self._to if is_before else self._back
        own, side = (self._before, 0) if is_before else (self._after, 1)
        left = []
        for number in numbers:
            if number in paired:
                continue
            for beside in (number - 1, number + 1):
                if beside not in paired:
                    continue
                one = beside if is_before else self._back[beside]
                group = groups[one]
                if self._takes_over(own[number], group, is_before=is_before):
                    group[side].append(number)
                    break
            else:
                left.append(number)
        return tuple(left)

    def _takes_over(self, statement: Statement, group: tuple[list[int], list[int]], *, is_before: bool) -> bool:
        first = Counter(word for one in group[0] for word in self._before[one].words)
        second = Counter(word for one in group[1] for word in self._after[one].words)
        more = second - first if is_before else first - second
        words = Counter(statement.words)
        return words.total() > 0 and (words & more).total() >= _HELD * words.total()


def _contents(statement: Statement) -> Counter[str]:
    """Return the words by which statements are compared: without numbers, which may differ."""
    words = [word for word in statement.words if not any(map(str.isdigit, word)) and word[0].isalnum()]
    return Counter([word for word in words if word not in STOP_WORDS] or words)


def _places_of_single(statements: Sequence[Statement], numbers: Iterable[int]) -> dict[tuple[str, ...], int]:
    places = dict[tuple[str, ...], int]()
    several = set[tuple[str, ...]]()
    for number in numbers:
        words = statements[number].words
        if words in places or words in several:
            several.add(words)
            places.pop(words, None)
        else:
            places[words] = number
    return places


def _chain(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest chain of pairs in which both numbers rise."""
    ordered = sorted(pairs)
    ends, links = list[int](), list[int]()  # the pairs that end chains of each length, and the pair before each
    lasts = list[int]()
    for index, (_, other) in enumerate(ordered):
        length = bisect_left(lasts, other)
        links.append(ends[length - 1] if length else -1)
        if length == len(ends):
            ends.append(index)
            lasts.append(other)
        else:
            ends[length], lasts[length] = index, other
    chain, index = list[tuple[int, int]](), ends[-1] if ends else -1
    while index >= 0:
        chain.append(ordered[index])
        index = links[index]
    return chain[::-1]


_SHORT = 2500  # pairs of members up to which long runs are preferred to many; the time for that may grow by the cube

Part = tuple[int, int, int]  # where it begins in both sequences, and its length


def common_parts(own: Sequence[Hashable], other: Sequence[Hashable]) -> list[Part]:
    """Return the runs of members that two sequences have in common, in the order of both.

    Of short sequences the longest runs are found first, of others as many members as there are (bit vectors; Hyyro,
    2004), so texts that repeat themselves take little time.
    """
    if len(own) * len(other) <= _SHORT:
        blocks = SequenceMatcher(None, own, other, autojunk=False).get_matching_blocks()
        return [(one.a, one.b, one.size) for one in blocks if one.size]
    parts = list[Part]()
    for one, two in _common_members(own, other):
        if parts and parts[-1][0] + parts[-1][2] == one and parts[-1][1] + parts[-1][2] == two:
            parts[-1] = (*parts[-1][:2], parts[-1][2] + 1)
        else:
            parts.append((one, two, 1))
    return parts


def _common_members(own: Sequence[Hashable], other: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the places of a longest common subsequence."""
    places = defaultdict[Hashable, int](int)
    for at, member in enumerate(own):
        places[member] |= 1 << at
    every = (1 << len(own)) - 1
    row, rows = every, [every]  # a bit is 0 where one more member of `own` is one more in common
    for member in other:
        same = row & places.get(member, 0)
        row = ((row + same) | (row - same)) & every
        rows.append(row)
    found, one, two = list[tuple[int, int]](), len(own), len(other)
    while one and two:
        if own[one - 1] == other[two - 1]:
            one, two = one - 1, two - 1
            found.append((one, two))
        elif rows[two] >> (one - 1) & 1:
            one -= 1
        else:
            two -= 1
    return found[::-1]
