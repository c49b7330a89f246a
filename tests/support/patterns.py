"""Every pattern of the package with how it is used, and texts that are made from its own syntax to take it long."""

import ast
import importlib
import itertools
import pkgutil
import random
import re
import re._constants as codes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import local_rag

_SCANS = frozenset({"search", "finditer", "findall", "sub", "subn", "split"})
_ANCHORED = frozenset({"match", "fullmatch"})
_MANY = 20  # a repeat of more cannot be called bounded
# What stands for all other characters: of each kind that patterns tell apart, one or two.
_CHARACTERS = (
    "aAzZbx019 \t\n\r-.,:;!?'\"()[]{}<>|/\\_*#=~`@&%$+^\u00e9\u3042\u2013\u2019\u00bd\u0663\u200b\u00a0\u20ac\x00"
)
_CHANCE = 11


@dataclass(frozen=True, slots=True)
class Used:
    """A pattern, where it stands, and the methods that are called on it."""

    pattern: re.Pattern[Any]
    where: str
    methods: frozenset[str]

    @property
    def scans(self) -> bool:
        """Whether it is tried at each place of a text."""
        return bool(self.methods & _SCANS)


def modules() -> Iterator[ModuleType]:
    """Yield the modules of the package that can be imported here, which extras may be missing for."""
    for found in pkgutil.walk_packages(local_rag.__path__, "local_rag."):
        if not found.name.endswith("__main__"):
            try:
                yield importlib.import_module(found.name)
            except ImportError:
                continue


def used_patterns() -> tuple[list[Used], list[str]]:
    """Return the patterns of the package, and the places that make one of what they are given."""
    named: dict[int, tuple[re.Pattern[Any], str, set[str]]] = {}
    inline, built = list[Used](), list[str]()
    trees = [(module, ast.parse(_source(module))) for module in modules()]
    for module, _ in trees:
        for name, value in list(vars(module).items()):
            for pattern in _patterns_in(value):
                named.setdefault(id(pattern), (pattern, f"{module.__name__}.{name}", set()))
    for module, tree in trees:
        short = module.__name__.removeprefix("local_rag.")
        called = {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                for pattern in _patterns_in(vars(module).get(node.id)):
                    method = called.get(id(node), "")
                    found = {method} if method in _SCANS | _ANCHORED else _SCANS | _ANCHORED
                    named[id(pattern)][2].update(found)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_re(node.func.value):
                if node.func.attr in {"escape"}:
                    continue
                made = _evaluated(node, node.func.attr, module)
                place = f"{short}:{node.lineno}"
                if made is None:
                    built.append(f"{short}: {ast.unparse(node)}")
                elif node.func.attr != "compile":
                    inline.append(Used(made, place, frozenset({node.func.attr})))
                elif id(made) not in named:
                    inline.append(Used(made, place, _SCANS | _ANCHORED))
    every = [Used(pattern, where, frozenset(methods)) for pattern, where, methods in named.values() if methods]
    return [*every, *inline], built


def _source(module: ModuleType) -> str:
    return Path(str(module.__file__)).read_text(encoding="utf-8")


def _patterns_in(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (list, tuple, set, frozenset)):
        for one in value:
            yield from _patterns_in(one)
    elif isinstance(value, dict):
        yield from _patterns_in([*value, *value.values()])


def _is_re(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "re"


def _evaluated(node: ast.Call, method: str, module: ModuleType) -> re.Pattern[Any] | None:
    """Return the pattern of a call if it depends on the module alone."""
    flags = [word.value for word in node.keywords if word.arg == "flags"]
    at = {"sub": 4, "split": 3, "compile": 1}.get(method, 2)
    flags += node.args[at : at + 1]
    try:
        text, *given = (eval(ast.unparse(one), dict(vars(module))) for one in (node.args[0], *flags))
        return re.compile(text, *given)
    except (NameError, AttributeError, TypeError):
        return None


# --- texts that take a pattern long


class Pumps:
    """The texts for one pattern: what its repeats repeat, with what may stand before, in all combinations of a few."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self._chance = random.Random(_CHANCE)
        text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
        flags = pattern.flags & ~re.DEBUG
        self._ignores_case = bool(flags & re.IGNORECASE)
        self._tree = parser.parse(text, flags | re.UNICODE)
        literals = {chr(value) for value in _literals(self._tree)}
        self._characters = [*dict.fromkeys([*sorted(literals)[:80], *_CHARACTERS])]
        sets = [
            frozenset(filter(lambda one: self._takes(node, one), self._characters)) for node in _singles(self._tree)
        ]
        kinds: dict[tuple[bool, ...], str] = {}
        for one in self._characters:
            kinds.setdefault(tuple(one in every for every in sets), one)
        self._kinds = list(kinds.values())

    def words(self) -> list[tuple[str, str, str]]:
        """Return what stands before, what is repeated, and what ends a text."""
        found: dict[tuple[str, str, str], None] = {}
        ends = ["", "\x00", *self._chance.sample(self._kinds, min(2, len(self._kinds)))]

        def put(before: str, pump: str) -> None:
            if pump:
                for end in ends:
                    found.setdefault((before, pump, end))

        for one in self._kinds:
            put("", one)
        for before, body in self._repeats(self._tree, [""]):
            words = self._samples(body, 12)
            for word in words:
                for first in before[:4]:
                    put(first, word)
            for pair in self._few(itertools.product(words, words), 12):
                put(before[0], "".join(pair))
        partial = self._partial(self._tree)
        for word in partial:
            put("", word)
        for pair in self._few(itertools.product(self._kinds, self._kinds), 150):
            put("", "".join(pair))
        for triple in self._few(itertools.product(self._kinds, self._kinds, self._kinds), 50):
            put("", "".join(triple))
        for pair in self._few(itertools.product(partial, self._kinds), 60):
            put("", "".join(pair))
        return list(found)

    def halves(self) -> list[tuple[str, str]]:
        """Return pairs of what is repeated in the first half of a text and in the second."""
        words = [word for _, body in self._repeats(self._tree, [""]) for word in self._samples(body, 3) if word]
        words = [*dict.fromkeys([*words, *self._partial(self._tree)[:20]])]
        return self._few(itertools.product(words, words), 60)

    def _few(self, every: Iterable[Any], most: int) -> list[Any]:
        listed = list(itertools.islice(every, 20_000))
        return listed if len(listed) <= most else self._chance.sample(listed, most)

    def _takes(self, node: tuple[Any, Any], one: str) -> bool:
        forms = {one, one.lower(), one.upper()} if self._ignores_case else {one}
        return any(_takes(node, form) for form in forms if len(form) == 1)

    def _samples(self, tree: Sequence[tuple[Any, Any]], most: int) -> list[str]:
        """Return a few texts that a sequence matches, apart from what it looks at around it."""
        found = [""]
        for node in tree:
            options = self._options(node)
            found = [*dict.fromkeys(left + right for left, right in self._few(itertools.product(found, options), most))]
        return found

    def _options(self, node: tuple[Any, Any]) -> list[str]:  # noqa: PLR0911  one case for each kind of node
        code, value = node
        if code in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN):
            taken = [one for one in self._kinds if self._takes(node, one)]
            return self._few(taken, 6) or [chr(value) if code is codes.LITERAL else "a"]
        if code is codes.BRANCH:
            return [text for branch in self._few(value[1], 14) for text in self._samples(branch, 3)]
        if code is codes.SUBPATTERN:
            return self._samples(value[3], 10)
        if code is codes.ATOMIC_GROUP:
            return self._samples(value, 10)
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            least, most, body = value
            once = self._samples(body, 5)
            counts = {min(least, 5), min(least + 1, most, 5)}
            return [*dict.fromkeys(word * count for count in sorted(counts) for word in once)]
        if code is codes.GROUPREF_EXISTS:
            return [*self._samples(value[1], 3), *(self._samples(value[2], 3) if value[2] else [""])]
        return [""]

    def _repeats(self, tree: Sequence[tuple[Any, Any]], before: list[str]) -> Iterator[tuple[list[str], Any]]:
        """Yield the repeats with many turns, with texts that come before them."""
        for at, node in enumerate(tree):
            code, value = node
            leads = self._few(itertools.product(before, self._samples(tree[:at], 4)), 6)
            lead = [*dict.fromkeys(map("".join, leads))]
            if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
                if value[1] > _MANY:
                    yield lead, value[2]
                yield from self._repeats(value[2], lead)
            elif code is codes.BRANCH:
                for branch in value[1]:
                    yield from self._repeats(branch, lead)
            elif code is codes.SUBPATTERN:
                yield from self._repeats(value[3], lead)
            elif code is codes.ATOMIC_GROUP:
                yield from self._repeats(value, lead)
            elif code in (codes.ASSERT, codes.ASSERT_NOT):
                yield from self._repeats(value[1], lead)
            elif code is codes.GROUPREF_EXISTS:
                for branch in filter(None, value[1:]):
                    yield from self._repeats(branch, lead)

    def _partial(self, tree: Sequence[tuple[Any, Any]]) -> list[str]:
        """Return texts that the beginnings of the pattern match: each makes a scan begin anew."""
        found: dict[str, None] = {}
        for at in range(1, len(tree) + 1):
            found.update(dict.fromkeys(self._samples(tree[:at], 6)))
        for code, value in tree:
            if code is codes.BRANCH:
                for branch in value[1]:
                    found.update(dict.fromkeys(self._partial(branch)[:12]))
            elif code is codes.SUBPATTERN:
                found.update(dict.fromkeys(self._partial(value[3])[:60]))
        return [word for word in found if word]


def _walk(tree: Sequence[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    for code, value in tree:
        yield code, value
        if code is codes.BRANCH:
            for branch in value[1]:
                yield from _walk(branch)
        elif code is codes.SUBPATTERN:
            yield from _walk(value[3])
        elif code is codes.ATOMIC_GROUP:
            yield from _walk(value)
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield from _walk(value[2])
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from _walk(value[1])
        elif code is codes.GROUPREF_EXISTS:
            for branch in filter(None, value[1:]):
                yield from _walk(branch)


def _singles(tree: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return [node for node in _walk(tree) if node[0] in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN)]


def _literals(tree: Sequence[tuple[Any, Any]]) -> Iterator[int]:
    for code, value in _walk(tree):
        if code in (codes.LITERAL, codes.NOT_LITERAL):
            yield value
        elif code is codes.IN:
            for inner, one in value:
                if inner is codes.LITERAL:
                    yield one
                elif inner is codes.RANGE:
                    yield one[0]


_CATEGORIES: dict[Any, Callable[[str], object]] = {
    codes.CATEGORY_DIGIT: re.compile(r"\d").match,
    codes.CATEGORY_NOT_DIGIT: re.compile(r"\D").match,
    codes.CATEGORY_SPACE: re.compile(r"\s").match,
    codes.CATEGORY_NOT_SPACE: re.compile(r"\S").match,
    codes.CATEGORY_WORD: re.compile(r"\w").match,
    codes.CATEGORY_NOT_WORD: re.compile(r"\W").match,
}


def _takes(node: tuple[Any, Any], one: str) -> bool:
    code, value = node
    if code is codes.LITERAL:
        return bool(ord(one) == value)
    if code is codes.NOT_LITERAL:
        return bool(ord(one) != value)
    if code is codes.ANY:
        return bool(one != "\n")
    negated = bool(value) and value[0][0] is codes.NEGATE
    taken = any(
        (inner is codes.LITERAL and ord(one) == item)
        or (inner is codes.RANGE and item[0] <= ord(one) <= item[1])
        or (inner is codes.CATEGORY and bool(_CATEGORIES[item](one)))
        for inner, item in value
    )
    return taken is not negated
