"""Tell the numbers that count the lines of a deed or a transcript from numbers that a text says."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

_FEWEST, _MANY, _STEPS = 4, 15, {1, 5, 10}  # lines with a number, and from one to the next
_FEWEST_OF_TEXT = 8  # of a text, where nothing but the numbers tells a margin
_FEWEST_WORDS = 4  # of most lines
_RUNS_ON = 0.4  # of the lines begin within a sentence
_COUNTED = re.compile(r"[^\S\n]*(\d{1,4})(?:[^\S\n]+(\S.*))?")
_DIGITS = re.compile(r"\d+")


class Counted(NamedTuple):
    """A line, by its place, with the number in its margin and the words beside it, which a blank line lacks."""

    at: int
    number: int
    words: str


def lines_counted(lines: Sequence[Counted]) -> list[Counted]:
    """Return the lines whose numbers count them; none if the numbers do not rise evenly beside words that run on.

    A number that stands alone counts a blank line if it is the next one, and is that of a page otherwise.
    """
    steps = Counter(after.number - before.number for before, after in pairwise(lines))
    step = max(steps, key=steps.__getitem__, default=0)
    found = list[Counted]()
    for one in lines:
        if not found or one.words or one.number == found[-1].number + step:
            found.append(one)
    while len(found) > 1 and not found[0].words and found[1].number != found[0].number + step:
        found = found[1:]
    if step not in _STEPS or any(after.number - before.number != step for before, after in pairwise(found)):
        return []
    texts = [one.words for one in found if one.words]
    if len(texts) < _FEWEST or median(len(text.split()) for text in texts) < _FEWEST_WORDS:
        return []
    # Of a transcript, which is long, many lines begin with a capital.
    least = _RUNS_ON if len(texts) < _MANY else _RUNS_ON / 2
    return found if sum(text[:1].islower() for text in texts[1:]) >= least * (len(texts) - 1) else []


def blank_line_numbers(text: str) -> str:
    """Blank out the numbers before the lines of a text that count them, page by page; it keeps its length and lines."""
    lines, run, counted = text.split("\n"), list[Counted](), list[Counted]()
    for at, line in enumerate([*lines, ""]):
        found = _COUNTED.fullmatch(line)
        goes_on = found and run and int(found[1]) == run[-1].number + 1
        if run and not goes_on and (line.strip() or at == len(lines)):
            counted += lines_counted(run) if len(run) >= _FEWEST_OF_TEXT else []
            run = []
        if found:
            run.append(Counted(at, int(found[1]), found[2] or ""))
    for at, *_ in counted:
        lines[at] = _DIGITS.sub(lambda digits: " " * len(digits[0]), lines[at], count=1)
    return "\n".join(lines)
