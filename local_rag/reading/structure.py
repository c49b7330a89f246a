"""Find the structure of source code, where it can be cut, and the headings of texts that are not Markdown."""

import ast
import importlib
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import accumulate
from typing import Any

from local_rag.document_records import Heading
from local_rag.reading.nesting import NESTED, find_entries, find_nested

_DEEPEST_INDENT = 40  # bounds the recursion over odd indentation
_AFTER_BLANK_LINE = re.compile(r"(?:\A|\n[^\S\n]*\n)(?P<indent>[^\S\n]*)(?=\S)")
# By language the grammars that are tried in turn, as module and function: the first one that fits is taken.
_GRAMMARS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "c": (("tree_sitter_c", "language"), ("tree_sitter_cpp", "language")),  # a .h may be either
    "c#": (("tree_sitter_c_sharp", "language"),),
    "c++": (("tree_sitter_cpp", "language"),),
    "go": (("tree_sitter_go", "language"),),
    "java": (("tree_sitter_java", "language"),),
    "javascript": (("tree_sitter_javascript", "language"),),
    "php": (("tree_sitter_php", "language_php"),),
    "ruby": (("tree_sitter_ruby", "language"),),
    "rust": (("tree_sitter_rust", "language"),),
    "typescript": (("tree_sitter_typescript", "language_typescript"), ("tree_sitter_typescript", "language_tsx")),
}
_KINDS = {
    "class": "class class_declaration abstract_class_declaration class_specifier",
    "constructor": "constructor_declaration",
    "enum": "enum_declaration enum_item enum_specifier",
    "function": "function_item function_declaration function_definition generator_function_declaration "
    "local_function_statement",
    "impl": "impl_item",
    "interface": "interface_declaration",
    "macro": "macro_definition",
    "method": "method_declaration method_definition method singleton_method",
    "module": "mod_item module internal_module",
    "namespace": "namespace_definition namespace_declaration file_scoped_namespace_declaration",
    "record": "record_declaration",
    "struct": "struct_item struct_specifier struct_declaration",
    "trait": "trait_item trait_declaration",
    "type": "type_spec type_alias_declaration",
    "union": "union_item union_specifier",
}
_KIND_OF = {node: kind for kind, nodes in _KINDS.items() for node in nodes.split()}
_BOUND = {"variable_declarator", "field_definition", "public_field_definition"}  # a function may be their value
_FUNCTIONS = {"arrow_function", "function_expression", "generator_function"}
_WITH_BODY = {"class_specifier", "enum_specifier", "struct_specifier", "union_specifier"}  # else they only name a type
_ABOVE = {"attribute_item", "decorator", "preproc_comment"}  # belong to what follows, as comments do
_RECEIVER = re.compile(r"(?<!\w)(\w++)\s*+(?:\[[^\[\]]*+\]\s*+)?\)\s*+$")
_CLOSING = {"", "{", "}", ")", "]"}  # begin no unit
_INDENT = re.compile(r"[^\S\n]*")
_LONGEST_NAME = 200  # characters
_LARGEST = 2_000_000  # characters: generated code is cut without a grammar
_DEEPEST, _ON_ONE_LINE = 200, 2  # nodes within nodes, at most and in those of one line
_LONGEST = 300  # characters of a heading
_RULE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*")
_ASCIIDOC = re.compile(
    r"^(?:(?P<block>-{4,}|\.{4,}|\+{4,}|/{4,})[ \t]*|(?P<level>={1,6})[ \t]+(?P<title>\S[^\n]{0,300}))$", re.MULTILINE
)
_ORG = re.compile(r"^(\*{1,8})[ \t]+(\S[^\n]{0,300})$", re.MULTILINE)
_LATEX_LEVELS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph")
_LATEX = re.compile(rf"^[ \t]*\\({'|'.join(_LATEX_LEVELS)})\*?(?:\[[^\]\n]{{0,300}}\])?\{{", re.MULTILINE)
_LATEX_COMMAND = re.compile(r"\\[A-Za-z]+\*?|[{}]|\\(?=\W)")


def line_starts(text: str) -> list[int]:
    """Return the offset of each line."""
    return [0, *accumulate(len(line) + 1 for line in text.split("\n"))][:-1]


def find_definitions(text: str, language: str | None) -> tuple[Heading, ...]:
    """Return classes, functions and what data nests as headings, which put a chunk under `class Foo > def bar`."""
    if language in NESTED:
        return find_nested(text, language)
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

    In Python, the units are statements. In a language with a grammar, they are definitions and statements. In data,
    they are sections, items and keys. Otherwise a unit starts after a blank line and its depth is its indentation.
    """
    if language == "python":
        boundaries = sorted((start, depth) for _, start, depth, _ in _statements(text))
    elif language in NESTED:
        entries = find_entries(text, language)
        boundaries = sorted({one.start: one.depth for one in reversed(entries)}.items())  # the outermost of a line
    else:
        outline = outline_of(text, language)
        boundaries = list(outline.boundaries) if outline else []
    return boundaries or [
        (found.start("indent"), min(len(found["indent"].expandtabs()), _DEEPEST_INDENT))
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


@dataclass(frozen=True, slots=True)
class Outline:
    """The classes and functions of a text, and the offsets at which it can be cut, with their depths."""

    definitions: tuple[Heading, ...]
    boundaries: tuple[tuple[int, int], ...]


@cache
def lacks_grammar(language: str | None) -> bool:
    """Return whether the grammar for a language is not installed."""
    names = ["tree_sitter", *(module for module, _ in _GRAMMARS.get(language or "", ()))]
    return len(names) > 1 and not all(map(find_spec, names))


@lru_cache(maxsize=1)
def outline_of(text: str, language: str | None) -> Outline | None:
    """Return the outline of source code; None without a grammar for its language."""
    grammars = _GRAMMARS.get(language or "")
    if not grammars or len(text) > _LARGEST or lacks_grammar(language):
        return None
    data = text.encode()
    trees = (_parser(*grammar).parse(data) for grammar in grammars)
    tree = next((one for one in trees if not one.root_node.has_error), None) or _parser(*grammars[0]).parse(data)
    walk = _Walk(text)
    walk.read(tree.root_node)
    definitions = sorted(walk.definitions.values(), key=lambda one: one.start)
    return Outline(tuple(definitions), tuple(sorted(walk.boundaries.items())))


@lru_cache(maxsize=16)
def _parser(module: str, function: str) -> Any:
    from tree_sitter import Language, Parser

    return Parser(Language(getattr(importlib.import_module(module), function)()))


class _Walk:
    """Collect the outline of a tree: what begins a line is a unit, within the unit that contains it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]
        self.boundaries: dict[int, int] = {}  # depth by offset
        self.definitions: dict[int, Heading] = {}  # by row

    def read(self, root: Any) -> None:
        """Read a tree, without recursion."""
        waiting = [(root, 0, 0, 0, 0)]
        while waiting:
            node, top, depth, level, nested = waiting.pop()
            for child, row in self._children(node):
                later = node is root or child.start_point.row > node.start_point.row
                begins = later and self._begins_unit(child, row, depth)
                row_above = row if begins else top  # what is within another unit has the comments of that
                inner_depth = depth + begins
                title = _title(child)
                inner_level = level + (bool(title) and self._define(child, row_above, title, level + 1))
                if nested < _DEEPEST and (child.end_point.row > child.start_point.row or nested < _ON_ONE_LINE):
                    waiting.append((child, row_above, inner_depth, inner_level, nested + 1))

    def _children(self, node: Any) -> Iterator[tuple[Any, int]]:
        """Yield what is in a node with the row where it begins: that of the comments and attributes right above it."""
        begun, last = -1, -2
        for child in node.named_children:
            if "parameters" in child.type:
                continue
            start = child.start_point.row
            row = begun if begun >= 0 and start <= last + 1 else start
            if "comment" in child.type or child.type in _ABOVE:
                begun, last = row, child.end_point.row - (child.end_point.column == 0)
            else:
                begun = -1
            yield child, row

    def _begins_unit(self, node: Any, row: int, depth: int) -> bool:
        """Record a node that begins a line, but for brackets; return whether what is in it is one level deeper."""
        found = _INDENT.match(self._text, self._lines[node.start_point.row])
        assert found is not None
        if node.start_point.column > len(found[0]) or self._text[found.end() : found.end() + 1] in _CLOSING:
            return False
        self.boundaries.setdefault(self._lines[row], depth)
        return True

    def _define(self, node: Any, row: int, title: str, level: int) -> bool:
        """Record a definition as a heading, the first one of a line."""
        if node.start_point.row in self.definitions:
            return False
        after = node.end_point.row + 1
        end = self._lines[after] if after < len(self._lines) else len(self._text)
        self.definitions[node.start_point.row] = Heading(level, title, self._lines[row], end)
        return True


def _title(node: Any) -> str:
    """Return what a class or function is called, with its kind; nothing for other nodes and those without a name."""
    kind = _KIND_OF.get(node.type)
    if node.type in _BOUND:
        value = node.child_by_field_name("value")
        bound = "function" if node.type == "variable_declarator" else "method"
        kind = bound if value and value.type in _FUNCTIONS else None
    if kind is None or (node.type in _WITH_BODY and node.child_by_field_name("body") is None):
        return ""
    name = _name(node)
    return f"{kind} {name}" if name else ""


def _name(node: Any) -> str:
    """Return the name of a definition, with its type if that stands beside it: `Server.Close`, `Shape for Circle`."""
    field = node.child_by_field_name
    if node.type == "impl_item":
        return " for ".join(_text(one) for one in (field("trait"), field("type")) if one)
    named = field("name") or field("property")
    if named is None:
        named = field("declarator")
        while named and (inner := named.child_by_field_name("declarator") or _last_declarator(named)):
            named = inner
    receiver = _RECEIVER.search(_text(field("receiver")))
    return f"{receiver[1]}.{_text(named)}" if receiver else _text(named)


def _last_declarator(node: Any) -> Any:
    """Return the declarator in one around it, such as a reference's, that has no name for it."""
    return node.named_children[-1] if node.type.endswith("_declarator") and node.named_children else None


def _text(node: Any) -> str:
    return " ".join(node.text[: 4 * _LONGEST_NAME].decode(errors="ignore").split())[:_LONGEST_NAME] if node else ""


def find_outline(text: str, suffix: str) -> tuple[Heading, ...]:
    """Return the headings of a text by its suffix; none for a suffix without a known markup."""
    finder = _FINDERS.get(suffix)
    return tuple(finder(text)) if finder else ()


def _of_rst(text: str) -> Iterator[Heading]:
    """Yield titles with a line of punctuation below, perhaps above too; levels are in the order of their first use."""
    levels: list[str] = []
    start, above, above_start, before = 0, "", 0, ""
    previous_start = 0
    for line in text.split("\n"):
        rule = _RULE.fullmatch(line)
        title = above.strip()
        is_title = 0 < len(title) <= min(_LONGEST, len(line.rstrip())) and not _RULE.fullmatch(above)
        overlined = bool(_RULE.fullmatch(before)) and before.rstrip() == line.rstrip()
        if rule and is_title and (overlined or (not before.strip() and not above[:1].isspace())):
            style = f"{line[0]}{overlined}"
            if style not in levels:
                levels.append(style)
            yield Heading(levels.index(style) + 1, title, previous_start if overlined else above_start)
        before, above = above, line
        previous_start, above_start = above_start, start
        start += len(line) + 1


def _of_asciidoc(text: str) -> Iterator[Heading]:
    """Yield lines that begin with equals signs, except those in listings."""
    block = ""
    for found in _ASCIIDOC.finditer(text):
        if fence := found["block"]:
            block = "" if fence == block else block or fence
        elif not block:
            level = found["level"]
            yield Heading(len(level), found["title"].strip().removesuffix(level).strip(), found.start())


def _of_org(text: str) -> Iterator[Heading]:
    for found in _ORG.finditer(text):
        yield Heading(len(found[1]), found[2].strip(), found.start())


def _of_latex(text: str) -> Iterator[Heading]:
    for found in _LATEX.finditer(text):
        depth, end = 1, found.end()
        while depth and end < min(len(text), found.end() + _LONGEST):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        title = " ".join(_LATEX_COMMAND.sub("", text[found.end() : end - 1]).replace("~", " ").split())
        if title and not depth:
            yield Heading(_LATEX_LEVELS.index(found[1]) + 1, title, text.index("\\", found.start()))


_FINDERS: Mapping[str, Callable[[str], Iterator[Heading]]] = {
    ".rst": _of_rst,
    ".rest": _of_rst,
    ".adoc": _of_asciidoc,
    ".asciidoc": _of_asciidoc,
    ".org": _of_org,
    ".tex": _of_latex,
    ".ltx": _of_latex,
}
