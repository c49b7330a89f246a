"""Convert Rich Text Format: striprtf reads the text, marks in it tell where headings and the cells of tables are."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from local_rag.errors import ReadError
from local_rag.reading.converters.converted import Converted, notes_of
from local_rag.reading.converters.rich_text_marks import rewrite, write_raised
from local_rag.reading.converters.sections import Sections
from local_rag.reading.converters.tables import find_header, pipe_row, pipe_table
from local_rag.reading.decode import clean
from local_rag.reading.provenance import make_provenance
from local_rag.records import Table

_CODE_PAGE = re.compile(r"\\ansicpg(\d{3,5})\b")
_PICTURE = re.compile(r"\\pict\b")
_INFORMATION = r"\{\\%s ([^{}\\]{1,500})\}"
_HEADING_STYLE = re.compile(r"\{\\s(\d{1,5})\b[^{};]{0,1000}?(?:heading|Heading|Überschrift|Titre|Título|Titolo) (\d);")
# Marks are characters for private use. A row begins with the properties of its cells; those below and right of the
# first one of a merged cell are empty. Word gives no empty cells for those on the right: it only moves the right edge.
_ROW_BEGINS, _CELL_ENDS, _ROW_ENDS, _MERGED_DOWN, _MERGED_ACROSS, _CELL_DEFINED = "\ue000\ue001\ue002\ue003\ue004\ue005"
_MARKS = {
    "trowd": _ROW_BEGINS,
    "cell": _CELL_ENDS,
    "row": _ROW_ENDS,
    "clvmrg": _MERGED_DOWN,
    "clmrg": _MERGED_ACROSS,
    "cellx": _CELL_DEFINED,
}
_FIRST_LEVEL = 0xE010  # the mark of a heading of level 0
_EDGES = {str(digit): chr(0xE020 + digit) for digit in range(10)} | {"-": "\ue02a"}  # of the number after \\cellx
_MOST_COLUMNS = 63  # of a table in Word
_SAME_EDGE = 60  # twips (1/20 point); rows of one table differ by the width of their borders
_MARKED = re.compile(r"\\\\|\\(trowd|cell|row|clvmrg|clmrg|cellx|outlinelevel|s)(-?\d{1,10})?(?![a-zA-Z\d]) ?")
_HEADING = re.compile("[\ue010-\ue01f]")
_ANY_MARK = re.compile("[\ue000-\ue02f]")
_PROPERTIES = re.compile("[\ue003-\ue005\ue020-\ue02a\\s]*")
_DEEPEST = 9


def convert_rtf(data: bytes) -> Converted:
    """Convert a document of a word processor, with its headings and tables."""
    from striprtf.striprtf import rtf_to_text

    source = data.decode("latin-1").lstrip()  # characters beyond ASCII are escaped
    if not source.startswith("{\\rtf"):
        raise ReadError("not a file in Rich Text Format")
    page = _CODE_PAGE.search(source, 0, 4096)
    left_out = Counter({"image*": len(_PICTURE.findall(source))})
    marked = _with_marks(rewrite(source, left_out))
    text = rtf_to_text(marked, encoding=f"cp{page[1]}" if page else "cp1252", errors="replace")
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # emoji are escaped as two halves
    sections = Sections()
    for part in _parts(write_raised(clean(text))):
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


def _with_marks(source: str) -> str:
    """Put a mark in the place of each control word that structures the document."""
    levels = {style: int(level) for style, level in _HEADING_STYLE.findall(source[:1_000_000])}

    def mark(found: re.Match[str]) -> str:
        word, number = found[1], found[2]
        level = (
            levels.get(number or "", 0) if word == "s" else int(number or _DEEPEST) + 1 if word == "outlinelevel" else 0
        )
        if word in _MARKS:
            edge = "".join(_EDGES[one] for one in number or "") if word == "cellx" else ""
            return "".join(f"{{\\uc1\\u{ord(one)}?}}" for one in edge + _MARKS[word])
        return f"{{\\uc1\\u{_FIRST_LEVEL + level}?}}" if 0 < level <= _DEEPEST else found[0]

    return _MARKED.sub(mark, source)


def _parts(text: str) -> Iterator[str | list[str]]:
    """Yield texts, and the rows of each table as they are."""
    rows: list[str] = []
    *with_rows, after = text.split(_ROW_ENDS)
    for piece in with_rows:
        before, begins, row = piece.partition(_ROW_BEGINS)
        if not begins:
            before, _, row = piece.rpartition("\n")
        if before.strip():
            if rows:
                yield rows
            yield before
            rows = []
        rows.append(row)
    if rows:
        yield rows
    yield after


def _add_paragraphs(sections: Sections, text: str) -> None:
    """Add paragraphs, of which some are headings."""
    plain: list[str] = []
    for line in text.split("\n"):
        level = _HEADING.search(line)
        said = _ANY_MARK.sub("", line.replace(_CELL_ENDS, " "))
        if level and said.strip():
            sections.add("\n".join(plain).strip("\n"))
            plain = []
            sections.heading(" ".join(said.split()), ord(level[0]) - _FIRST_LEVEL)
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
    text = pipe_table(header.names, body) if header.names else "\n".join(map(pipe_row, body))
    first = text.find("\n", text.find("\n") + 1) + 1 if header.names else 0
    sections.add(text, tables=[Table(0, first or len(text), len(text), header.names)] if header.names else [])


def _properties(row: str) -> list[str]:
    """Return the marks of each cell, which precede the texts of a row."""
    begun = _PROPERTIES.match(row)
    return (begun[0] if begun else "").split(_CELL_DEFINED)[:-1]


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
    written = [" ".join(_ANY_MARK.sub("", cell).split()) for cell in row.split(_CELL_ENDS)]
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
