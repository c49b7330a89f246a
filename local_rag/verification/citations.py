"""Check the citations of an answer as it is written."""

import itertools
import re
from collections.abc import Iterator, Sequence

from local_rag.records import Passage

# A bracket and its content. The bound limits how much text is held back while the bracket is open.
_OPEN, _CLOSED, _HELD = r"[\[\u3010\uff3b]", r"[\]\u3011\uff3d]", r"[\d\s,;:&#acdenorsu\u2013\u2014-]{0,60}"
_ITEM = r"(?:sources?\s*[:#]?|#)?\s*(\d{1,4})(?:\s*[\u2013\u2014-]\s*(\d{1,4}))?"
_ITEMS = re.compile(rf"\s*{_ITEM}(?:\s*(?:[,;&]|[,;]?\s*and)\s*{_ITEM})*\s*", re.IGNORECASE)
_RANGE = re.compile(_ITEM, re.IGNORECASE)
# What to search for next: outside code, and inside code by the mark that opened it. A code span ends with its line.
_SPAN_END = re.compile(r"`{1,3}|\s{0,98}(?=\n)")
_NEXT = {
    "": re.compile(rf"\s{{0,99}}({_OPEN})({_HELD}){_CLOSED}|`{{1,3}}", re.IGNORECASE),
    "`": _SPAN_END,
    "``": _SPAN_END,
    "```": re.compile("```"),
}
_MAY_COME = re.compile(rf"(?:\s{{0,99}}(?:{_OPEN}{_HELD})?|`{{1,2}})\Z", re.IGNORECASE)
_LARGEST_NUMBER = 99  # of a source that does not exist; a larger number is a year or something similar
_WORD = re.compile(r"\w+")


class CitationCheck:
    """Pass on an answer's text piece by piece, without the numbers that name no source.

    `cited` holds the numbers that name a source, and `removed` those that do not, both in their order in the text.
    `removed_at` holds the length of the text before each removed number.
    """

    def __init__(self, sources: int) -> None:
        self._sources = sources
        self.cited: list[int] = []
        self.removed: list[int] = []
        self.removed_at: list[int] = []

    def __call__(self, pieces: Iterator[str]) -> Iterator[str]:
        """Yield the checked pieces; the first one does not begin with white space."""
        length = 0
        for text, found in find_citations(pieces):
            numbers = found if max(found, default=0) <= max(self._sources, _LARGEST_NUMBER) else []
            valid = [number for number in numbers if 1 <= number <= self._sources]
            self.cited += valid
            removed = [number for number in numbers if number not in valid]
            self.removed += removed
            self.removed_at += [length] * len(removed)
            checked = f" [{', '.join(map(str, dict.fromkeys(valid)))}]" if valid else "" if numbers else text
            checked = checked if length else checked.lstrip()
            if checked:
                length += len(checked)
                yield checked


def find_citations(pieces: Iterator[str]) -> Iterator[tuple[str, list[int]]]:
    """Yield an answer's text piece by piece, each citation as a separate piece with its numbers.

    Text that may be the beginning of a citation or of code, where nothing is a citation, is held back until it is
    clear what it is.
    """
    text, done, cited, code = "", 0, -1, ""
    for piece in itertools.chain(pieces, (None,)):
        text += piece or ""
        while (match := _NEXT[code].search(text, done)) and (piece is None or match.end() < len(text)):
            start, end = match.span()
            numbers = _numbers(match, cited)
            if numbers:
                cited = end
            elif "`" in match[0]:
                code, start = "" if code == match[0] else code or match[0], end
            elif code:  # its line ends
                code, end = "", start
            else:
                start = end
            if start > done:
                yield text[done:start], []
            if end > start:
                yield text[start:end], numbers
            done = end
        match = match or _MAY_COME.search(text, done)
        end = match.start() if match and piece is not None else len(text.rstrip())
        if end > done:
            yield text[done:end], []
            done = end


def _numbers(match: re.Match[str], cited: int) -> list[int]:
    """Return the numbers in a bracket, or none if it is not a citation; the previous citation ended at `cited`."""
    if not match.lastindex or not _ITEMS.fullmatch(match[2]):
        return []
    text, start, end = match.string, match.start(1), match.end()
    if match[1] == "[" and ((start != cited and _joins(text[start - 1 : start], ")]}")) or _joins(text[end : end + 1])):
        return []
    ranges = [(int(first), int(last or first)) for first, last in _RANGE.findall(match[2])]
    numbers = [number for first, last in ranges for number in range(first, last + 1)]
    return numbers if 0 not in numbers or numbers == [0] else []


def _joins(character: str, others: str = "") -> bool:
    """Return whether a character, which may be empty, forms one word or expression with the bracket next to it.

    Letters without case do not, because scripts without case are also written without spaces.
    """
    return character.isdecimal() or character.swapcase() != character or (character != "" and character in f"_{others}")


def most_similar_source(text: str, passages: Sequence[Passage]) -> int | None:
    """Return the number of the source that shares the most words with an uncited answer; None if no source does."""
    words = {word.lower() for word in _WORD.findall(text)}
    shared = [len(words & {word.lower() for word in _WORD.findall(passage.text)}) for passage in passages]
    return shared.index(max(shared)) + 1 if any(shared) else None
