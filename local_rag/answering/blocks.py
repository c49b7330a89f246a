"""Split a text into blocks: paragraphs, list items, clauses, rows, code and headings; tell who speaks in a mail."""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Literal

from local_rag.reading.mailbox import sender_of
from local_rag.text.list_labels import Label, begins_item
from local_rag.text.sheet_rows import COLUMNS, ROW_LABEL

Kind = Literal["sentence", "item", "step", "clause", "row", "code"]

_HEADING = re.compile(r"[^\S\n]{0,3}#{1,6}\s+(?=\S)")
_BOLD_LINE = re.compile(r"[^\S\n]*(\*\*|__)(?!\s)[^*_\n]{1,80}(?<![\s.,;!?])\1[^\S\n]*\n?\Z")  # no marked heading
_FENCE = re.compile(r"[^\S\n]*(`{3,}|~{3,})")
_ROW = re.compile(rf"[^\S\n]*\||{ROW_LABEL}")
_RULE = re.compile(r"[\s|:=_*-]+\Z")  # between the head and the rows of a table, below a heading, between sections
_KINDS: dict[str, Kind] = {"sign": "item", "number": "step", "clause": "clause", "named": "sentence"}  # of labels
_LONGEST_SPEAKER = 200  # characters of the line above what a mail quotes
ENDED = re.compile(r"[.!?\u2026][\"'\u201d\u2019)*_]*\Z")


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of a text that belong together; `kind` may also be a heading or a rule, which no answer is taken from."""

    kind: Kind | Literal["heading", "rule"]
    start: int
    end: int
    paragraph: int
    label: Label | None = None


def split_blocks(text: str, titles: Set[int], *, in_code: bool) -> Iterator[Block]:
    """Yield the paragraphs, items, clauses, rows, code blocks, headings and rules of a text, without outer white space.

    Lines that begin at one of the `titles` are headings. In source code, where "#" begins a comment, each run of lines
    without an empty one is a block of code.
    """
    kind: Kind | Literal["heading", "rule"] | None = None
    label: Label | None = None
    start = position = paragraph = 0
    fence = before = ""
    styles = set[str]()  # of the items below the last heading

    def block() -> Iterator[Block]:
        found = text[start:position]
        if kind and (kept := found.strip()):
            first = start + found.index(kept)
            yield Block(kind, first, first + len(kept), paragraph, label)

    for line in text.splitlines(keepends=True):
        fenced = None if in_code else _FENCE.match(line)
        if fence:
            position += len(line)
            if fenced and fenced[1].startswith(fence):
                yield from block()
                kind, label, fence, start, before = None, None, "", position, ""
            continue
        begins = "code" if fenced else _kind_of(line)
        is_blank = begins is None
        found = None
        if in_code and begins:
            begins = None if kind else "code"
        elif position in titles:
            begins = "heading"
        elif begins == "sentence" and (found := begins_item(text, position, before, styles)):
            begins = _KINDS[found.kind]
            styles.add(found.style)
        # A line of plain text continues a paragraph or an item; after a heading or a row it does not.
        elif begins == "sentence" and kind in {"sentence", "item", "step", "clause"}:
            begins = None if _quoted(line) == _quoted(before) and not line.startswith(COLUMNS) else begins
        if begins or is_blank:
            yield from block()
            if is_blank or (begins in {"heading", "code"} or kind in {"heading", "code"}):
                paragraph += 1
            kind, label, start = begins, found, position
        fence = fenced[1] if fenced else ""
        before = line if begins not in {"heading", "row", "rule"} else ""
        if begins == "heading":
            styles.clear()
        position += len(line)
    yield from block()


def title_of(line: str) -> str:
    """Return a heading without the marks around it."""
    words = _HEADING.sub("", line.strip("*_"), count=1).split()
    return " ".join(words[:-1] if words and not words[-1].strip("#") else words)


def _kind_of(line: str) -> Kind | Literal["heading", "rule"] | None:
    """Return what begins with a line; None for an empty one."""
    if not line.strip().strip("> "):
        return None
    if _RULE.match(line):
        return "rule"
    if _HEADING.match(line) or _BOLD_LINE.match(line):
        return "heading"
    return "row" if _ROW.match(line) else "sentence"


def speakers_in(text: str, blocks: Sequence[Block]) -> dict[int, str]:
    """Return who says what is quoted in a mail, by where it begins: the line above it, or the head of that mail."""
    found = dict[int, str]()
    for number, block in enumerate(blocks):
        said, depth = text[block.start : block.end], _quoted(text[block.start :])
        before = text[blocks[number - 1].start : blocks[number - 1].end] if number else ""
        if number and depth > _quoted(before) and before.endswith(":"):
            found[block.start] = _speaker(before.removesuffix(":").split("\n"))
        elif number and depth < _quoted(before):
            found[block.start] = ""
        elif number and (sender := sender_of(said)):
            found[block.start] = sender
    return found


def _speaker(lines: Sequence[str]) -> str:
    """Return who says what follows some lines: the last one, with the one above if it goes on."""
    goes_on = len(lines) > 1 and not ENDED.search(lines[-2].rstrip())
    return " ".join(" ".join(line.lstrip("> ") for line in lines[-2 if goes_on else -1 :]).split())[-_LONGEST_SPEAKER:]


def _quoted(line: str) -> int:
    """Return how often a line of a mail is quoted."""
    signs = line[: len(line) - len(line.lstrip("> "))]
    return signs.count(">")
