"""Find the structure of Markdown, with all offsets unchanged: front matter, tags, headings; and links of notes.

Obsidian writes them as `[[Note]]`, `[[Note#Heading|text]]`, `![[embedded]]`. The text keeps what a reader sees of them,
the text of the link or the name of the note, and a name that the text of the link does not say: `the engineer (Per
Lund)`.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from local_rag.document_records import Heading, Link, LinkKind, Table
from local_rag.reading.structure import line_starts
from local_rag.text.heading_lines import HEADING_SIGNS
from local_rag.text.notes import note, split_notes
from local_rag.text.struck import strike

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
_TABLE_RULE = re.compile(r"^[ \t>]*+(?:\|[ \t]*+)?:?-++:?[ \t]*+\|", re.MULTILINE)
_LONGEST_UNDERLINED = 300  # characters of a heading above a line of === or ---
_TAG_OPENING = re.compile(
    r"(?P<comment>\{%-?\s*comment\b)|(?P<tag>\{%)|(?P<html><!--)"
    r"|(?P<remark>^[ \t]{0,40}%%(?!%))|(?P<inline>(?<=[^\n%\w{])%%(?=(?:[^\n%]|\n(?!\s*\n)|%(?!%)){1,2000}%%(?!\w)))"
    # Over several paragraphs, a comment begins behind and ends before a blank; %%d is a format, 5%% is an amount.
    r"|(?P<long>(?:(?<=\s)|^)%%(?!\.?\d{0,3}[cdfsux]\b)(?=[^\s%\\\"']|[ \t]*+\n)"
    r"(?=(?:[^%]|%(?!%)){0,5000}+(?:(?<=[^\s%\d\"'])%%(?!\S)|(?<=\s)%%[ \t]*+$)))"
    r"|(?P<unused>^ {0,3}\[[^\]\n]{1,100}\]:[ \t]{1,9}(?:#|<>)[ \t]{1,9}(?=[(\"']))",  # a link that leads nowhere
    re.MULTILINE,
)
_TAG_CLOSING = {
    "comment": re.compile(r"endcomment\s*-?%\}"),
    "tag": re.compile(r"%\}"),
    "html": re.compile(r"-->"),
    "remark": re.compile(r"%%"),
    "inline": re.compile(r"%%"),
    "long": re.compile(r"%%"),
    "unused": re.compile(r"$", re.MULTILINE),
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
    """Blank out Liquid tags, and comments of HTML, Markdown and Obsidian outside code, except prose quoted in a tag.

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
        if kind in {"tag", "inline", "long"} and _is_in_code(text, opening.start()):
            continue
        if kind == "long" and (_is_within(code, closing.start()) or _is_in_code(text, closing.start())):
            continue
        tag = text[opening.start() : closing.end()]
        pieces += [text[end : opening.start()], _QUOTED_OR_ANY.sub(_keep_prose, tag) if kind == "tag" else _blank(tag)]
        end = closing.end()
    return "".join([*pieces, text[end:]])


_STRUCK = re.compile(r"<(s|del|strike)(?:\s[^<>\n]{0,200})?>([^<>\n]{1,2000})</\1>", re.IGNORECASE)


def mark_struck(text: str) -> str:
    """Write what tags of HTML strike out, outside code, as Markdown does, with the same lines."""
    if "</" not in text:
        return text
    code = _code(text)
    return _STRUCK.sub(lambda one: one[0] if _is_within(code, one.start()) else strike(one[2]), text)


_ELEMENT = re.compile(
    r"<(/?)(p|div|span|section|article|aside|details|ul|ol|li|table|tr|td|h[1-6]|small|b|i|em|strong|a)(?![\w-])"
    r"((?:[^<>\"']|\"[^\"<>]*+\"|'[^'<>]*+')*+)>",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_SAID = re.compile(r"\"[^\"]*+\"|'[^']*+'")
_HIDDEN = re.compile(r"\shidden(?![\w-])", re.IGNORECASE)
_HIDING_STYLE = re.compile(
    r"\sstyle\s*=\s*[\"'](?:[^\"']*;)?\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE
)


def blank_hidden(text: str) -> tuple[str, int]:
    """Blank out the elements of HTML that are hidden, outside code; return the text and their number of words."""
    pieces, end, words, unclosed = list[str](), 0, 0, set[str]()
    code = _code(text) if "</" in text else []
    while "</" in text and (opened := _first_hidden(text, end, unclosed, code)):
        depth, name = 1, opened[2].lower()
        for tag in _ELEMENT.finditer(text, opened.end()):
            depth += (-1 if tag[1] else 1) if tag[2].lower() == name else 0
            if not depth:
                words += len(_WORD.findall(_ELEMENT.sub(" ", text[opened.end() : tag.start()])))
                pieces += [text[end : opened.start()], _blank(text[opened.start() : tag.end()])]
                end = tag.end()
                break
        else:
            unclosed.add(name)  # searching the whole text once for each name keeps the time linear
    return "".join([*pieces, text[end:]]), words


def _first_hidden(
    text: str, start: int, unclosed: Collection[str], code: Sequence[tuple[int, int]]
) -> re.Match[str] | None:
    for tag in _ELEMENT.finditer(text, start):
        said = tag[3]
        if not tag[1] and said and tag[2].lower() not in unclosed and not _is_within(code, tag.start()):
            plain = _SAID.sub(lambda one: "''" if "until-found" not in one[0] else one[0], said)
            if _HIDING_STYLE.search(said) or (_HIDDEN.search(plain) and "until-found" not in plain):
                return tag
    return None


_DRAWING = re.compile(r"^```(?:compressed-)?json\n(?:(?!```).*\n)*+```", re.MULTILINE)


def blank_drawing(text: str) -> str:
    """Blank out the data of a drawing of Excalidraw, which a note holds beside its texts."""
    return _DRAWING.sub(lambda one: _blank(one[0]), text)


_INLINE_TAG = re.compile(r"(?<![^\s(*_])#(?=[\w/-]*[^\W\d_])(\w[\w/-]{0,63})(?![\w#])")


_FILE_TAGS = re.compile(r"^#\+FILETAGS:(.*)$", re.MULTILINE | re.IGNORECASE)
_HEADING_TAGS = re.compile(r"^\*{1,8}[ \t].{0,300}[ \t](:[\w@#%:]{1,300}:)[ \t]*$", re.MULTILINE)


def tags_in_org(text: str) -> tuple[str, ...]:
    """Return the tags of a text of Org, of the whole file and behind its headings: `:harbour:crane:`."""
    said = [*_FILE_TAGS.findall(text), *_HEADING_TAGS.findall(text)]
    return tuple(dict.fromkeys(tag for one in said for tag in re.split(r"[:\s]+", one) if tag))


def tags_in(text: str) -> tuple[str, ...]:
    """Return the tags in the text of a note, such as #harbour/crane, outside code."""
    if "#" not in text:
        return ()
    code = _code(text)
    found = (one[1].rstrip("/-_") for one in _INLINE_TAG.finditer(text) if not _is_within(code, one.start()))
    return tuple(dict.fromkeys(found))


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
    if len(filled) < len(body) and any(map(HEADING_SIGNS.match, lines)):
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


_LINK = re.compile(r"(!?)\[\[([^\[\]|\n]{1,200})(?:\\?\|([^\[\]\n]{0,300}))?\]\](?![\[(])")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_SPAN = re.compile(r"(?<!`)`(?!`)[^`\n]{1,300}`(?!`)")
_SIZE = re.compile(r"\d{1,5}(?:x\d{1,5})?")  # of an embedded image
MOST_LINKS, MOST_NAMES, _LONGEST_NAME = 1000, 50, 200


def read_wikilinks(text: str) -> tuple[str, tuple[Link, ...]]:
    """Return a text of Markdown as it is read, with the same lines, and its links, each target once."""
    if "[[" not in text:
        return text, ()
    code, links = _code(text), dict[tuple[str, str], Link]()

    def shown(found: re.Match[str]) -> str:
        target, said = found[2].rstrip("\\").strip(), (found[3] or "").strip()
        name, _, heading = target.partition("#")
        is_number = name.strip().isdecimal()  # [[1]] is a list or a reference
        if not target or is_number or found[2][0].isspace() or _is_within(code, found.start()):
            return found[0]
        kind: LinkKind = "embed" if found[1] else "link"
        if name.strip():
            links.setdefault((kind, name.strip()), Link(kind, name.strip()))
        named = name.strip().removesuffix(".md")
        if said and not (found[1] and _SIZE.fullmatch(said)):
            called = named.rpartition("/")[2]
            return said if called.casefold() in said.casefold() else f"{said} ({called})"
        return " > ".join(filter(None, (named, heading.strip().lstrip("^#"))))

    return _LINK.sub(shown, text), tuple(links.values())[:MOST_LINKS]


_DEFINED = re.compile(r" {0,3}\[\^([^\]\s]{1,60})\]:[ \t]{0,20}(?=\S)")
_BEGINS_BLOCK = re.compile(r"[ \t]{0,3}(?:\[\^|[-*+#>|]|\d{1,9}[.)]|```|~~~)")
_SIGN = re.compile(r"[ \t]?\[\^([^\]\s]{1,60})\]")
_LONGEST_REPEATED = 300  # characters of a note that stands at each of its signs


def place_notes(text: str) -> str:
    """Put the notes of Markdown, `[^1]: text`, where their signs stand, with the same lines; below a heading."""
    if "[^" not in text:
        return text
    code = _code(text)
    notes = _defined_notes(text, code)
    defined = [(start, end) for start, end, _ in notes.values()]
    signs = [one for one in _SIGN.finditer(text) if one[1] in notes and not _is_within(code, one.start())]
    pieces, end, placed = list[str](), 0, set[str]()
    changes = [(one.start(), one.end(), one[1]) for one in signs if not _is_within(defined, one.start())]
    changes += [(*notes[name][:2], "") for name in {name for *_, name in changes}]
    for start, last, name in sorted(changes):
        said = notes[name][2] if name else "\n" * text.count("\n", start, last)
        pieces += [text[end:start], "" if name in placed and len(said) > _LONGEST_REPEATED else said]
        placed |= {name} if name else set()
        end = last
    lines = "".join([*pieces, text[end:]]).split("\n")
    for number, line in enumerate(lines[:-1]):
        if HEADING_SIGNS.match(line):
            lines[number], below = split_notes(line)
            lines[number + 1] = " ".join(filter(None, (below, lines[number + 1])))
    return "\n".join(lines)


def _defined_notes(text: str, code: Sequence[tuple[int, int]]) -> dict[str, tuple[int, int, str]]:
    """Return the start, the end and the text of each note by its name; indented lines and paragraphs go on with it."""
    notes, start, name, said = dict[str, tuple[int, int, str]](), 0, "", list[str]()
    position, is_below = 0, False  # a blank line
    for line in text.splitlines(keepends=True):
        found = _DEFINED.match(line) if not _is_within(code, position) else None
        goes_on = line[:2] in {"  ", "\t"} or line[:1] == "\t" or not (is_below or _BEGINS_BLOCK.match(line))
        if found and found[1] not in notes:
            start, name, said = position, found[1], [line[found.end() :]]
        elif name and line.strip() and goes_on:
            said.append(line)
        elif name and line.strip():
            name = ""
        position, is_below = position + len(line), not line.strip()
        if name and not is_below:
            notes[name] = start, position - (line[-1:] == "\n"), note(" ".join(said))
    return notes


def aliases_of(fields: Mapping[str, object]) -> tuple[str, ...]:
    """Return the other names that front matter gives a note."""
    known = {name.lower(): value for name, value in fields.items()}
    given = known.get("aliases") or known.get("alias")
    if isinstance(given, str):
        given = given[: MOST_NAMES * _LONGEST_NAME].split(",")
    names = given if isinstance(given, Sequence) else ()
    kept = (" ".join(str(name)[:_LONGEST_NAME].split()) for name in names[:MOST_NAMES] if isinstance(name, str | int))
    return tuple(dict.fromkeys(filter(None, kept)))


def _code(text: str) -> list[tuple[int, int]]:
    """Return the spans of code, in which brackets are content, in order and apart."""
    spans, opened = list[tuple[int, int]](), None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]):
            spans.append((opened.start(), fence.end()))
            opened = None
    if opened is not None:
        spans.append((opened.start(), len(text)))
    apart = list[tuple[int, int]]()
    for start, end in sorted([*spans, *(found.span() for found in _SPAN.finditer(text))]):
        if not apart or start >= apart[-1][1]:
            apart.append((start, end))
        else:
            apart[-1] = apart[-1][0], max(end, apart[-1][1])
    return apart


def _is_within(spans: Sequence[tuple[int, int]], offset: int) -> bool:
    """Return whether an offset lies in one of the spans, which are sorted and apart."""
    before = bisect_right(spans, offset, key=lambda span: span[0])
    return before > 0 and offset < spans[before - 1][1]
