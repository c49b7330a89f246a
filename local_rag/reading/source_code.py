"""Find the structure of source code: its definitions, and the places where it is best cut."""

import ast
import re
import warnings
from collections.abc import Iterator
from itertools import accumulate

from local_rag.records import Heading

_LANGUAGES = {
    "c": ".c .h",
    "c#": ".cs",
    "c++": ".cc .cpp .cxx .hpp .hh .hxx",
    "clojure": ".clj .cljs",
    "css": ".css .scss .less",
    "dart": ".dart",
    "elixir": ".ex .exs",
    "erlang": ".erl",
    "go": ".go",
    "graphql": ".graphql",
    "haskell": ".hs",
    "ini": ".ini .cfg .conf",
    "java": ".java",
    "javascript": ".js .jsx .mjs .cjs",
    "json": ".json",
    "julia": ".jl",
    "kotlin": ".kt .kts",
    "lua": ".lua",
    "objective-c": ".m .mm",
    "perl": ".pl .pm",
    "php": ".php",
    "powershell": ".ps1",
    "protobuf": ".proto",
    "python": ".py .pyi",
    "r": ".r",
    "ruby": ".rb",
    "rust": ".rs",
    "scala": ".scala",
    "shell": ".sh .bash .zsh .fish",
    "sql": ".sql",
    "swift": ".swift",
    "terraform": ".tf",
    "toml": ".toml",
    "typescript": ".ts .tsx",
    "xml": ".xml .xsd .xsl",
    "yaml": ".yaml .yml",
}
LANGUAGES = {suffix: language for language, suffixes in _LANGUAGES.items() for suffix in suffixes.split()}

_DEEPEST = 40  # bounds the recursion over odd indentation
_AFTER_BLANK_LINE = re.compile(r"(?:\A|\n[^\S\n]*\n)(?P<indent>[^\S\n]*)(?=\S)")


def line_starts(text: str) -> list[int]:
    """List the offset at which each line begins."""
    return [0, *accumulate(len(line) + 1 for line in text.split("\n"))][:-1]


def find_definitions(text: str) -> tuple[Heading, ...]:
    """List the classes and functions of Python as headings, so that a chunk knows `class Foo > def bar`."""
    headings = []
    for node, start, _, level in _statements(text):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            kind = "class" if isinstance(node, ast.ClassDef) else "def"
            headings.append(Heading(level=level + 1, title=f"{kind} {node.name}", start=start))
    return tuple(headings)


def find_boundaries(text: str, language: str | None) -> list[tuple[int, int]]:
    """List offsets where a new unit of code begins, each with its depth: outer units are cut apart before inner ones.

    In Python these are the statements; elsewhere, and where Python does not parse, the first lines after blank ones,
    with their indentation for depth.
    """
    statements = _statements(text) if language == "python" else ()
    boundaries = sorted((start, depth) for _, start, depth, _ in statements)
    return boundaries or [
        (found.start("indent"), min(len(found["indent"].expandtabs()), _DEEPEST))
        for found in _AFTER_BLANK_LINE.finditer(text)
    ]


def _statements(text: str) -> Iterator[tuple[ast.stmt, int, int, int]]:
    """Yield Python's statements in order: node, offset, depth among statements, depth among definitions."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in somebody's code is not ours to report
            module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines, starts = text.split("\n"), line_starts(text)
    waiting: list[tuple[ast.AST, int, int]] = [(module, -1, 0)]
    while waiting:
        node, depth, level = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node, starts[_first_line(node, lines)], depth, level
        children = [
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case)
        ]
        level += isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        waiting += [(child, depth + 1, level) for child in reversed(children)]


def _first_line(node: ast.stmt, lines: list[str]) -> int:
    """Count the line (from 0) at which a statement begins, with its decorators and the comment above it."""
    line: int = min(part.lineno for part in (node, *getattr(node, "decorator_list", ()))) - 1
    while line > 0 and lines[line - 1].lstrip().startswith("#"):
        line -= 1
    return line
