"""The patterns of the package, each with the ways in which the package uses it."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import local_rag

_SCANS = frozenset({"search", "finditer", "findall", "sub", "subn", "split"})
_ANCHORED = frozenset({"match", "fullmatch"})
_METHODS = _SCANS | _ANCHORED | {"compile"}
UNBOUNDED = 200_000  # characters that stand for any number
Ways = dict[str, int]
_PACKAGE = local_rag.__name__ + "."


@dataclass(frozen=True, slots=True)
class Used:
    """A pattern, where it stands, and its ways, `scan`, `match` or `fullmatch`, each with how much text it sees."""

    pattern: re.Pattern[Any]
    where: str
    ways: Ways

    def add(self, ways: Ways) -> None:
        """Note further ways; of one that is known, the longer text counts."""
        self.ways.update({way: max(most, self.ways.get(way, 0)) for way, most in ways.items()})


def used_patterns() -> tuple[list[Used], set[str]]:
    """Return the patterns of the package, and the functions that make one of what they are given, `module.function`."""
    modules = list(_modules())
    named: dict[tuple[object, int], Used] = {}
    for module in modules:
        for name, value in list(vars(module).items()):
            for pattern in _patterns_in(value):
                named.setdefault((pattern.pattern, pattern.flags), Used(pattern, f"{_short(module)}.{name}", {}))
    inline, made = list[Used](), set[str]()
    for module in modules:
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        for node, function, ways in _uses(tree, module):
            if isinstance(node, ast.Call):  # re.METHOD(pattern, ...)
                written = _evaluated(node, module)
                if written is not None and (written.pattern, written.flags) not in named:
                    inline.append(Used(written, f"{_short(module)}.{function}", ways))
                elif written is None and function:
                    made.add(f"{_short(module)}.{function}")
            else:
                for pattern in _patterns_in(_value(node, module)):
                    if known := named.get((pattern.pattern, pattern.flags)):
                        known.add(ways)
    return [*named.values(), *inline], made


def _modules() -> Iterator[ModuleType]:
    """Yield the modules of the package that can be imported here; some need packages of an extra."""
    for found in pkgutil.walk_packages(local_rag.__path__, _PACKAGE):
        if not found.name.endswith("__main__"):
            try:
                yield importlib.import_module(found.name)
            except ImportError:
                continue


def _short(module: ModuleType) -> str:
    return module.__name__.removeprefix(_PACKAGE)


def _patterns_in(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _patterns_in(item)
    elif isinstance(value, dict):
        yield from _patterns_in([*value, *value.values()])


def _uses(tree: ast.AST, module: ModuleType, function: str = "") -> Iterator[tuple[ast.expr, str, Ways]]:
    """Yield the names and the calls of `re` in a module, each with its function and with the ways of its use."""
    for node in ast.iter_child_nodes(tree):
        inner = function
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            inner = f"{function}.{node.name}".strip(".")
        if (used := _call(node, module)) is not None:
            assert isinstance(node, ast.Call)
            yield used[0], inner, used[1]
            for argument in [*node.args, *(word.value for word in node.keywords)]:
                yield from _uses(ast.Expr(argument), module, inner)
            continue
        if isinstance(node, ast.Attribute) and node.attr in _METHODS and isinstance(node.value, ast.Name):
            yield node.value, inner, _ways(node.attr, [], module)  # map(_PATTERN.match, lines)
            continue
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            yield node, inner, _ways("", [], module)
        yield from _uses(node, module, inner)


def _call(node: ast.AST, module: ModuleType) -> tuple[ast.expr, Ways] | None:
    """Return the call of a function of `re`, or the pattern whose method is called, with the ways of this use."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS):
        return None
    method, target = node.func.attr, node.func.value
    if isinstance(target, ast.Name) and target.id == "re":
        return node, _ways(method, node.args[1 : 3 if method in {"sub", "subn"} else 2], module)
    if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
        return target, _ways(method, node.args, module)
    return None


def _ways(method: str, arguments: list[ast.expr], module: ModuleType) -> Ways:
    """Return the ways of a use, each with the most characters that it sees; what is handed on may be used in all."""
    text = arguments[1:2] if method in {"sub", "subn"} else arguments[:1]
    most = _bound(text[0], module) if text else UNBOUNDED
    if method in _SCANS or (method == "match" and len(arguments) > 1):  # match(text, at) goes on through a text
        return {"scan": most}
    return {method: most} if method in _ANCHORED else dict.fromkeys(["scan", *_ANCHORED], most)


def _bound(text: ast.expr, module: ModuleType) -> int:
    """Return how many characters `text[:most]` or `text[-most:]` has at most."""
    if isinstance(text, ast.Subscript) and isinstance(cut := text.slice, ast.Slice) and not cut.step:
        if cut.upper and not cut.lower and isinstance(most := _constant(cut.upper, module), int) and most > 0:
            return most
        if cut.lower and not cut.upper and isinstance(most := _constant(cut.lower, module), int) and most < 0:
            return -most
    return UNBOUNDED


def _constant(node: ast.expr, module: ModuleType) -> object:
    """Return the value of an expression that depends on the module alone, None of any other."""
    try:
        return eval(ast.unparse(node), dict(vars(module)))
    except (NameError, AttributeError, TypeError):
        return None


def _value(node: ast.expr, module: ModuleType) -> object:
    """Return what a name of a module stands for, or a name of another module that it has imported."""
    if isinstance(node, ast.Name):
        return vars(module).get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = vars(module).get(node.value.id)
        return vars(owner).get(node.attr) if isinstance(owner, ModuleType) else None
    if isinstance(node, ast.Subscript):
        return _value(node.value, module)
    return None


def _evaluated(node: ast.Call, module: ModuleType) -> re.Pattern[Any] | None:
    """Return the pattern of a call if it depends on the module alone."""
    assert isinstance(node.func, ast.Attribute)
    at = {"sub": 4, "subn": 4, "split": 3, "compile": 1}.get(node.func.attr, 2)
    flags = [word.value for word in node.keywords if word.arg == "flags"] + node.args[at : at + 1]
    text, *given = (_constant(part, module) for part in (node.args[0], *flags))
    if None in given or not isinstance(text, (str, bytes)):
        return None
    kinds = [kind for kind in given if isinstance(kind, int)]
    return re.compile(cast(Any, text), *kinds)
