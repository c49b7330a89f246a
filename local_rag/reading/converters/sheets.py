"""Convert spreadsheets and tables of separated values: each row becomes a line that names its columns."""

import csv
import datetime
import io
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple

from local_rag.document_records import Grid, Table
from local_rag.reading.converters.converted import Converted, Sections, parse_xml, related_parts
from local_rag.reading.converters.notation import column_letters
from local_rag.reading.converters.number_format import show_cell
from local_rag.reading.converters.runs import Run, write_runs
from local_rag.reading.converters.sheet_layout import tables_of
from local_rag.reading.converters.table_layout import lines_of_table
from local_rag.reading.decode import decode
from local_rag.reading.provenance import office_provenance
from local_rag.text.cell_values import StoredNumber
from local_rag.text.struck import strike

_DELIMITERS = ",;\t|"
_SAYS_DELIMITER = re.compile(r"\ufeff?\"?sep=([^\s\w\"])\"?\r?\n", re.IGNORECASE)  # a line for Excel
_SAMPLE, _SAMPLE_LINES, _LONGEST_SAMPLE = 64 * 1024, 10, 4 * 1024 * 1024
_MOST_MERGED = 200_000  # cells that take their text from a merged cell
_BLOCK, _OVERLAP = 1 << 20, 1 << 13  # bytes: what is searched for is shorter than the overlap
_MOST = 100_000  # of each kind
_LONGEST_COMMENT = 2000  # characters
_MOST_COMMENTS_BYTES = 20_000_000
_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^<>]*?ref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"')
_MAY_HIDE = re.compile(rb'hidden="|\b(?:ht|width)="0[".]')
_HIDDEN_ROW = re.compile(rb'<(?:\w+:)?row\s[^<>]*?\b(?:hidden="(?:1|true)"|ht="0(?:\.0{0,9})?")[^<>]*>')
_HIDDEN_COLUMNS = re.compile(rb'<(?:\w+:)?col\s[^<>]*?\b(?:hidden="(?:1|true)"|width="0(?:\.0{0,9})?")[^<>]*>')
_ROW_NUMBER = re.compile(rb'\sr="(\d{1,7})"')
_COLUMN_EDGE = {name: re.compile(rb'\s%s="(\d{1,5})"' % name.encode()) for name in ("min", "max")}
_INLINE = re.compile(
    rb'<(?:\w+:)?c\s[^<>]*?\br="([A-Z]{1,3}\d{1,7})"[^<>]*>\s*<(?:\w+:)?is>(.{1,8000}?)</(?:\w+:)?is>', re.DOTALL
)
_MOST_COLUMNS, _MOST_NAMED = 16_384, 3  # of a sheet; hidden rows or columns in a note
_FORMULA = re.compile(
    rb'<(?:\w+:)?(?>c\s[^<>]*?r="([A-Z]{1,3}\d{1,7})")[^<>]*+>\s*+'
    rb"<(?:\w+:)?f(?:\s[^<>]*+)?/?+(?:(?<=/)>|>[^<]*+</(?:\w+:)?f>)\s*+"
    rb"(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)


@dataclass(slots=True)
class Sheet:
    """The cells of a sheet by row number, which is counted from 1, and what it says of them.

    `spanned` are the numbers of rows with a cell over several columns, and `whole` those that consist of one such cell.
    `uncomputed` are the (row, column) of formulas without a value, and `comments` stand with the names of their cells.
    """

    name: str | None
    rows: dict[int, list[str]] = field(default_factory=dict)
    spanned: set[int] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)
    uncomputed: frozenset[tuple[int, int]] = frozenset()
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: frozenset[int] = frozenset()
    comments: list[tuple[str, str]] = field(default_factory=list)


def _add_sheet(sections: Sections, sheet: Sheet) -> None:
    """Add the tables of a sheet below its name."""
    for number, (first_column, table) in enumerate(tables_of(sheet.rows, sheet.spanned)):
        if sheet.name is not None and not number:
            sections.add(f"## {sheet.name}")
        text = "\n".join(lines_of_table(table, sheet.spanned, sheet.whole))
        sections.add(text, tables=[Table(0, 0, len(text))])  # each row names its columns
        rows = tuple((row, tuple(cells)) for row, cells in table)
        spanned, whole, hidden = (
            frozenset({row for row, _ in rows} & some) for some in (sheet.spanned, sheet.whole, sheet.hidden_rows)
        )
        columns = frozenset(one - first_column for one in sheet.hidden_columns)
        sections.add_grids(
            [
                Grid(
                    sheet.name or "", rows, first_column, spanned, whole, sheet.uncomputed,
                    hidden_rows=hidden, hidden_columns=columns,
                )
            ]
        )  # fmt: skip


def _notes_of_sheet(sheet: Sheet, where: str) -> Iterator[str]:
    """Say which rows and columns with text a sheet hides, and what the comments on its cells say."""
    width = max(map(len, sheet.rows.values()), default=0)
    filled = (at for at in sorted(sheet.hidden_columns) if at < width)
    columns = [column_letters(at) for at in filled if any(at < len(row) and row[at] for row in sheet.rows.values())]
    rows = [str(number) for number in sorted(sheet.hidden_rows & sheet.rows.keys())]
    for what, names in (("row", rows), ("column", columns)):
        if names:
            some = ", ".join([*names[:_MOST_NAMED], *(["..."] if names[_MOST_NAMED:] else [])])
            many = f"{what} {some}" if len(names) == 1 else f"{len(names)} {what}s ({some})"
            yield f"the hidden {many}{where} {'is' if len(names) == 1 else 'are'} read too"
    for cell, comment in sheet.comments:
        yield f"comment on {cell}{where}: {comment[:_LONGEST_COMMENT]}"


def place_of(row: int, column: int) -> str:
    """Return the name of a cell, of which the row is counted from 1 and the column from 0: B3."""
    return f"{column_letters(column)}{row}"


class Range(NamedTuple):
    """Merged cells: rows are counted from 1, columns from 0."""

    first_row: int
    first_column: int
    last_row: int
    last_column: int


@dataclass(frozen=True, slots=True)
class SheetParts:
    """The merged cells of a sheet, the cells whose formula has no value, comments by cell, and texts of drawings.

    `marked` are the texts by cell of which a part is marked, and which stand in the sheet itself.
    """

    merged: tuple[Range, ...]
    formulas: tuple[str, ...]
    comments: tuple[tuple[str, str], ...]
    boxes: tuple[str, ...]
    hidden_rows: frozenset[int]
    hidden_columns: frozenset[int]
    marked: Mapping[str, str]


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
        marked, struck = dict(_marked_strings(archive)), _struck_styles(workbook)
        for worksheet in workbook.worksheets:
            for index, written in marked.items():
                worksheet._shared_strings[index] = written
            worksheet.reset_dimensions()  # a sheet may claim all of Excel's million rows
            parts = parts_of_sheet(archive, worksheet._worksheet_path)
            rows = enumerate(worksheet.iter_rows(), start=1)
            title = _cell(worksheet.title)
            sheet = Sheet(title, hidden_rows=set(parts.hidden_rows), hidden_columns=parts.hidden_columns)
            for number, row in rows:
                if any(cells := [_shown(cell, from_1904, struck) for cell in row]):
                    sheet.rows[number] = cells
            for cell, text in parts.marked.items():
                row_number, column = coordinate_to_tuple(cell)
                if (found := sheet.rows.get(row_number)) and column <= len(found):
                    found[column - 1] = _cell(text)
            _spread(sheet, parts.merged)
            places = map(coordinate_to_tuple, parts.formulas)
            sheet.uncomputed = frozenset((row, column - 1) for row, column in places)
            sheet.comments += parts.comments
            _add_sheet(sections, sheet)
            if parts.boxes:
                sections.add("\n".join([*([] if sheet.rows else [f"## {title}"]), *parts.boxes]))
            where = f" of the sheet {title}" if len(workbook.worksheets) > 1 else ""
            notes += [*_notes_of(parts, where), *_notes_of_sheet(sheet, where)]
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
    _add_sheet(sections, Sheet(None, {number: row for number, row in cells if any(row)}))
    return sections.converted(None)


def rows_of_csv(text: str) -> Iterator[list[str]] | None:
    """Return the rows of a table of separated values; None for lines of prose."""
    csv.field_size_limit(sys.maxsize)  # the file itself is limited
    said = _SAYS_DELIMITER.match(text)
    text = text[said.end() :] if said else text
    if (delimiter := said[1] if said else _delimiter(_beginning(text))) is None:
        return None
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)


def sections_of_sheets(sheets: Iterable[Sheet]) -> Converted:
    """Write sheets as `convert_xlsx` does."""
    sections, notes, found = Sections(), list[str](), list(sheets)
    for sheet in found:
        sheet.name = _cell(sheet.name)
        _add_sheet(sections, sheet)
        notes += _notes_of_sheet(sheet, f" of the sheet {sheet.name}" if len(found) > 1 else "")
    return sections.converted(None, notes=tuple(notes))


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


def _spread(sheet: Sheet, merged: Iterable[Range]) -> None:
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


def _notes_of(parts: SheetParts, where: str) -> Iterator[str]:
    if parts.formulas:
        some = ", ".join([*parts.formulas[:3], *(["..."] if parts.formulas[3:] else [])])
        yield (
            f"{len(parts.formulas)} {'formulas have' if len(parts.formulas) > 1 else 'formula has'} no stored value "
            f"({some}{where}); open the file in a spreadsheet program and save it"
        )


def _shown(cell: Any, from_1904: bool, struck: Collection[int]) -> str:
    """Return a cell as the sheet shows it; what is struck out is no number."""
    value = cell.value
    if value is None:
        return ""
    is_struck = bool(struck) and cell._style_id in struck
    if isinstance(value, int | float) and not isinstance(value, bool):
        shown = show_cell(value, cell.number_format or "General", from_1904=from_1904)
        return strike(shown) if is_struck else StoredNumber(shown, value)
    return strike(_cell(value)) if is_struck else _cell(value)


def _struck_styles(workbook: Any) -> frozenset[int]:
    """Return the styles of cells that strike out what stands in them."""
    fonts = {at for at, font in enumerate(workbook._fonts) if font.strike}
    return frozenset(at for at, style in enumerate(workbook._cell_styles) if style.fontId in fonts)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()  # as sheets show it
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    return " ".join(str(value).split())


def parts_of_sheet(archive: zipfile.ZipFile, path: str) -> SheetParts:
    """Search the parts of one sheet; `path` is that of the sheet in the archive."""
    from openpyxl.utils.cell import column_index_from_string

    merged: dict[Range, None] = {}
    formulas: dict[str, None] = {}
    rows, columns, marked = set[int](), set[int](), dict[str, str]()
    for block in _blocks(archive, path):
        for found in _MERGED.finditer(block):
            left, top, right, bottom = (part.decode() for part in found.groups())
            first, last = column_index_from_string(left) - 1, column_index_from_string(right) - 1
            merged[Range(int(top), first, int(bottom), last)] = None
        for found in _FORMULA.finditer(block):
            formulas[found[1].decode()] = None
        if _MAY_HIDE.search(block):
            rows |= {int(number[1]) for row in _HIDDEN_ROW.finditer(block) if (number := _ROW_NUMBER.search(row[0]))}
            for one in _HIDDEN_COLUMNS.finditer(block):
                edges = [_COLUMN_EDGE[name].search(one[0]) for name in ("min", "max")]
                if all(edges):
                    first, last = (int(edge[1]) for edge in edges if edge)
                    columns |= set(range(first - 1, min(last, first + _MOST_COLUMNS)))
        if b"<strike" in block or b":strike" in block:
            for inline in _INLINE.finditer(block):
                if b"strike" in inline[2]:
                    marked[inline[1].decode()] = write_runs(map(_run, _fragment(inline[2]).iterfind("{*}r")))
        if len(merged) > _MOST or len(formulas) > _MOST:
            break
    # Comments by cell, without the names of their authors.
    comments = ((cell, text[:_LONGEST_COMMENT]) for cell, text in _texts(archive, path, "comments", "{*}comment"))
    boxes = (text for _, text in _texts(archive, path, "drawing", "{*}txBody/{*}p"))
    return SheetParts(
        tuple(merged), tuple(formulas), tuple(comments), tuple(boxes), frozenset(rows), frozenset(columns), marked
    )


def _fragment(content: bytes) -> Any:
    """Parse a part of a sheet, in which prefixes of names may stand for any namespace."""
    from lxml import etree

    return etree.fromstring(b"<is>" + content + b"</is>", etree.XMLParser(recover=True, resolve_entities=False))


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


def _marked_strings(archive: zipfile.ZipFile) -> Iterator[tuple[int, str]]:
    """Yield the strings of which a part is raised, lowered or struck out, which openpyxl does not tell, by number."""
    from lxml import etree

    with suppress(KeyError, etree.XMLSyntaxError):
        strings = archive.read("xl/sharedStrings.xml")
        if b"vertAlign" not in strings and b"strike" not in strings:
            return
        for number, string in enumerate(parse_xml(strings).iterfind("{*}si")):
            if any(string.find(f"{{*}}r/{{*}}rPr/{{*}}{mark}") is not None for mark in ("vertAlign", "strike")):
                yield number, write_runs(map(_run, string.iterfind("{*}r")))


def _run(run: Any) -> Run:
    place, line = run.find("{*}rPr/{*}vertAlign"), run.find("{*}rPr/{*}strike")
    raised = 0 if place is None else {"superscript": 1, "subscript": -1}.get(place.get("val"), 0)
    struck = line is not None and line.get("val", "1") not in {"0", "false"}
    return Run(run.findtext("{*}t") or "", raised, struck)
