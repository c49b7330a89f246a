"""Find the lines of a text that are headings: those that Markdown marks, and those that nothing marks."""

import re
from itertools import pairwise

HEADING_SIGNS = re.compile(r"#{1,6}\s")  # of Markdown, where a line begins
_LONGEST, _FEWEST = 80, 40  # characters of a heading, and of the longest line of a text that has any
_SHORTER, _FULL = 0.6, 0.8  # of the longest line: one that ends before the line is full, and one that is full
_ENDED = re.compile(r"[.!?:;\u2026)\"\u201d\u2019|]\s*\Z")
_SAYS = re.compile(r"[.!?;|\u2013-]\Z|[:,\d]")  # "Dear Ida,", "Total 450 EUR"
_NUMBERED = re.compile(r"(?:\d{1,2}(?:\.\d{1,2}){0,3}\.?|[IVX]{1,5}\.|\u00a7 ?\d{1,3}) {1,3}(?=[^\W\d_a-z])")
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_BEGINS = re.compile(r"[^\W\d_a-z]")


def heading_lines(text: str) -> set[int]:
    """Return where the lines begin that stand like a heading over a sentence: short, alone, and no sentence.

    The line before ends a sentence or is blank, unless the heading has a number, and the next one begins a sentence or
    is the first row of a table.
    """
    lines = [(match.start(), match[0].strip()) for match in _LINE.finditer(text)]
    longest = max((len(line) for _, line in lines), default=0)
    if longest < _FEWEST:
        return set()
    filled = [index for index, (_, line) in enumerate(lines) if line]
    found = set[int]()
    for index, after in pairwise(filled):
        (start, line), (_, following) = lines[index], lines[after]
        before = lines[index - 1][1] if index else ""
        number = _NUMBERED.match(line)
        is_short = len(line) <= min(_LONGEST, _SHORTER * longest) and len(line) < len(following)
        is_apart = number or (_BEGINS.match(line) and (not before or _ENDED.search(before)))
        is_full = _ENDED.search(following) or len(following) >= _FULL * longest
        is_over = following.startswith("|") or (_BEGINS.match(following) and is_full)  # a table, or a sentence
        if is_short and is_apart and is_over and not _SAYS.search(line, number.end() if number else 0):
            found.add(start)
    return found
