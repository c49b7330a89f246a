"""Convert Rich Text Format: striprtf reads the text, marks in it tell where headings and the cells of tables are."""

import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from local_rag.document_records import Table
from local_rag.errors import ReadError
from local_rag.reading.converters.converted import Converted, Sections, notes_of
from local_rag.reading.converters.runs import Run, write_runs
from local_rag.reading.converters.table_layout import fill_labels, find_header, pipe_row, pipe_table, table_in_cell
from local_rag.reading.decode import clean, code_page
from local_rag.reading.provenance import make_provenance
from local_rag.text.notes import split_notes

_CODE_PAGE, _USUAL = re.compile(r"(?<!\\)\\ansicpg(\d{1,5})(?!\d)"), "cp1252"
_FONTS, _LONGEST_FONTS = re.compile(r"\{\\fonttbl(?![a-z])"), 1_000_000
_FONT, _DEFAULT_CHARSET = re.compile(r"\\f(\d{1,6})(?!\w)|\\fcharset(\d{1,3})"), "1"
# Sets of characters of Macintosh whose encoding striprtf takes and Python lacks, by the set with their letters.
_ALIKE = {"78": "128", "79": "136", "80": "129", "82": "177", "85": "134", "87": "84", "88": "222"}
_ALIKE |= {"86": _DEFAULT_CHARSET, "89": _DEFAULT_CHARSET}  # as the whole document
_PICTURE = re.compile(r"\\pict\b")
_INFORMATION = r"\{\\%s ([^{}\\]{1,500})\}"
_HEADING_STYLE = re.compile(r"\{\\s(\d{1,5})\b[^{};]{0,1000}?(?:heading|Heading|Überschrift|Titre|Título|Titolo) (\d);")
# Marks are characters for private use. A row begins with the properties of its cells; those below and right of the
# first one of a merged cell are empty. Word gives no empty cells for those on the right: it only moves the right edge.
_ROW_BEGINS, _CELL_ENDS, _ROW_ENDS, _MERGED_DOWN, _MERGED_ACROSS, _CELL_DEFINED = "\ue000\ue001\ue002\ue003\ue004\ue005"
_INNER_CELL_ENDS, _INNER_ROW_ENDS = "\ue006\ue007"  # of a table in a cell
_MARKS = {
    "trowd": _ROW_BEGINS,
    "cell": _CELL_ENDS,
    "row": _ROW_ENDS,
    "clvmrg": _MERGED_DOWN,
    "clmrg": _MERGED_ACROSS,
    "cellx": _CELL_DEFINED,
    "nestcell": _INNER_CELL_ENDS,
    "nestrow": _INNER_ROW_ENDS,
}
_FIRST_LEVEL = 0xE010  # the mark of a heading of level 0
_EDGES = {str(digit): chr(0xE020 + digit) for digit in range(10)} | {"-": "\ue02a"}  # of the number after \\cellx
_MOST_COLUMNS = 63  # of a table in Word
_SAME_EDGE = 60  # twips (1/20 point); rows of one table differ by the width of their borders
_MARKED = re.compile(rf"\\\\|\\({'|'.join(_MARKS)}|outlinelevel|s)(-?\d{{1,10}})?(?![a-zA-Z\d]) ?")
_HEADING = re.compile("[\ue010-\ue01f]")
# Before the text of a paragraph stands how many tables it is in, where that is another number than before.
_NO_TABLE = 0xE033
_IN_TABLE, _INNER = re.compile("[\ue034-\ue03c]"), re.compile("([\ue006\ue007\ue033-\ue03c])")
_ANY_MARK = re.compile("[\ue000-\ue03c]")
_CELL_OF_ANY = re.compile("[\ue001\ue006\ue007]")
_PROPERTIES = re.compile("[\ue003-\ue005\ue020-\ue02a\\s]*")
_DEEPEST = 9  # level of a heading, and of a table in the cells of others
_TOKEN = re.compile(
    r"\\(?P<word>[a-z]{1,40})(?P<number>-?\d{1,10})?[ ]?|\\'[0-9a-fA-F]{2}|\\[^a-z]"
    r"|(?P<brace>[{}])|[^\\{}\r\n]+|[\r\n]+|\\",
    re.DOTALL,
)
_ENDS = {"par", "line", "cell", "row", "sect", "page", "column", "nestcell", "nestrow"}
_CHARACTERS = {"tab", "emdash", "endash", "emspace", "enspace", "bullet", "lquote", "rquote", "ldblquote", "rdblquote"}
_OF_OUTER = {"cell", "row"}
_NOTES, _NOTE = {"footnote": "Note", "annotation": "Comment"}, re.compile(r"\((Note|Comment):\s+")
_FRAMES, _LABELS = re.compile(r"header[lrf]?|footer[lrf]?"), {"listtext", "pntext"}
_BOXES = {"shp", "shpinst", "shptxt", "do", "dptxbxtext", "object", "result"}
_HIDING, _DELETING = {"v"}, {"deleted", "mvf"}
# Characters for private use that stand before a run, by what marks it: whether it is raised, and whether struck out.
_RUN_MARKS = {
    (0, False): "\ue02b",
    (1, False): "\ue02c",
    (-1, False): "\ue02d",
    (0, True): "\ue030",
    (1, True): "\ue031",
    (-1, True): "\ue032",
}
_SPACE = "{} "  # that does not end a control word
_ALL_RUN_MARKS = "".join(_RUN_MARKS.values())
_MARKED_RUN = re.compile(f"([{_ALL_RUN_MARKS}]|^)([^{_ALL_RUN_MARKS}]*)")
_RAISING = {"super": 1, "up": 1, "sub": -1, "dn": -1, "nosupersub": 0}
_STRIKING = {"strike", "striked"}  # with one line, and with two
_OFF = "0"
_RTF_DICTIONARY = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans Serif"
    rb"SymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0" + b"\r\n" + rb"\par "
    rb"\pard\plain\f0\fs20\b\i\u\tab\tx"
)


def convert_rtf(data: bytes) -> Converted:
    """Convert a document of a word processor, with its headings and tables."""
    from striprtf.striprtf import rtf_to_text

    source = data.decode("latin-1").lstrip()  # characters beyond ASCII are escaped
    if not source.startswith("{\\rtf"):
        raise ReadError("not a file in Rich Text Format")
    page = _CODE_PAGE.search(source, 0, 4096)
    if page:  # or striprtf would read UTF-8 where Python lacks the page
        source = f"{source[: page.start()]}\\ansi{source[page.end() :]}"
    left_out = Counter({"image*": len(_PICTURE.findall(source))})
    marked = _with_marks(rewrite(_with_charsets(source), left_out))
    encoding = (code_page(int(page[1])) if page else None) or _USUAL
    text = rtf_to_text(marked, encoding=encoding, errors="replace")
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # emoji are escaped as two halves
    sections = Sections()
    for part in _parts(_NOTE.sub(r"(\1: ", write_marked(clean(text)))):
        if isinstance(part, str):
            _add_paragraphs(sections, part)
        else:
            _add_table(sections, part)
    title, author = (re.search(_INFORMATION % name, source[:20_000]) for name in ("title", "author"))
    return sections.converted(
        title[1] if title else None,
        notes=notes_of(left_out),
        provenance=make_provenance(author=author[1] if author else None),
    )


def _with_charsets(source: str) -> str:
    """Reduce the table of fonts to those that name a set of characters: striprtf fails on any other."""
    begun = _FONTS.search(source[:_LONGEST_FONTS])
    if begun is None:
        return source
    end, depth = len(source), 1
    for brace in re.finditer("[{}]", source[begun.end() : _LONGEST_FONTS]):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            end = begun.end() + brace.start()
            break
    font, charsets = "", dict[str, str]()
    for found in _FONT.finditer(source, begun.end(), end):
        font = found[1] or font
        charset = _ALIKE.get(found[2], found[2])
        if charset not in {None, _DEFAULT_CHARSET}:
            charsets[font] = charset
    table = "".join(f"{{\\f{name}\\fcharset{charset} x;}}" for name, charset in charsets.items())
    return source[: begun.end()] + table + source[end:]


def _with_marks(source: str) -> str:
    """Put a mark in the place of each control word that structures the document."""
    levels = {style: int(level) for style, level in _HEADING_STYLE.findall(source[:1_000_000])}

    def mark(found: re.Match[str]) -> str:
        word, number = found[1], found[2]
        if word in _MARKS:
            edge = "".join(_EDGES[one] for one in number or "") if word == "cellx" else ""
            return "".join(map(_mark, edge + _MARKS[word]))
        level = int(number or _DEEPEST) + 1 if word == "outlinelevel" else levels.get(number or "", 0) if word else 0
        return _mark(chr(_FIRST_LEVEL + level)) if 0 < level <= _DEEPEST else found[0]

    return _MARKED.sub(mark, source)


def _parts(text: str) -> Iterator[str | list[str]]:
    """Yield texts, and the rows of each table as they are."""
    rows: list[str] = []
    *with_rows, after = text.split(_ROW_ENDS)
    for piece in with_rows:
        before, begins, row = piece.partition(_ROW_BEGINS)
        if not begins or _CELL_OF_ANY.search(before):
            before, cells = _beginning(before)
            properties = _properties_of(row)
            row = properties + cells + row.removeprefix(properties)
        if _ANY_MARK.sub("", before).strip():
            if rows:
                yield rows
            yield before
            rows = []
        rows.append(row)
    if rows:
        yield rows
    yield after


def _beginning(text: str) -> tuple[str, str]:
    """Split off where a row begins without its properties: they may stand within it, at its end or nowhere."""
    if first := _IN_TABLE.search(text):
        return text[: first.start()], text[first.start() :]
    before, _, row = text.rpartition("\n")
    return before, row


def _properties_of(row: str) -> str:
    """Return the marks of the properties that precede the texts of a row."""
    begun = _PROPERTIES.match(row)
    return begun[0] if begun else ""


def _add_paragraphs(sections: Sections, text: str) -> None:
    plain: list[str] = []
    for line in text.split("\n"):
        level = _HEADING.search(line)
        said = _ANY_MARK.sub("", _CELL_OF_ANY.sub(" ", line))
        if level and said.strip():
            sections.add("\n".join(plain).strip("\n"))
            title, notes = split_notes(said)
            plain = [notes] if notes else []
            sections.heading(" ".join(title.split()), ord(level[0]) - _FIRST_LEVEL)
        else:
            plain.append(said)
    sections.add("\n".join(plain).strip("\n"))


def _add_table(sections: Sections, written: Sequence[str]) -> None:
    """Add a table; one of a single column is only layout."""
    rows: list[list[str]] = []
    spanned = set[int]()
    columns = max((_edges(line) for line in written), key=len)
    for line in written:
        cells, is_spanned = _cells(line, rows[-1] if rows else [], columns)
        if any(cells):
            spanned |= {len(rows)} if is_spanned else set()
            rows.append(cells)
    if max(map(len, rows), default=0) <= 1:
        sections.add("\n".join(cell for row in rows for cell in row))
        return
    header = find_header(rows, spanned)
    for row in rows[: header.captions]:
        sections.add("; ".join(dict.fromkeys(filter(None, row))))
    body = rows[header.captions + header.rows :]
    body = [list(row) for _, row in fill_labels(list(enumerate(body)))[0]] if header.names else body
    text = pipe_table(header.names, body) if header.names else "\n".join(map(pipe_row, body))
    first = text.find("\n", text.find("\n") + 1) + 1 if header.names else 0
    sections.add(text, tables=[Table(0, first or len(text), len(text), header.names)] if header.names else [])


def _properties(row: str) -> list[str]:
    """Return the marks of each cell."""
    return _properties_of(row).split(_CELL_DEFINED)[:-1]


def _edges(row: str) -> list[int]:
    """Return where the cells of a row end, from left to right, or nothing if it does not say so."""
    digits = {mark: digit for digit, mark in _EDGES.items()}
    numbers = ["".join(digits.get(mark, "") for mark in one) for one in _properties(row)]
    edges = [int(number) if re.fullmatch("-?[0-9]+", number) else 0 for number in numbers]
    return edges if len(edges) <= _MOST_COLUMNS and edges == sorted(set(edges)) else []


def _widths(edges: Sequence[int], columns: Sequence[int]) -> list[int]:
    """Return how many columns each cell of a row covers, or nothing if its edges are not those of the columns."""
    widths, column = [], 0
    for edge in edges:
        width = next((at for at, one in enumerate(columns[column:], 1) if abs(one - edge) <= _SAME_EDGE), 0)
        if not width:
            return []
        widths.append(width)
        column += width
    return widths


def _cells(row: str, above: Sequence[str], columns: Sequence[int]) -> tuple[list[str], bool]:
    """Return the cells of a row, merged ones in all their places, and whether one covers several columns."""
    properties = _properties(row)
    written = [_said(cell) for cell in row.split(_CELL_ENDS)]
    written = written if written[-1] else written[:-1]
    widths = _widths(_edges(row), columns)
    cells: list[str] = []
    is_spanned = False
    for number, cell in enumerate(written):
        marks = properties[number] if number < len(properties) else ""
        width = widths[number] if number < len(widths) else 1
        said = cell
        if not cell and _MERGED_DOWN in marks and len(cells) < len(above):
            said = above[len(cells)]
        elif not cell and _MERGED_ACROSS in marks and cells:
            said, is_spanned = cells[-1], True
        is_spanned |= bool(said) and width > 1
        cells += [said] * width
    return cells, is_spanned


@dataclass(slots=True)
class _Open:
    """What has been read of a cell, or of a table in a cell: its rows, the cells of the last one, and its last text."""

    rows: list[list[str]] = field(default_factory=list)
    row: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def end_cell(self) -> None:
        self.row.append(" ".join(" ".join(self.said).split()))
        self.said = []

    def end_row(self) -> None:
        if any(map(str.strip, self.said)):
            self.end_cell()
        if any(self.row):
            self.rows.append(self.row)
        self.row = []


def _said(cell: str) -> str:
    """Write what a cell says in one line, with the tables in it."""
    opened = [_Open()]

    def close() -> None:
        opened[-1].end_row()
        inner = opened.pop()
        opened[-1].said.append(_in_cell(inner.rows))

    for at, piece in enumerate(_INNER.split(cell)):
        if not at % 2:
            opened[-1].said.append(_ANY_MARK.sub("", piece))
        elif piece == _INNER_CELL_ENDS:
            opened[-1].end_cell()
        elif piece == _INNER_ROW_ENDS:
            opened[-1].end_row()
        else:
            level = max(ord(piece) - _NO_TABLE, 1)
            while len(opened) > level:
                close()
            opened += [_Open() for _ in range(level - len(opened))]
    while len(opened) > 1:
        close()
    opened[0].end_row()
    return " ".join(said for row in opened[0].rows for said in row if said)


def _in_cell(rows: Sequence[Sequence[str]]) -> str:
    """Write a table in a cell; one of a single column is only layout."""
    if max(map(len, rows), default=0) <= 1:
        return " ".join(said for row in rows for said in row)
    header = find_header(rows)
    captions = ["; ".join(dict.fromkeys(filter(None, row))) for row in rows[: header.captions]]
    body = [row for _, row in fill_labels(list(enumerate(rows[header.captions + header.rows :])))[0]]
    return " ".join([*captions, table_in_cell(header.names, body)])


@dataclass(frozen=True, slots=True)
class _State:
    """What holds in a group."""

    hidden: bool = False
    deleted: bool = False
    raised: int = 0
    struck: bool = False
    closing: str = ""  # what is written at the end of the group
    is_label: bool = False
    is_left_out: bool = False
    is_skipped: bool = False  # by striprtf, with any mark in it
    is_note: bool = False
    tables: int = 0  # that a paragraph is in


def rewrite(source: str, left_out: Counter[str]) -> str:
    """Return the source without what is deleted or hidden, and with a mark before each run; see `write_marked`."""
    rewriter = _Rewriter()
    for token in _TOKEN.finditer(source):
        rewriter.take(token[0], token["word"], token["number"], token["brace"])
    left_out["hidden word*"] += len("".join(rewriter.hidden).split())
    return "".join(rewriter.written)


class _Rewriter:
    """Take one token after the other; `written` is the new source."""

    def __init__(self) -> None:
        from striprtf.striprtf import destinations

        self._skipped = destinations
        self.written: list[str] = []
        self.hidden: list[str] = []
        self._stack: list[_State] = []
        self._state, self._marks, self._tables = _State(), (0, False), 0
        self._label: list[str] = []
        self._begins = False  # a group has begun
        self._is_starred = False  # with a mark that its destination may be skipped

    def take(self, text: str, word: str | None, number: str | None, brace: str | None) -> None:
        """Take a token: a brace, a control word, or text."""
        if brace == "{":
            self._stack.append(self._state)
            self._state = replace(self._state, closing="")
            self.written.append(text)
            self._begins, self._is_starred = True, False
            return
        if text == "\\*" and self._begins:
            self._is_starred = True
            return
        begins, is_starred = self._begins, self._is_starred
        self._begins = self._is_starred = False
        if brace == "}":
            self._close()
            return
        if begins and not self._state.is_skipped:
            if word and (opened := _opened(word, self._state)):
                self._state, begun = opened
                self.written.append(begun)
                return
            if is_starred or word in self._skipped:
                self._state = replace(self._state, is_skipped=True)
        # Words that mark a run are kept, or the text behind one would belong to the word before.
        self._state = _changed(word, number, self._state) if word else self._state
        self._write(f"\\*{text}" if is_starred else text, word)

    def _close(self) -> None:
        if self._state.closing and not self._state.is_left_out:
            while self.written and (self.written[-1].isspace() or self.written[-1] == _SPACE):
                self.written.pop()
            self.written.append(self._state.closing)
        before = self._stack.pop() if self._stack else _State()
        if self._state.is_label and not before.is_label:
            self._mark_tables(before)
            self.written.append(_label(self._label))
            self._label = []
        self._state = before
        self.written.append("}")

    def _write(self, text: str, word: str | None) -> None:
        state = self._state
        is_text = word is None or word in _ENDS or word in _CHARACTERS or word == "u"
        if state.is_skipped or word == "nestrow":
            self.written.append(text)
            return
        if state.is_left_out or (is_text and (state.deleted or state.hidden)):
            if state.hidden and word is None and not state.deleted:
                self.hidden.append(text)
            return
        if state.is_label:
            self._label.append(" " if word == "tab" else text if is_text else "")
            return
        if state.is_note and word in _ENDS:
            text = _SPACE
        if is_text and text.strip("\r\n"):
            self._mark_tables(replace(state, tables=min(state.tables, 1)) if word in _OF_OUTER else state)
        wanted = (0, False) if word in _ENDS else (state.raised, state.struck)
        if is_text and wanted != self._marks and text.strip("\r\n"):
            self.written.append(_mark(_RUN_MARKS[wanted]))
            self._marks = wanted
        self.written.append(text)

    def _mark_tables(self, state: _State) -> None:
        if state.tables != self._tables and not state.is_note:
            self._tables = state.tables
            self.written.append(_mark(chr(_NO_TABLE + state.tables)))


def write_marked(text: str) -> str:
    """Write the runs behind the marks of `rewrite` as they are marked."""
    marks = {mark: marked for marked, mark in _RUN_MARKS.items()} | {"": (0, False)}
    return write_runs(Run(found[2], *marks[found[1]]) for found in _MARKED_RUN.finditer(text))


def _opened(word: str, state: _State) -> tuple[_State, str] | None:
    """Return what holds in a group that begins with a word, and what is written in the word's place."""
    if word in _NOTES:
        return replace(state, closing=")", raised=0, struck=False, is_note=True), f" ({_NOTES[word]}: "
    if _FRAMES.fullmatch(word) or word in _BOXES:
        return state, ""
    if word in _LABELS:
        return replace(state, is_label=True), ""
    # A property of a shape, its picture for older programs, and of a table in a cell what they read instead.
    if word in {"sp", "shprslt", "nesttableprops", "nonesttables"}:
        return replace(state, is_left_out=True), ""
    return None


def _changed(word: str, number: str | None, state: _State) -> _State:
    """Return what holds after a word, which may hide, delete, raise or strike out text or put it into a table."""
    is_on = number != _OFF
    if (tables := _tables(word, number, state.tables)) != state.tables:
        return replace(state, tables=tables)
    if word in _RAISING:
        return replace(state, raised=_RAISING[word] if is_on else 0)
    if word in _STRIKING:
        return replace(state, struck=is_on)
    if word in _HIDING:
        return replace(state, hidden=is_on)
    if word in _DELETING:
        return replace(state, deleted=is_on)
    return replace(state, hidden=False, deleted=False, raised=0, struck=False) if word == "plain" else state


def _tables(word: str, number: str | None, tables: int) -> int:
    """Return in how many tables a paragraph is after a word of its properties."""
    if word == "itap":
        return min(max(int(number or 1), 0), _DEEPEST)
    return 0 if word == "pard" else max(tables, 1) if word == "intbl" else tables


def _label(written: list[str]) -> str:
    """Write the number of a paragraph as the document shows it; a sign of any other kind as a dash."""
    text = " ".join("".join(written).split())
    return f"{text} " if any(map(str.isalnum, re.sub(r"\\'[0-9a-fA-F]{2}|\\u-?\d+ ?\??", "", text))) else "- "


def _mark(character: str) -> str:
    return f"{{\\uc1\\u{ord(character)}?}}"


def expand_rtf(data: bytes) -> bytes:
    """Expand rich text that is compressed as [MS-OXRTFCP] describes."""
    if len(data) < 16:  # noqa: PLR2004  the header
        raise ReadError("damaged rich text in a message")
    size, kind = struct.unpack_from("<4xI4s", data)
    if kind == b"MELA":
        return data[16 : 16 + size]
    window = bytearray(_RTF_DICTIONARY) + bytearray(4096 - len(_RTF_DICTIONARY))
    place, position, expanded = len(_RTF_DICTIONARY), 16, bytearray()
    while position < len(data) and len(expanded) < size:
        control, position = data[position], position + 1
        for bit in range(8):
            if control >> bit & 1:
                if position + 2 > len(data):
                    return bytes(expanded)
                reference = int.from_bytes(data[position : position + 2], "big")
                offset, length, position = reference >> 4, (reference & 15) + 2, position + 2
                if offset == place:
                    return bytes(expanded)
            else:
                if position >= len(data):
                    return bytes(expanded)
                window[place], offset, length, position = data[position], place, 1, position + 1
            for step in range(length):
                byte = window[(offset + step) % 4096]
                expanded.append(byte)
                window[place] = byte
                place = (place + 1) % 4096
    return bytes(expanded)
