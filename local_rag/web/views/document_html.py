"""Render text of documents as HTML: headings, lists, tables, code and emphasis, with words marked.

Every letter and digit of the text is shown, also where it breaks the rules of Markdown. No address, attribute or
element is ever taken from the text: an address is shown as text, and nothing is fetched.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePath
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from local_rag.passage_records import Passage
from local_rag.reading.converters.table_layout import pipe_row
from local_rag.reading.formats import format_named, kind_of_source
from local_rag.retrieval.highlights import Mark, MarkKind
from local_rag.text.heading_lines import HEADING_SIGNS
from local_rag.text.list_labels import begins_item, label_at
from local_rag.text.pipe_rows import cells_of
from local_rag.text.sheet_rows import COLUMNS, FIELD, RECORD, ROW, Cell, table_of
from local_rag.text.struck import SIGN, struck_spans

TextKind = Literal["markdown", "text", "sheet", "code"]
_PieceKind = MarkKind | Literal["struck", "sign"]

_SHEETS = ("sheets.", "open_document.convert_ods")  # converters that write rows
# Those that write Markdown; mail may be either, and is shown as the text that it mostly is.
_MARKDOWN = ("html_pages.", "notebooks.", "office.", "books.", "open_document.", "mail.convert_web_archive")
_BLOCKS: dict[TextKind, list[str]] = {
    "markdown": ["blockquote", "code", "fence", "heading", "lheading", "list", "hr", "table"],
    "text": ["table"],
    "sheet": ["heading"],
}
_PARSERS = {kind: MarkdownIt("zero").enable(rules).disable("inline") for kind, rules in _BLOCKS.items()}
_INLINE = MarkdownIt("zero").enable(["backticks", "emphasis", "newline", "escape", "link", "image", "strikethrough"])
_LONGEST_PARAGRAPH = 10_000  # characters that are searched for emphasis
_LONGEST_CODE = 200_000  # characters before a part, in which it is looked for whether it begins in code
_LEAST_WRAPPED, _MOST_WRAPPED = 40, 130  # characters of the longest line of a paragraph that was wrapped
_DEEPEST_HEADING = 6

_LENGTH_KEPT = str.maketrans({"\r": " ", "\0": "\ufffd"})  # as the parser reads them, with every offset unchanged
_WORD = re.compile(r"\w")
_RUN = re.compile(r"\s+|\S+")
_ADDRESS = re.compile(r"\W{0,100}?\](\((?:[^()\n]++|\([^()\n]*+\))*+\))")
_LAID_OUT = re.compile(r"\t|\S\s{2,}\S")  # columns, or code: such lines stay as they are
_NAMED = re.compile(r"[A-Z][\w.;=-]{1,60}:(?!//)")  # a field of a mail or of a card, which begins its line
_FENCE = re.compile(r"^ {0,3}(```++|~~~++)([^\n`]*+)$", re.MULTILINE)
_TABLE_RULE = re.compile(r"(?=[ |:]*+-)[ |:-]*+")
_ELEMENTS = {  # a wide table scrolls, also by keyboard
    "table_open": '<div class="wide" tabindex="0" role="group" aria-label="Table"><table>',
    "table_close": "</table></div>\n",
    "hr": "<hr>\n",
}
# What a mail repeats of the one that it answers is folded.
_QUOTED = "<details{}><summary>Quoted text</summary>"
_SIGNS = " \n\t[]()<>*_~`|#\\!"
_MARKS: tuple[MarkKind, ...] = ("passage", "best", "term")


def kind_of(path: str) -> TextKind:
    """Return how the text of a document is to be shown, by the suffix of its file."""
    found = format_named(PurePath(path).name)
    if found.converter.startswith(_SHEETS):
        return "sheet"
    return "markdown" if found.converter.startswith(_MARKDOWN) else found.kind


def keeps_lines(path: str) -> bool:
    """Return whether each line of a paragraph is one of its own, as on a slide, by the suffix of the file."""
    return kind_of_source(path) == "slides"


def open_fence(text: str, end: int) -> str:
    """Return the line that opens the code in which an offset of Markdown lies, empty if it lies in none."""
    opening: re.Match[str] | None = None
    for found in _FENCE.finditer(text, max(0, end - _LONGEST_CODE), end):
        if opening is None:
            opening = found
        elif found[1].startswith(opening[1]) and not found[2].strip():
            opening = None
    return f"{opening[1]}\n" if opening else ""


def header_above(text: str, table_header: str) -> str:
    """Return the header that the rows of a table lack at the beginning of a text, empty if it begins otherwise."""
    first, _, rest = text.partition("\n")
    second = rest.partition("\n")[0]
    if not first.lstrip().startswith("|") or (second and _TABLE_RULE.fullmatch(second)):
        return ""
    header = table_header.rpartition("\n")[2]
    names = cells_of(header if header.startswith("|") else "")
    names += [""] * (len(cells_of(first)) - len(names))
    return f"{pipe_row(names)}\n|{' --- |' * len(names)}\n"


def show_passage(passage: Passage, marks: Sequence[Mark]) -> Markup:
    """Return the text of a passage as HTML."""
    kind = kind_of(passage.path)
    before = header_above(passage.text, passage.table_header) if kind in {"markdown", "text"} else ""
    return render(passage.text, kind, marks, before=before, headings=passage.headings, breaks=keeps_lines(passage.path))


def show_quote(passage: Passage, text: str, start: int) -> Markup:
    """Return what is quoted of a passage, from an offset on, as HTML; rows of a table have the header above them."""
    header = _table_header(passage.text[:start]) or passage.table_header
    return show_passage(replace(passage, text=text, table_header=header), ())


def show_line(text: str, differs: Sequence[tuple[int, int]] = ()) -> Markup:
    """Return a line of a document as HTML, in which what is struck out and the spans of what `differs` are marked."""
    writer = _Writer(text, [Mark(*span, "best") for span in differs], "", strikes=True)
    writer.take(len(text))
    return Markup("".join(writer.parts))  # noqa: S704  our own elements, with all text escaped


def _table_header(text: str) -> str:
    """Return the line with the heads of the columns of a table whose rows end a text, empty if none end it."""
    *lines, last = text.split("\n")
    rows = len(lines)
    while rows and lines[rows - 1].startswith("|"):
        rows -= 1
    heads = range(max(0, rows - 2), len(lines) - 1)
    if last:
        return ""
    return next((lines[at] for at in heads if lines[at][:1] == "|" and _TABLE_RULE.fullmatch(lines[at + 1])), "")


def render(
    text: str,
    kind: TextKind,
    marks: Sequence[Mark] = (),
    *,
    before: str = "",
    heading: int = 0,
    headings: Collection[str] = (),
    first_line: int = 0,
    anchor: str = "",
    columns: Sequence[str] = (),
    breaks: bool = False,
) -> Markup:
    """Return text of a document as HTML.

    `before` is read before the text, as the header of its table is. `heading` is the level of the highest heading, or 0
    for a quotation, which heads nothing of the page, and `headings` are lines of plain text that are headings. With
    `first_line`, the blocks have the numbers of their lines, and headings ids with theirs. `anchor` is the id of the
    first mark of the strongest kind. `columns` are the names of the columns of the sheet within which the text begins.
    With `breaks`, each line of a paragraph is one of its own.
    """
    moved = [Mark(mark.start + len(before), mark.end + len(before), mark.kind) for mark in marks]
    # Markdown has a rule of its own for what is struck out, and code none.
    strikes = kind in {"text", "sheet"}
    writer = _Writer((before + text).translate(_LENGTH_KEPT), moved, anchor, strikes=strikes)
    if kind == "code":
        writer.open("<pre><code>")
        writer.take(len(writer.text))
        writer.open("</code></pre>")
    else:
        _Renderer(writer, kind, heading, headings, (first_line, before.count("\n")), columns, breaks).render()
    return Markup("".join(writer.parts))  # noqa: S704  our own elements, with all text escaped


class _Writer:
    """The text, written from its beginning to its end, each piece escaped and marked; `strikes`: struck out too."""

    def __init__(self, text: str, marks: Sequence[Mark], anchor: str, *, strikes: bool = False) -> None:
        self.text, self.done, self.parts = text, 0, list[str]()
        shown = [one for one in marks if one.start < one.end]
        spans: list[tuple[int, int, _PieceKind]] = [(one.start, one.end, one.kind) for one in shown]
        kinds = {kind for *_, kind in spans}
        self._anchor = anchor
        self._anchored = next((kind for kind in ("best", "passage", "term") if kind in kinds), "") if anchor else ""
        for start, end in struck_spans(text) if strikes else ():
            spans += [(start, start + len(SIGN), "sign"), (start, end, "struck"), (end - len(SIGN), end, "sign")]
        events = sorted(event for start, end, kind in spans for event in ((start, 1, kind), (end, -1, kind)))
        open_kinds, self._edges, self._kinds = Counter[str](), [0], [frozenset[str]()]
        for offset, step, kind in events:
            open_kinds[kind] += step
            if offset > self._edges[-1]:
                self._edges.append(offset)
                self._kinds.append(frozenset())
            self._kinds[-1] = frozenset(one for one, count in open_kinds.items() if count)

    def open(self, element: str) -> None:
        """Write an element of ours."""
        self.parts.append(element)

    def find(self, words: str, limit: int) -> int:
        """Return where words stand next, -1 if they do not."""
        return self.text.find(words, self.done, limit)

    def is_marked(self, start: int, end: int) -> bool:
        """Return whether any of the text between two offsets is marked."""
        pieces = self._kinds[bisect_right(self._edges, start) - 1 : bisect_right(self._edges, end - 1)]
        return any(not kinds.isdisjoint(_MARKS) for kinds in pieces)

    def reach(self, offset: int) -> None:
        """Go on at an offset; what was passed over is written beside the text if it has a letter or digit."""
        passed = self.text[self.done : offset]
        if _WORD.search(passed):
            self.done += len(passed) - len(passed.lstrip(_SIGNS))
            self.open(' <span class="beside">')
            self.take(offset - len(passed) + len(passed.rstrip(_SIGNS)))
            self.open("</span> ")
        self.done = max(self.done, offset)

    def take(self, end: int, *, joined: bool = False) -> None:
        """Write the text up to an offset; if it is `joined`, a line break becomes a blank."""
        index = bisect_right(self._edges, self.done) - 1
        while self.done < end:
            last = index + 1 == len(self._edges)
            stop = end if last else min(end, self._edges[index + 1])
            shown = self.text[self.done : stop]
            self._piece(escape(shown.replace("\n", " ") if joined else shown), self._kinds[index])
            self.done, index = stop, index + 1

    def _piece(self, shown: Markup, kinds: Collection[str]) -> None:
        if "sign" in kinds:
            return
        if "struck" in kinds:
            shown = Markup("<s>{}</s>").format(shown)
        classes = [one for one in _MARKS if one in kinds]
        if not classes:
            self.open(shown)
            return
        identified = ""
        if self._anchored in classes:
            identified, self._anchored = f' id="{self._anchor}" tabindex="-1"', ""
        self.open(f'<mark class="{" ".join(classes)}"{identified}>{shown}</mark>')


class _Renderer:
    """Write the blocks of a text; those at its top have the number of their first line.

    `numbered` is the number of the first line, 0 for none, and how many lines stand before it.
    """

    def __init__(
        self,
        writer: _Writer,
        kind: TextKind,
        heading: int,
        headings: Collection[str],
        numbered: tuple[int, int],
        columns: Sequence[str],
        breaks: bool,
    ) -> None:
        self._writer, self._kind, self._heading, self._headings = writer, kind, heading, headings
        self._columns, self._breaks = columns, breaks
        self._above = list[int]()  # the levels of the headings within which it is
        self._first_line, self._before = numbered
        self._starts = [0, *(line_break.end() for line_break in re.finditer("\n", writer.text)), len(writer.text)]
        self._row_end = 0  # of the row of a table in which it is
        self._hidden = False  # the paragraph of an item

    def render(self) -> None:
        """Write all blocks."""
        writer = self._writer
        for token in _PARSERS[self._kind].parse(writer.text):
            at_top = token.level == 0
            if at_top and token.nesting >= 0 and self._first_line and token.map:
                writer.open(f'<div class="block"><span class="n">{self._number(token.map[0])}</span><div dir="auto">')
            self._write(token)
            if at_top and token.nesting <= 0 and self._first_line:
                writer.open("</div></div>\n")
        if _WORD.search(writer.text, writer.done):
            writer.open("<p>")
            writer.reach(len(writer.text))
            writer.open("</p>\n")

    def _write(self, token: Token) -> None:
        writer = self._writer
        if token.type == "inline":
            self._paragraph(token)
        elif token.type in {"fence", "code_block"}:
            self._code(token)
        elif token.type == "list_item_open":
            self._item(token)
        elif token.type == "tr_open":
            self._row_end = self._end_of(token)
            writer.open("<tr>")
        elif token.type == "tr_close":
            self._end_row()
        elif token.type in _ELEMENTS:
            writer.open(_ELEMENTS[token.type])
        elif token.tag == "p":
            self._hidden = token.hidden or self._kind != "markdown"
            writer.open("" if self._hidden else _tag(token, "p"))
        elif token.type.startswith("heading"):
            self._hidden = False
            opening, closing = self._head(int(token.tag[1:]), token.map[0] if token.map and not token.level else -1)
            writer.open(opening if token.nesting == 1 else closing)
        else:  # lists, quotations and parts of a table, without attributes
            writer.open(_tag(token, token.tag))

    def _number(self, line: int) -> int:
        """Return the number of a line in its document."""
        return self._first_line + max(0, line - self._before)

    def _head(self, level: int, line: int) -> tuple[str, str]:
        """Return what opens and closes a heading: as deep as it is nested, so that no level of the page is left out."""
        if not self._heading:
            return '<p class="heading">', "</p>\n"
        self._above = [*(one for one in self._above if one < level), level]
        element = f"h{min(_DEEPEST_HEADING, self._heading + len(self._above) - 1)}"
        return f"<{element}{self._identified(line)}>", f"</{element}>\n"

    def _identified(self, line: int) -> str:
        """Return the id of the heading in a line, as an attribute."""
        return f' id="line-{self._number(line)}"' if self._first_line and line >= self._before else ""

    def _end_of(self, token: Token) -> int:
        return self._starts[token.map[1]] if token.map else len(self._writer.text)

    def _end_row(self) -> None:
        """End a row; cells beyond the header's, which Markdown leaves out, become one."""
        writer = self._writer
        if _WORD.search(writer.text, writer.done, self._row_end):
            writer.open("<td>")
            writer.reach(self._row_end)
            writer.open("</td>")
        writer.done, self._row_end = max(writer.done, self._row_end), 0
        writer.open("</tr>\n")

    def _item(self, token: Token) -> None:
        writer = self._writer
        if not token.info:
            writer.open("<li>")
            return
        writer.open(f'<li value="{int(token.info)}">')
        number = writer.find(token.info, len(writer.text))
        writer.reach(number)
        writer.done = number + len(token.info)

    def _code(self, token: Token) -> None:
        """Write code, with what its fence says above it."""
        writer, lines = self._writer, token.content.rstrip("\n").split("\n")
        limit = self._end_of(token)
        if token.type == "fence" and token.map:
            writer.reach(self._starts[token.map[0]])
            writer.reach(min(limit, self._starts[token.map[0] + 1]))
        writer.open("<pre><code>")
        for number, line in enumerate(lines):
            writer.open("\n" if number else "")
            self._align(line, limit)
        writer.open("</code></pre>\n")

    def _paragraph(self, token: Token) -> None:
        writer, limit = self._writer, self._end_of(token)
        if self._kind != "markdown" and not self._row_end and token.map:
            if self._hidden:
                self._lines(*token.map)
            else:
                self._align(token.content, limit)
            return
        if len(token.content) > _LONGEST_PARAGRAPH:
            self._align(token.content, limit)
        else:
            for part in _INLINE.parseInline(token.content)[0].children or []:
                self._inline(part, limit)
        if not self._row_end:
            writer.reach(limit)

    def _inline(self, token: Token, limit: int) -> None:
        writer = self._writer
        if token.type == "softbreak":
            self._break(limit)
        elif token.type == "hardbreak":
            writer.open("<br>")
        elif token.type == "code_inline":
            writer.open("<code>")
            self._align(token.content, limit)
            writer.open("</code>")
        elif token.type == "image":
            for part in token.children or []:
                self._inline(part, limit)
            self._address(limit)
        elif token.type == "link_close":
            self._address(limit)
        elif token.nesting:
            writer.open("" if token.tag == "a" else _tag(token, token.tag).rstrip())
        else:
            self._align(token.content, limit)

    def _break(self, limit: int) -> None:
        """Begin a line for a clause, such as `(a)`; write others as blanks, marked as what is around."""
        writer = self._writer
        end = writer.text.find("\n", writer.done, limit)
        before = writer.text[writer.text.rfind("\n", 0, max(end, 0)) + 1 : max(end, 0)]
        if end >= 0 and (self._breaks or _begins_line(writer.text, end + 1, before)):
            writer.open("<br>")
        elif writer.text[writer.done : writer.done + 1] == "\n" and writer.done < limit:
            writer.take(writer.done + 1, joined=True)
        else:
            writer.open(" ")

    def _address(self, limit: int) -> None:
        """Write the address of a link or an image behind it."""
        writer = self._writer
        if address := _ADDRESS.match(writer.text, writer.done, limit):
            writer.done = address.start(1)
            writer.open(' <span class="beside">')
            writer.take(address.end(1))
            writer.open("</span>")

    def _align(self, content: str, limit: int) -> None:
        """Write what the parser has read, as it stands in the text: with its marks, and without the signs between."""
        writer = self._writer
        start = writer.find(content, limit)
        if start >= 0:
            writer.reach(start)
            writer.take(start + len(content))
            return
        for run in _RUN.findall(content):
            if run.isspace():
                writer.open(run)
                continue
            start = writer.find(run, limit)
            for piece in [run] if start >= 0 else run:  # a sign behind a backslash stands alone
                start = writer.find(piece, limit)
                if start >= 0:
                    writer.reach(start)
                    writer.take(start + len(piece))
                else:
                    writer.open(escape(piece))

    def _lines(self, first: int, end: int) -> None:
        """Write lines of plain text: wrapped ones joined, rows of a sheet and headings each for itself."""
        writer, text = self._writer, self._writer.text
        spans = [
            (start, stop - (text[stop - 1 : stop] == "\n")) for start, stop in pairwise(self._starts[first : end + 1])
        ]
        lines = [text[start:stop] for start, stop in spans]
        width, inside, done, quoted = max(map(len, lines)), False, 0, False
        names = sum(bool(_NAMED.match(line)) for line in lines)
        for number, ((start, stop), line, following) in enumerate(zip(spans, lines, [*lines[1:], ""], strict=True)):
            if number < done:
                continue
            is_row, heading = bool(RECORD.match(line)), self._heading_in(line)
            if (is_row or heading) and inside:
                writer.open("</p>\n")
                inside = False
            if is_row:
                done = next((at for at in range(number, len(lines)) if not RECORD.match(lines[at])), len(lines))
                self._rows([start for start, _ in spans[number:done]], lines[number:done])
                continue
            if line.startswith(">") != quoted and not heading:
                end = next((at for at in range(number, len(lines)) if not lines[at].startswith(">")), len(lines))
                folded = _QUOTED.format(" open" * writer.is_marked(start, spans[end - 1][1]))
                writer.open(("</p>\n" if inside else "") + ("</details>\n" if quoted else folded))
                quoted, inside = not quoted, False
            if not heading and not inside:
                writer.open('<p class="plain">')
            inside = not heading
            writer.reach(start)
            if heading:
                opening, closing = self._head(len(heading) - 1 if heading[0] == "#" else 1, first + number)
                writer.open(opening)
                writer.done += len(heading) if heading[0] == "#" else 0
                writer.take(stop)
                writer.open(closing)
            else:
                if name := _NAMED.match(line) if names > 1 else None:
                    writer.open('<span class="name">')
                    writer.take(start + name.end())
                    writer.open("</span>")
                writer.take(stop)
                if following and not RECORD.match(following) and not self._heading_in(following):
                    writer.take(stop + 1, joined=_is_wrapped(line, following, width))
        writer.open(("</p>\n" if inside else "") + ("</details>\n" if quoted else ""))

    def _heading_in(self, line: str) -> str:
        """Return the signs before the heading in a line of plain text, a blank without any; empty if it is none."""
        if not self._headings:
            return ""
        signs = HEADING_SIGNS.match(line)
        title = " ".join(line[signs.end() if signs else 0 :].split())
        return (signs[0] if signs else " ") if title in self._headings else ""

    def _rows(self, starts: Sequence[int], lines: Sequence[str]) -> None:
        """Write rows of a sheet as a table, or each by itself where they have no columns in common."""
        table = table_of(lines, self._columns)
        writer, names = self._writer, table.names
        if not names:
            for start, line in zip(starts, lines, strict=True):
                writer.reach(start)
                self._record(start + len(line))
            return
        writer.open(_ELEMENTS["table_open"].replace("<table>", '<table class="rows">'))
        if ROW.match(lines[0]):
            writer.open("<thead><tr><th></th>")
            writer.open("".join(f'<th scope="col">{show_line(name)}</th>' for name in names))
            writer.open("</tr></thead>\n")
        for start, line, cells in zip(starts, lines, table.rows, strict=True):
            is_header = line.startswith(COLUMNS)
            writer.open("<thead>" if is_header else "")
            self._row(start, line, cells, len(names), "th" if is_header else "td")
            writer.open("</thead>\n" if is_header else "")
        writer.open(_ELEMENTS["table_close"])

    def _row(self, start: int, line: str, cells: Sequence[Cell], width: int, element: str) -> None:
        """Write a row of a sheet; each cell repeats the name of its column, which is seen where no header is."""
        writer, named, column = self._writer, line.index(":"), 0
        first = "td" if element == "th" else 'th scope="row"'
        writer.reach(start)
        writer.open(f'<tr><{first}><span class="field">')
        writer.take(start + (named if element == "th" else line.index(" ") + 1))
        writer.open("</span>")
        writer.take(start + named)
        writer.open(f"</{first[:2]}>")
        for cell in cells:
            writer.reach(start + cell.start)
            writer.open(f"<{element}></{element}>" * (cell.column - column))
            scope = ' scope="col"' if element == "th" else f' colspan="{width}"' if cell.column < 0 else ""
            writer.open(f"<{element}{scope}>")
            if cell.value > cell.start:
                writer.open('<span class="field">')
                writer.take(start + cell.value)
                writer.open("</span>")
            writer.take(start + cell.end)
            writer.open(f"</{element}>")
            column = width if cell.column < 0 else cell.column + 1
        writer.open(f"<{element}></{element}>" * (width - column))
        writer.open("</tr>\n")

    def _record(self, end: int) -> None:
        """Write a row of a sheet, `Row 2: name: Ada; born: 1815`, with the names of its columns set off."""
        writer, text = self._writer, self._writer.text
        named = RECORD.match(text, writer.done, end)
        writer.open('<p class="record"><b>')
        begun = named.end() if named else end
        writer.take(begun - 1)
        writer.open("</b>")
        writer.take(begun)
        for field in FIELD.finditer(text[begun:end]):
            writer.take(begun + field.start())
            writer.open("<span>")
            writer.take(begun + field.end())
            writer.open("</span>")
        writer.take(end)
        writer.open("</p>\n")


def _tag(token: Token, element: str) -> str:
    return f"<{element}>" if token.nesting == 1 else f"</{element}>\n"


def _begins_line(text: str, offset: int, before: str) -> bool:
    """Return whether a line begins an item or a clause: one like that above, or one below it, as 1.1 is below 1."""
    own, label = label_at(before), label_at(text, offset)
    is_below = bool(own and label and label.said.startswith(f"{own.said}."))
    return is_below or bool(begins_item(text, offset, before, [own.style] if own else ()))


def _is_wrapped(line: str, following: str, width: int) -> bool:
    """Return whether a line ends only because the next word did not fit into the width of its paragraph."""
    if not _LEAST_WRAPPED <= width <= _MOST_WRAPPED or _begins_line(following, 0, line) or _NAMED.match(following):
        return False
    if _LAID_OUT.search(line) or _LAID_OUT.search(following):
        return False
    return len(line) + 1 + len(following.split(maxsplit=1)[0]) > width
