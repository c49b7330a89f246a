"""Links of notes, as Obsidian writes them: `[[Note]]`, `[[Note#Heading|text]]`, `![[embedded]]`.

The text keeps what a reader sees of them, the text of the link or the name of the note, and a name that the text of
the link does not say: `the engineer (Per Lund)`.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from local_rag.records import Link, LinkKind

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
