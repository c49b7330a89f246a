"""Texts that are made from the syntax of a pattern, to take it long: many times what its parts match."""

import itertools
import math
import random
import re
import re._constants as codes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_MANY = 20  # turns; a repeat of fewer is bounded
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_SINGLES = (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN)
# What stands for all other characters: of each kind that patterns tell apart, one or two.
_CHARACTERS = (
    "aAzZbx019 \t\n\r-.,:;!?'\"()[]{}<>|/\\_*#=~`@&%$+^\u00e9\u3042\u2013\u2019\u00bd\u0663\u200b\u00a0\u20ac\x00"
)
_CHANCE, _MOST_PUMPS = 11, 300
_NO = "\x00"  # what hardly a pattern takes, so that it must look for another way
_Node = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Pump:
    """A text of any length: what stands before, what is repeated in its two halves, and what ends it."""

    before: str
    first: str
    second: str
    end: str

    def text(self, length: int) -> str:
        """Return the text of about so many characters."""
        halves = (self.first,) if self.first == self.second else (self.first, self.second)
        return self.before + "".join(half * (length // len(halves) // len(half)) for half in halves) + self.end


def pumps(pattern: re.Pattern[Any]) -> list[Pump]:
    """Return the texts to try a pattern on."""
    return _Pattern(pattern).pumps()


class _Pattern:
    """The parse tree of a pattern, with one character of each kind that it tells apart."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self._chance = random.Random(_CHANCE)
        is_text = isinstance(pattern.pattern, str)
        text = pattern.pattern if is_text else pattern.pattern.decode("latin-1")
        self._ignores_case = bool(pattern.flags & re.IGNORECASE)
        self._matches_lines = bool(pattern.flags & re.DOTALL)
        self._tree = parser.parse(text, pattern.flags & ~re.DEBUG & ~re.UNICODE)
        characters = [*dict.fromkeys([*sorted({chr(value) for value in _literals(self._tree)})[:80], *_CHARACTERS])]
        if not is_text:
            characters = [one for one in characters if ord(one) < 256]
        singles = {str(node): node for node in _walk(self._tree) if node[0] in _SINGLES}.values()
        kinds: dict[tuple[bool, ...], str] = {}
        for one in characters:
            kinds.setdefault(tuple(self._takes(node, one) for node in singles), one)
        self._kinds = list(kinds.values())
        self._taken: dict[object, list[str]] = {}  # of these, by what takes them

    def pumps(self) -> list[Pump]:
        made: dict[Pump, None] = {}

        def put(before: str, first: str, second: str = "", ends: Sequence[str] = (_NO,)) -> None:
            if first:
                made.update(dict.fromkeys(Pump(before, first, second or first, end) for end in ends))

        other = ["", _NO, *self._few(self._kinds, 1)]
        for one in self._kinds:
            put("", one, ends=other)
        turns = list[str]()
        for before, body in self._repeats(self._tree, [""]):
            words = [word for word in self._samples(body, 8) if word]
            turns += words[:3]
            for word in words:
                put(before[0], word, ends=other)
                for lead in before[1:3]:
                    put(lead, word)
            for pair in self._mixed(words, words, most=8):
                put(before[0], pair)
        beginnings = self._beginnings(self._tree)
        for word in self._few(beginnings, 60):
            put("", word)
        for parts, count in (([self._kinds] * 2, 60), ([self._kinds] * 3, 20), ([beginnings, self._kinds], 30)):
            for text in self._mixed(*parts, most=count):
                put("", text)
        halves = [*dict.fromkeys([*turns, *beginnings[:20]])]
        for first in self._few(halves, 6):
            for second in self._few(halves, 5):
                put("", first, second)
        return self._few(made, _MOST_PUMPS)

    def _few(self, every: Iterable[Any], most: int) -> list[Any]:
        listed = list(every)
        return listed if len(listed) <= most else self._chance.sample(listed, most)

    def _mixed(self, *lists: Sequence[str], most: int) -> list[str]:
        """Return a few texts that are joined of one of each list."""
        if math.prod(map(len, lists)) <= most:
            return ["".join(parts) for parts in itertools.product(*lists)]
        return ["".join(map(self._chance.choice, lists)) for _ in range(most)]

    def _takes(self, node: _Node, one: str) -> bool:
        forms = {one, one.lower(), one.upper()} if self._ignores_case else {one}
        return any(self._takes_form(node, form) for form in forms if len(form) == 1)

    def _takes_form(self, node: _Node, one: str) -> bool:
        code, value = node
        if code in (codes.LITERAL, codes.NOT_LITERAL):
            return (ord(one) == value) is (code is codes.LITERAL)
        if code is codes.ANY:
            return self._matches_lines or one != "\n"
        negated = bool(value) and value[0][0] is codes.NEGATE
        taken = any(
            (inner is codes.LITERAL and ord(one) == item)
            or (inner is codes.RANGE and item[0] <= ord(one) <= item[1])
            or (inner is codes.CATEGORY and bool(_CATEGORIES[item](one)))
            for inner, item in value
        )
        return taken is not negated

    def _samples(self, tree: Sequence[_Node], most: int) -> list[str]:
        """Return a few texts that a sequence matches, apart from what it looks at around it."""
        texts = [""]
        for node in tree:
            texts = [*dict.fromkeys(self._mixed(texts, self._options(node), most=most))]
        return texts

    def _options(self, node: _Node) -> list[str]:
        code, value = node
        if code in _SINGLES:
            key = code, tuple(value) if isinstance(value, list) else value
            if key not in self._taken:
                self._taken[key] = [one for one in self._kinds if self._takes(node, one)]
            return self._few(self._taken[key], 6) or [chr(value) if code is codes.LITERAL else "a"]
        if code in _REPEATS:
            least, most, body = value
            counts = sorted({min(least, 5), min(least + 1, most, 5)})
            return [*dict.fromkeys(word * count for count in counts for word in self._samples(body, 5))]
        if code in (codes.ASSERT, codes.ASSERT_NOT):
            return [""]
        return [text for inner in self._few(_inner(node), 14) for text in self._samples(inner, 5)] or [""]

    def _repeats(self, tree: Sequence[_Node], before: list[str]) -> Iterator[tuple[list[str], Any]]:
        """Yield the repeats with many turns, with texts that come before them."""
        for at, node in enumerate(tree):
            lead = [*dict.fromkeys(self._mixed(before, self._samples(tree[:at], 4), most=6))]
            if node[0] in _REPEATS and node[1][1] > _MANY:
                yield lead, node[1][2]
            for inner in _inner(node):
                yield from self._repeats(inner, lead)

    def _beginnings(self, tree: Sequence[_Node]) -> list[str]:
        """Return texts that the beginnings of the pattern match: each makes a scan begin anew."""
        texts: dict[str, None] = {}
        for at in range(1, len(tree) + 1):
            texts.update(dict.fromkeys(self._samples(tree[:at], 6)))
        for node in tree:
            if node[0] not in _REPEATS:
                for inner in _inner(node):
                    texts.update(dict.fromkeys(self._beginnings(inner)[:60]))
        return [word for word in texts if word]


def _inner(node: _Node) -> list[Sequence[_Node]]:
    """Return the sequences within a node."""
    code, value = node
    if code is codes.BRANCH:
        return list(value[1])
    if code is codes.GROUPREF_EXISTS:
        return [branch for branch in value[1:] if branch]
    if code is codes.ATOMIC_GROUP:
        return [value]
    at = {codes.SUBPATTERN: 3, codes.ASSERT: 1, codes.ASSERT_NOT: 1, **dict.fromkeys(_REPEATS, 2)}.get(code)
    return [] if at is None else [value[at]]


def _walk(tree: Sequence[_Node]) -> Iterator[_Node]:
    for node in tree:
        yield node
        for inner in _inner(node):
            yield from _walk(inner)


def _literals(tree: Sequence[_Node]) -> Iterator[int]:
    for code, value in _walk(tree):
        if code in (codes.LITERAL, codes.NOT_LITERAL):
            yield value
        elif code is codes.IN:
            yield from (item if inner is codes.LITERAL else item[0] for inner, item in value if inner in _ORDINALS)


_ORDINALS = (codes.LITERAL, codes.RANGE)
_CATEGORIES: dict[Any, Callable[[str], object]] = {
    codes.CATEGORY_DIGIT: re.compile(r"\d").match,
    codes.CATEGORY_NOT_DIGIT: re.compile(r"\D").match,
    codes.CATEGORY_SPACE: re.compile(r"\s").match,
    codes.CATEGORY_NOT_SPACE: re.compile(r"\S").match,
    codes.CATEGORY_WORD: re.compile(r"\w").match,
    codes.CATEGORY_NOT_WORD: re.compile(r"\W").match,
}
