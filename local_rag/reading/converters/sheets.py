"""Convert spreadsheets and tables of separated values: each row becomes a line that names its columns."""

import csv
import datetime
import io
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Any, NamedTuple

from local_rag.reading.converters.converted import Converted, Sections, parse_xml, related_parts
from local_rag.reading.converters.notation import subscript, superscript
from local_rag.reading.converters.number_format import show_cell
from local_rag.reading.converters.tables import Row, lines_of_table
from local_rag.reading.decode import decode
from local_rag.reading.provenance import office_provenance
from local_rag.records import Grid, Table
from local_rag.text.cell_values import StoredNumber

_DELIMITERS = ",;\t|"
_SAYS_DELIMITER = re.compile(r"\ufeff?\"?sep=([^\s\w\"])\"?\r?\n", re.IGNORECASE)  # a line for Excel
_SAMPLE, _SAMPLE_LINES, _LONGEST_SAMPLE = 64 * 1024, 10, 4 * 1024 * 1024
_MOST_MERGED = 200_000  # cells that take their text from a merged cell
_BLOCK, _OVERLAP = 1 << 20, 1 << 13  # bytes: what is searched for is shorter than the overlap
_MOST = 100_000  # of each kind
_LONGEST_COMMENT = 2000  # characters
_MOST_COMMENTS_BYTES = 20_000_000
_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^<>]*?ref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"')
_FORMULA = re.compile(
    rb'<(?:\w+:)?(?>c\s[^<>]*?r="([A-Z]{1,3}\d{1,7})")[^<>]*+>\s*+'
    rb"<(?:\w+:)?f(?:\s[^<>]*+)?/?+(?:(?<=/)>|>[^<]*+</(?:\w+:)?f>)\s*+"
    rb"(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)


@dataclass(slots=True)
class _Sheet:
    """The cells of a sheet by row number.

    `spanned` are the numbers of rows with a cell over several columns, and `whole` those that consist of one such cell.
    `uncomputed` are the (row, column) of formulas without a value.
    """

    rows: dict[int, list[str]] = field(default_factory=dict)
    spanned: set[int] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)
    uncomputed: frozenset[tuple[int, int]] = frozenset()


def _add_sheet(sections: Sections, name: str | None, sheet: _Sheet) -> None:
    """Add the tables of a sheet below its name."""
    for number, (first_column, table) in enumerate(_tables_of(sheet)):
        if name is not None and not number:
            sections.add(f"## {name}")
        text = "\n".join(lines_of_table(table, sheet.spanned, sheet.whole))
        sections.add(text, tables=[Table(0, 0, len(text))])  # each row names its columns
        rows = tuple((row, tuple(cells)) for row, cells in table)
        spanned, whole = ({row for row, _ in rows} & some for some in (sheet.spanned, sheet.whole))
        grid = Grid(name or "", rows, first_column, frozenset(spanned), frozenset(whole), sheet.uncomputed)
        sections.add_grids([grid])


class Range(NamedTuple):
    """Merged cells: rows are counted from 1, columns from 0."""

    first_row: int
    first_column: int
    last_row: int
    last_column: int


@dataclass(frozen=True, slots=True)
class SheetParts:
    """The merged cells of a sheet, the cells whose formula has no value, comments by cell, and texts of drawings."""

    merged: tuple[Range, ...]
    formulas: tuple[str, ...]
    comments: tuple[tuple[str, str], ...]
    boxes: tuple[str, ...]


def convert_xlsx(data: bytes) -> Converted:
    """Write each sheet as a section, with its numbers as the sheet shows them.

    Formulas without a stored value, and comments, become notes.
    """
    import openpyxl  # type: ignore[import-untyped]
    from openpyxl.utils.cell import coordinate_to_tuple  # type: ignore[import-untyped]
    from openpyxl.utils.datetime import CALENDAR_MAC_1904  # type: ignore[import-untyped]

    workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    # Each number is shown by its format here: openpyxl takes some formats for dates that are none.
    workbook._date_formats, workbook._timedelta_formats = set(), set()
    from_1904 = workbook.epoch == CALENDAR_MAC_1904
    sections, notes = Sections(), list[str]()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        raised = dict(_raised_strings(archive))
        for worksheet in workbook.worksheets:
            for index, written in raised.items():
                worksheet._shared_strings[index] = written
            worksheet.reset_dimensions()  # a sheet may claim all of Excel's million rows
            parts = parts_of_sheet(archive, worksheet._worksheet_path)
            rows = enumerate(worksheet.iter_rows(), start=1)
            sheet = _Sheet(
                {number: cells for number, row in rows if any(cells := [_shown(cell, from_1904) for cell in row])}
            )
            _spread(sheet, parts.merged)
            places = map(coordinate_to_tuple, parts.formulas)
            sheet.uncomputed = frozenset((row, column - 1) for row, column in places)
            title = _cell(worksheet.title)
            _add_sheet(sections, title, sheet)
            if parts.boxes:
                sections.add("\n".join([*([] if sheet.rows else [f"## {title}"]), *parts.boxes]))
            notes += _notes_of(parts, title if len(workbook.worksheets) > 1 else "")
            if worksheet.sheet_state != "visible":
                notes.append(f"the hidden sheet {title} is read too")
    workbook.close()
    made = sections.converted(None, notes=tuple(notes), provenance=office_provenance(data))
    return replace(made, kind="markdown", headings=None)


def convert_csv(data: bytes) -> Converted:
    """Write each row of a table as a line that names its columns."""
    decoded = decode(data)
    if (rows := rows_of_csv(decoded)) is None:
        return Converted(title=None, text=decoded, kind="text")
    cells = ((number, [_cell(value) for value in row]) for number, row in enumerate(rows, start=1))
    sections = Sections()
    _add_sheet(sections, None, _Sheet({number: row for number, row in cells if any(row)}))
    return sections.converted(None)


def rows_of_csv(text: str) -> Iterator[list[str]] | None:
    """Return the rows of a table of separated values; None for lines of prose."""
    csv.field_size_limit(sys.maxsize)  # the file itself is limited
    said = _SAYS_DELIMITER.match(text)
    text = text[said.end() :] if said else text
    if (delimiter := said[1] if said else _delimiter(_beginning(text))) is None:
        return None
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)


def sections_of_sheets(sheets: Iterable[tuple[str, Mapping[int, Sequence[str]]]]) -> Converted:
    """Write the cells of sheets, given by name and row number, as `convert_xlsx` does."""
    sections = Sections()
    for name, rows in sheets:
        _add_sheet(sections, _cell(name), _Sheet({number: list(row) for number, row in rows.items() if any(row)}))
    return sections.converted(None)


def _beginning(text: str) -> str:
    end = 0
    for _ in range(_SAMPLE_LINES):
        end = text.find("\n", end) + 1 or len(text)
    return text[: min(max(end, _SAMPLE), _LONGEST_SAMPLE)]


def _delimiter(sample: str) -> str | None:
    """Return what separates the cells: with it most rows have the same number of cells; None for lines of prose."""
    best: tuple[float, int, str | None] = (0.5, 0, None)
    for delimiter in _DELIMITERS:
        rows = list(csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter, skipinitialspace=True))
        widths = Counter(len(row) for row in rows if len(row) > 1)
        if not widths:
            continue
        # A comma before a space in most places, and none in the first line, separates parts of sentences.
        if len(rows[0]) == 1 and 2 * len(re.findall(f"{re.escape(delimiter)} ", sample)) > sample.count(delimiter):
            continue
        width, count = widths.most_common(1)[0]
        share = count / max(1, sum(map(bool, rows)))
        best = max(best, (share, width, delimiter), key=lambda one: one[:2])
    return best[2]


def _spread(sheet: _Sheet, merged: Iterable[Range]) -> None:
    """Write the text of each merged cell into all the cells that it covers, unless it is a row by itself."""
    left, wide = _MOST_MERGED, max(map(len, sheet.rows.values()), default=0)
    last = max(sheet.rows, default=0)
    for area in merged:
        source = sheet.rows.get(area.first_row, [])
        value = source[area.first_column] if area.first_column < len(source) else ""
        columns = range(area.first_column, min(area.last_column + 1, wide))
        if not value or not columns:
            continue
        for number in range(area.first_row, min(area.last_row, last) + 1):
            if left <= 0:
                return
            left -= len(columns)
            row = sheet.rows.setdefault(number, [])
            row += [""] * (columns[-1] + 1 - len(row))
            others = any(cell for column, cell in enumerate(row) if cell and column not in columns)
            if len(columns) > 1:
                (sheet.spanned if others else sheet.whole).add(number)
            for column in columns if others else columns[:1]:
                row[column] = row[column] or value


def _tables_of(sheet: _Sheet) -> Iterator[tuple[int, Sequence[tuple[int, Row]]]]:
    """Yield each table with its first column: a blank row ends one, and a blank column if the tables begin apart."""
    numbers = sorted(sheet.rows)
    breaks = [0, *(at for at in range(1, len(numbers)) if numbers[at] > numbers[at - 1] + 1), len(numbers)]
    for first, last in pairwise(breaks):
        region = [(number, sheet.rows[number]) for number in numbers[first:last]]
        if region:
            yield from _side_by_side(region)


def _side_by_side(rows: Sequence[tuple[int, Row]]) -> list[tuple[int, Sequence[tuple[int, Row]]]]:
    """Cut rows at blank columns if the blocks beside each other, without captions, do not begin in the same row."""
    captions = next((index for index, (_, row) in enumerate(rows) if sum(map(bool, row)) > 1), 0)
    begins: dict[int, int] = {}
    for index, (_, row) in enumerate(rows[captions:], start=captions):
        for column, cell in enumerate(row):
            if cell:
                begins.setdefault(column, index)
    columns = sorted(begins)
    cuts = [0, *(at for at in range(1, len(columns)) if columns[at] > columns[at - 1] + 1), len(columns)]
    blocks = [columns[first:last] for first, last in pairwise(cuts)]
    firsts = [min(begins[column] for column in block) for block in blocks]
    if len(set(firsts)) <= 1:
        return [(0, rows)]
    cut: list[tuple[int, Sequence[tuple[int, Row]]]] = [(0, rows[:captions])] if captions else []
    for block, first in zip(blocks, firsts, strict=True):
        parts = [(number, row[block[0] : block[-1] + 1]) for number, row in rows[first:]]
        cut.append((block[0], [(number, row) for number, row in parts if any(row)]))
    return cut


def _notes_of(parts: SheetParts, sheet: str) -> Iterator[str]:
    where = f" of the sheet {sheet}" if sheet else ""
    if parts.formulas:
        some = ", ".join([*parts.formulas[:3], *(["..."] if parts.formulas[3:] else [])])
        yield (
            f"{len(parts.formulas)} {'formulas have' if len(parts.formulas) > 1 else 'formula has'} no stored value "
            f"({some}{where}); open the file in a spreadsheet program and save it"
        )
    for cell, comment in parts.comments:
        yield f"comment on {cell}{where}: {comment}"


def _shown(cell: Any, from_1904: bool) -> str:
    value = cell.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return StoredNumber(show_cell(value, cell.number_format or "General", from_1904=from_1904), value)
    return _cell(value)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    return " ".join(str(value).split())


def parts_of_sheet(archive: zipfile.ZipFile, path: str) -> SheetParts:
    """Search the parts of one sheet; `path` is that of the sheet in the archive."""
    from openpyxl.utils.cell import column_index_from_string

    merged: dict[Range, None] = {}
    formulas: dict[str, None] = {}
    for block in _blocks(archive, path):
        for found in _MERGED.finditer(block):
            left, top, right, bottom = (part.decode() for part in found.groups())
            first, last = column_index_from_string(left) - 1, column_index_from_string(right) - 1
            merged[Range(int(top), first, int(bottom), last)] = None
        for found in _FORMULA.finditer(block):
            formulas[found[1].decode()] = None
        if len(merged) > _MOST or len(formulas) > _MOST:
            break
    # Comments by cell, without the names of their authors.
    comments = ((cell, text[:_LONGEST_COMMENT]) for cell, text in _texts(archive, path, "comments", "{*}comment"))
    boxes = (text for _, text in _texts(archive, path, "drawing", "{*}txBody/{*}p"))
    return SheetParts(tuple(merged), tuple(formulas), tuple(comments), tuple(boxes))


def _blocks(archive: zipfile.ZipFile, path: str) -> Iterator[bytes]:
    with archive.open(path.lstrip("/")) as member:
        before = b""
        while block := member.read(_BLOCK):
            yield before + block
            before = (before + block)[-_OVERLAP:]


def _texts(archive: zipfile.ZipFile, path: str, kind: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of elements in the parts of a kind that a sheet refers to, with the cell that each is about."""
    from lxml import etree

    with suppress(KeyError, etree.XMLSyntaxError):
        for _, of, part in related_parts(archive, path.lstrip("/")):
            if of == kind and archive.getinfo(part).file_size <= _MOST_COMMENTS_BYTES:
                for element in islice(parse_xml(archive.read(part)).iterfind(f".//{name}"), _MOST):
                    if text := " ".join("".join(element.itertext("{*}t")).split()):
                        yield element.get("ref", ""), text


def _raised_strings(archive: zipfile.ZipFile) -> Iterator[tuple[int, str]]:
    """Yield the strings with raised or lowered characters, which openpyxl would read as usual ones, by number."""
    from lxml import etree

    with suppress(KeyError, etree.XMLSyntaxError):
        strings = archive.read("xl/sharedStrings.xml")
        if b"vertAlign" not in strings:
            return
        for number, string in enumerate(parse_xml(strings).iterfind("{*}si")):
            if string.find("{*}r/{*}rPr/{*}vertAlign") is not None:
                yield number, "".join(map(_run, string.iterfind("{*}r")))


def _run(run: Any) -> str:
    text = run.findtext("{*}t") or ""
    mark = run.find("{*}rPr/{*}vertAlign")
    place = "" if mark is None else mark.get("val")
    return superscript(text) if place == "superscript" else subscript(text) if place == "subscript" else text
