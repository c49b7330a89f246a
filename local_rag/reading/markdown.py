"""Find the structure of Markdown, with all offsets unchanged: front matter, tags, headings."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from local_rag.reading.structure import line_starts
from local_rag.records import Heading, Table

if TYPE_CHECKING:
    from markdown_it.token import Token

# Front matter is distinguished from text between two rules line by line and within bounds, because one pattern over
# all lines would backtrack in exponential time.
_FRONT_MATTER_LINES, _FRONT_MATTER_CHARACTERS = 500, 64 * 1024
_FIRST_KEY = re.compile(r"[\w-]+[ \t]*:(?:\s|$)")
_KEY = re.compile(r"[\"']?([\w-]{1,60})[\"']?[ \t]*:(?:\s|$)")
# The origin of a document, and how a program shows it.
_FIELDS_ELSEWHERE = {
    "url", "title", "date", "author", "authors", "tags", "keywords", "layout", "permalink", "slug", "cssclass",
    "cssclasses", "template",
}  # fmt: skip
_YAML_LINE = re.compile(r"""\s|-(?:\s|$)|[\]}]|[\w"'][^:]{0,60}:(?:\s|$)""")
_HEADING_LINE = re.compile(r"#{1,6}\s")
_TABLE_RULE = re.compile(r"^[ \t>]*+(?:\|[ \t]*+)?:?-++:?[ \t]*+\|", re.MULTILINE)
_LONGEST_UNDERLINED = 300  # characters of a heading above a line of === or ---
_TAG_OPENING = re.compile(r"(?P<comment>\{%-?\s*comment\b)|(?P<tag>\{%)|(?P<html><!--)")
_TAG_CLOSING = {
    "comment": re.compile(r"endcomment\s*-?%\}"),
    "tag": re.compile(r"%\}"),
    "html": re.compile(r"-->"),
}
_QUOTED_OR_ANY = re.compile(r'"(?P<quoted>[^"\n]*)"|[^\n]')
_BACKTICKS = re.compile("`+")
_NEAR = 300  # characters around a tag
_FILE_NAME = re.compile(r"[^/\n]*+/.*+|\S*\.\w+")


def blank_front_matter(text: str) -> tuple[str, Mapping[str, object]]:
    """Blank out YAML front matter; return the text, with unchanged length and lines, and the fields.

    Aliases and properties that the document has nowhere else stay as they are written, because they are asked for.
    """
    first, *lines = text.split("\n", _FRONT_MATTER_LINES)[:_FRONT_MATTER_LINES]
    closing = next((number for number, line in enumerate(lines) if line.rstrip(" \t") in {"---", "..."}), 0)
    end = len("\n".join([first, *lines[: closing + 1]]))
    if first.rstrip(" \t") != "---" or end > _FRONT_MATTER_CHARACTERS or not _is_yaml(lines[:closing]):
        return text, {}
    kept = "\n".join([_blank(first), *_properties(lines[:closing]), _blank(lines[closing])])
    return kept + text[end:], _fields_in("\n".join(lines[:closing]))


def _properties(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of front matter, blank ones for comments and for the fields that the document has elsewhere."""
    is_kept = False
    for line in lines:
        if key := _KEY.match(line):
            is_kept = key[1].lower() not in _FIELDS_ELSEWHERE
        yield line if is_kept and not line.startswith("#") else _blank(line)


def title_of(fields: Mapping[str, object]) -> str | None:
    """Return the title in the front matter, or None."""
    title = fields.get("title")
    try:
        return str(title) if isinstance(title, str | int | float) else None
    except ValueError:  # an endless number
        return None


def blank_tags(text: str) -> str:
    """Blank out Liquid tags and HTML comments outside code, except prose quoted in a tag.

    The text keeps its length and lines. `{% image "a.png" "Red door" %}` leaves `Red door`.
    """
    code: list[tuple[int, int]] | None = None
    end = 0
    pieces = []
    unclosed: set[str] = set()  # searching the whole text once per kind keeps the time linear
    for opening in _TAG_OPENING.finditer(text):
        kind = str(opening.lastgroup)
        if opening.start() < end or kind in unclosed:
            continue
        closing = _TAG_CLOSING[kind].search(text, opening.end())
        if closing is None:
            unclosed.add(kind)
            continue
        code = _code_blocks(text) if code is None else code
        fence = bisect_right(code, (opening.start(), len(text))) - 1
        if fence >= 0 and opening.start() < code[fence][1]:
            continue
        if kind == "tag" and _is_in_code(text, opening.start()):
            continue
        tag = text[opening.start() : closing.end()]
        pieces += [text[end : opening.start()], _QUOTED_OR_ANY.sub(_keep_prose, tag) if kind == "tag" else _blank(tag)]
        end = closing.end()
    return "".join([*pieces, text[end:]])


def find_headings(text: str) -> tuple[Heading, ...]:
    """Return the ATX and setext headings, except those in code, lists and quotes.

    A paragraph directly above a rule is text if it is long or has several lines.
    """
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    starts = line_starts(text)
    headings = []
    for opening, inline in pairwise(_blocks(text)):
        if opening.type == "heading_open" and opening.level == 0 and opening.map:
            on_a_rule = opening.markup in {"=", "-"}
            if on_a_rule and ("\n" in inline.content or len(inline.content) > _LONGEST_UNDERLINED):
                continue
            parts = parser.parseInline(inline.content)[0].children or []
            title = " ".join("".join(part.content for part in parts).split())
            if title:
                headings.append(Heading(level=int(opening.tag[1:]), title=title, start=starts[opening.map[0]]))
    return tuple(headings)


def find_tables(text: str) -> tuple[Table, ...]:
    """Return the tables with pipes; the start and end are those of their lines."""
    if not _TABLE_RULE.search(text):
        return ()
    starts = [*line_starts(text), len(text)]
    tables, columns, start, end = list[Table](), list[str](), 0, 0
    for token, following in pairwise(_blocks(text, "table")):
        if token.type == "th_open":
            columns.append(" ".join(following.content.split()))
        elif token.type == "tbody_open" and token.map:
            tables.append(Table(start, starts[token.map[0]], end, tuple(columns)))
        elif token.type == "table_open" and token.map:
            start, end, columns = starts[token.map[0]], starts[token.map[1]], []
    return tuple(tables)


def _is_yaml(lines: Sequence[str]) -> bool:
    """Return whether lines are YAML: a key first, no prose, and no comments that look like headings."""
    body = [line for line in lines if not line.startswith("#")]
    filled = [line for line in body if line.strip()]
    if len(filled) < len(body) and any(map(_HEADING_LINE.match, lines)):
        return False
    return bool(filled and _FIRST_KEY.match(filled[0])) and all(map(_YAML_LINE.match, filled))


def _fields_in(front_matter: str) -> Mapping[str, object]:
    """Parse front matter; if it is invalid YAML, return lines such as `date: 2024-05-01` as they are."""
    import yaml

    try:
        fields = yaml.safe_load(front_matter)
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: a date such as 2024-13-45, an endless number
        found = re.findall(r"^([\w-]+):(.*)$", front_matter, re.MULTILINE)
        return {name: value.strip().strip("\"'") for name, value in reversed(found)}
    return {str(name): value for name, value in fields.items()} if isinstance(fields, dict) else {}


def _code_blocks(text: str) -> list[tuple[int, int]]:
    """Return the spans of fenced and indented code, in which tags are content."""
    starts = [*line_starts(text), len(text)]
    blocks = (token.map for token in _blocks(text) if token.type in {"fence", "code_block"})
    return [(starts[lines[0]], starts[lines[1]]) for lines in blocks if lines]


def _blocks(text: str, *more: str) -> "list[Token]":
    """Parse the blocks of a text, also of kinds beyond CommonMark; the markup within them is most of the work."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable(list(more)).disable("inline").parse(text)


def _is_in_code(text: str, offset: int) -> bool:
    """Return whether a place stands between backticks on its line, of which only the near part is looked at."""
    start = max(text.rfind("\n", 0, offset) + 1, offset - _NEAR)
    end = text.find("\n", offset, offset + _NEAR)
    line = text[start : offset + _NEAR if end < 0 else end]
    opened = ""  # a span ends with as many backticks as it begins with
    for ticks in _BACKTICKS.finditer(line):
        if ticks.start() >= offset - start:
            return bool(opened) and any(one[0] == opened for one in _BACKTICKS.finditer(line, ticks.start()))
        opened = "" if ticks[0] == opened else opened or ticks[0]
    return False


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _keep_prose(found: re.Match[str]) -> str:
    quoted = found["quoted"]
    return f" {quoted} " if quoted and not _FILE_NAME.fullmatch(quoted) else " " * len(found[0])
