"""Find what two sequences have in common, in their order."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher

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
