"""Find the structure of source code: its definitions and the best offsets to cut it."""

import ast
import re
import warnings
from collections.abc import Iterator
from itertools import accumulate

from local_rag.reading.syntax_trees import outline_of
from local_rag.records import Heading

_DEEPEST = 40  # bounds the recursion over odd indentation
_AFTER_BLANK_LINE = re.compile(r"(?:\A|\n[^\S\n]*\n)(?P<indent>[^\S\n]*)(?=\S)")


def line_starts(text: str) -> list[int]:
    """Return the offset of each line."""
    return [0, *accumulate(len(line) + 1 for line in text.split("\n"))][:-1]


def find_definitions(text: str, language: str | None) -> tuple[Heading, ...]:
    """Return classes and functions as headings, which put a chunk under `class Foo > def bar`."""
    if language != "python":
        outline = outline_of(text, language)
        return outline.definitions if outline else ()
    headings, lines = [], line_starts(text)
    for node, start, _, level in _statements(text):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            kind = "class" if isinstance(node, ast.ClassDef) else "def"
            end = lines[node.end_lineno] if node.end_lineno and node.end_lineno < len(lines) else len(text)
            headings.append(Heading(level=level + 1, title=f"{kind} {node.name}", start=start, end=end))
    return tuple(headings)


def find_boundaries(text: str, language: str | None) -> list[tuple[int, int]]:
    """Return the offsets of code units with their depths; outer units are cut before inner ones.

    In Python, the units are statements. In a language with a grammar, they are definitions and statements. In other
    languages, and in invalid Python, a unit starts after a blank line and its depth is its indentation.
    """
    if language == "python":
        boundaries = sorted((start, depth) for _, start, depth, _ in _statements(text))
    else:
        outline = outline_of(text, language)
        boundaries = list(outline.boundaries) if outline else []
    return boundaries or [
        (found.start("indent"), min(len(found["indent"].expandtabs()), _DEEPEST))
        for found in _AFTER_BLANK_LINE.finditer(text)
    ]


def _statements(text: str) -> Iterator[tuple[ast.stmt, int, int, int]]:
    """Yield Python's statements in order: node, offset, depth among statements, depth among definitions."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # do not report invalid escapes in the user's code
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
    """Return the first line (from 0) of a statement, including its decorators and the comment above it."""
    line: int = min(part.lineno for part in (node, *getattr(node, "decorator_list", ()))) - 1
    while line > 0 and lines[line - 1].lstrip().startswith("#"):
        line -= 1
    return line
