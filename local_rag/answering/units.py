"""Split passages into the units that a model is shown and that an answer quotes: sentences, list items, rows, code."""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from local_rag.reading.formats import format_named
from local_rag.records import Passage, heading_path
from local_rag.text.heading_lines import heading_lines
from local_rag.text.sentences import split_sentences

Kind = Literal["sentence", "item", "step", "row", "code"]

_HEADING = re.compile(r"[^\S\n]{0,3}#{1,6}\s+(?=\S)")
_FENCE = re.compile(r"[^\S\n]*(`{3,}|~{3,})")
_ROW = re.compile(r"[^\S\n]*\||Row \d+: ")
_SHEET_ROW = re.compile(r"Row \d+: ")
_CELL_END = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"[\s|:=_*-]+\Z")  # between the head and the rows of a table, below a heading, between sections
_STEP = re.compile(r"[^\S\n]*\(?\d{1,3}[.)]\s")
_ITEM = re.compile(r"[^\S\n]*[-*+\u2022]\s")


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, list item, table row or block of code.

    `passage` is the index of its passage, and `start` and `end` its span there. `text` is what the model is shown: that
    of a row has the heads of its columns. `paragraph` is the same for the units of a paragraph, a list or a table.
    `heading` is the nearest heading above it within the passage. For a question, `rank` is its place among all units, 0
    for the best, and `logit` the reader's, None without one.
    """

    passage: int
    kind: Kind
    text: str
    start: int
    end: int
    paragraph: int
    heading: str = ""
    rank: int = 0
    logit: float | None = None


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines of a text that belong together; `kind` may also be a heading or a rule, which no answer is taken from."""

    kind: Kind | Literal["heading", "rule"]
    start: int
    end: int
    paragraph: int


def split_units(passages: Sequence[Passage]) -> list[Unit]:
    """Return the units of passages, in their order; headings and the rules of tables are none."""
    return [unit for index, passage in enumerate(passages) for unit in _units(index, passage)]


def headings_of(passage: Passage) -> str:
    """Return the title of a passage and the headings above it as one line, after what names its document."""
    path = heading_path(passage.title, tuple(dict.fromkeys(passage.headings)))
    return " ".join((f"{' '.join(passage.names)}: {path}" if passage.names else path).split())


def _units(index: int, passage: Passage) -> Iterator[Unit]:
    text, heading, above = passage.text, "", {passage.title, *passage.headings}
    written = format_named(PurePath(passage.path).name)
    # Other converters mark headings, as Markdown does.
    is_plain = written.kind == "text" and (not written.converter or passage.page is not None)
    titles = heading_lines(text) if is_plain else frozenset[int]()
    blocks = list(_blocks(text, titles, in_code=written.kind == "code"))
    head, label = _header(passage)
    for number, block in enumerate(blocks):
        start, end, block_text = block.start, block.end, text[block.start : block.end]
        if number == 0 and label:
            # The passage begins within a long row: the header of its table says in which one.
            rest = _row(head, _cells(block_text), cut=True) if head else " ".join(block_text.split())
            label += "" if label.endswith(":") else ";"
            yield Unit(index, "row", f"{label} {rest}", start, end, block.paragraph)
            continue
        if block.kind not in {"row", "rule"}:
            head = []
        if block.kind == "heading":
            words = _title(block_text)
            heading = "" if words in above else words
        elif block.kind == "row" and (numbered := _SHEET_ROW.match(text, start, end)):
            yield Unit(index, "row", text[numbered.end() : end], start, end, block.paragraph, heading)
        elif block.kind == "row":
            cells = _cells(block_text)
            following = blocks[number + 1] if number + 1 < len(blocks) else None
            if following and following.kind == "rule" and not head:
                head = cells
                continue
            cut = bool(passage.table_header) and not block_text.endswith("|")
            yield Unit(index, "row", _row(head, cells, cut=cut), start, end, block.paragraph, heading)
        elif block.kind == "sentence":
            for first, last in _sentences(text, start, end):
                yield Unit(index, "sentence", text[first:last], first, last, block.paragraph, heading)
        elif block.kind != "rule":
            yield Unit(index, block.kind, block_text, start, end, block.paragraph, heading)


def _blocks(text: str, titles: Set[int], *, in_code: bool) -> Iterator[_Block]:
    """Yield the paragraphs, list items, rows, code blocks, headings and rules of a text, without outer white space.

    Lines that begin at one of the `titles` are headings. In source code, where "#" begins a comment, each run of lines
    without an empty one is a block of code.
    """
    kind: Kind | Literal["heading", "rule"] | None = None
    start = position = paragraph = 0
    fence = ""

    def block() -> Iterator[_Block]:
        found = text[start:position]
        if kind and (kept := found.strip()):
            first = start + found.index(kept)
            yield _Block(kind, first, first + len(kept), paragraph)

    for line in text.splitlines(keepends=True):
        fenced = None if in_code else _FENCE.match(line)
        if fence:
            position += len(line)
            if fenced and fenced[1].startswith(fence):
                yield from block()
                kind, fence, start = None, "", position
            continue
        begins = "code" if fenced else _kind_of(line)
        if in_code and begins:
            begins = None if kind else "code"
        elif position in titles:
            begins = "heading"
        # A line of plain text continues a paragraph or an item; after a heading or a row it does not.
        if begins == "sentence" and kind in {"sentence", "item", "step"}:
            begins = None
        if begins or not line.strip():
            yield from block()
            if not line.strip() or (begins in {"heading", "code"} or kind in {"heading", "code"}):
                paragraph += 1
            kind, start = begins, position
        fence = fenced[1] if fenced else ""
        position += len(line)
    yield from block()


def _title(line: str) -> str:
    """Return a heading without the marks around it."""
    words = _HEADING.sub("", line, count=1).split()
    return " ".join(words[:-1] if words and not words[-1].strip("#") else words)


def _kind_of(line: str) -> Kind | Literal["heading", "rule"] | None:
    """Return what begins with a line; None for an empty one."""
    if not line.strip():
        return None
    if _RULE.match(line):
        return "rule"
    for pattern, kind in ((_HEADING, "heading"), (_ROW, "row"), (_STEP, "step"), (_ITEM, "item")):
        if pattern.match(line):
            return kind  # type: ignore[return-value]
    return "sentence"


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    # Lines that are only wrapped belong together; a space is as long as a line break.
    for part in split_sentences(text[start:end].replace("\n", " ")):
        first = start + len(part) - len(part.lstrip())
        start += len(part)
        if kept := part.strip():
            yield first, first + len(kept)


def _header(passage: Passage) -> tuple[list[str], str]:
    """Return the names of the columns above a passage that begins within a table, and the row that it continues."""
    names, label = list[str](), ""
    for line in passage.table_header.splitlines():
        if line.startswith("|"):
            names = _cells(line)
        else:
            label = _SHEET_ROW.sub("", line)
    return names, label


def _cells(row: str) -> list[str]:
    text = row.strip().removeprefix("|")
    inner = text[:-1] if text.endswith("|") and not text.endswith("\\|") else text
    return [" ".join(cell.replace("\\|", "|").split()) for cell in _CELL_END.split(inner)]


def _row(head: list[str], cells: list[str], *, cut: bool = False) -> str:
    """Write a row so that it can be understood without its table; `cut` if its last cells may be missing."""
    if len(head) != len(cells) and not (cut and len(head) > len(cells)):
        return " | ".join(cell for cell in cells if cell)
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in zip(head, cells, strict=False) if cell)
