"""Parse source code with tree-sitter: its classes and functions, and the lines at which it can be cut."""

import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from local_rag.records import Heading

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


@dataclass(frozen=True, slots=True)
class Outline:
    """The classes and functions of a text, and the offsets at which it can be cut, with their depths."""

    definitions: tuple[Heading, ...]
    boundaries: tuple[tuple[int, int], ...]


@lru_cache(maxsize=1)
def outline_of(text: str, language: str | None) -> Outline | None:
    """Return the outline of source code; None without a grammar for its language."""
    grammars = _GRAMMARS.get(language or "")
    if not grammars or len(text) > _LARGEST:
        return None
    data = text.encode()
    trees = (_parser(*grammar).parse(data) for grammar in grammars)
    tree = next((one for one in trees if not one.root_node.has_error), None) or _parser(*grammars[0]).parse(data)
    walk = _Walk(text)
    walk.read(tree.root_node)
    return Outline(
        tuple(sorted(walk.definitions.values(), key=lambda one: one.start)), tuple(sorted(walk.boundaries.items()))
    )


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
        kind = (
            ("function" if node.type == "variable_declarator" else "method")
            if value and value.type in _FUNCTIONS
            else None
        )
    if kind is None or (node.type in _WITH_BODY and node.child_by_field_name("body") is None):
        return ""
    name = _name(node)
    return f"{kind} {name}" if name else ""


def _name(node: Any) -> str:
    """Return the name of a definition, with its type if that stands beside it: `Server.Close`, `Shape for Circle`."""
    fields = {
        name: node.child_by_field_name(name) for name in ("name", "property", "declarator", "receiver", "trait", "type")
    }
    if node.type == "impl_item":
        return " for ".join(_text(one) for one in (fields["trait"], fields["type"]) if one)
    named = fields["name"] or fields["property"]
    if named is None:
        named = fields["declarator"]
        while named and (inner := named.child_by_field_name("declarator") or _last_declarator(named)):
            named = inner
    receiver = _RECEIVER.search(_text(fields["receiver"]))
    return f"{receiver[1]}.{_text(named)}" if receiver else _text(named)


def _last_declarator(node: Any) -> Any:
    """Return the declarator in one around it, such as a reference's, that has no name for it."""
    return node.named_children[-1] if node.type.endswith("_declarator") and node.named_children else None


def _text(node: Any) -> str:
    return " ".join(node.text[: 4 * _LONGEST_NAME].decode(errors="ignore").split())[:_LONGEST_NAME] if node else ""
