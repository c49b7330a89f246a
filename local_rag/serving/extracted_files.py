"""Write an extracted table into a file: XLSX, CSV or JSON lines."""

import io
import os
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

from local_rag.display import Name, csv_cell, display_path, one_line, printable, printable_json
from local_rag.document_records import page_number
from local_rag.errors import LocalRagError
from local_rag.extraction.cells import Cell
from local_rag.extraction.columns import Column
from local_rag.extraction.extraction import Row, Table
from local_rag.files import require_place, writable, write_whole
from local_rag.serving.answer_files import csv_line, write_cell, write_row

_WIDTH, _WIDE, _MOST_LINKED = 22, 60, 60_000  # a workbook holds some 65,000 links
_LARGEST = 10**15  # whole numbers above it lose digits in a spreadsheet
_NAMES = ("document", "title", "newest version")
_DETAILS = "document column state value quotation page line heading probability remark by".split()  # noqa: SIM905


def require_form(path: Path) -> None:
    """Raise LocalRagError for a file that no table can be written to."""
    if path.suffix.lower() not in FORMS:
        raise LocalRagError(f"{display_path(path)} does not end in .xlsx, .csv or .jsonl; name a file that does.")
    require_place(path)


def write_table(path: Path, table: Table, name: Name = display_path) -> None:
    """Write a table to a file with the form of its suffix; what the file held before is replaced."""
    with writable(display_path(path)):
        write_whole(path.resolve(), FORMS[path.suffix.lower()](table, name), durable=True)


def cell_text(cell: Cell | None) -> str:
    """Return what a cell shows: its value, marked if it is unsure; nothing if it is not stated or was not asked."""
    if cell is None or not cell.is_filled:
        return "" if cell is None else "not stated"
    return f"{printable(cell.text)} (unsure)" if cell.state == "unsure" else printable(cell.text)


def row_as_dict(columns: tuple[Column, ...], row: Row, name: Name = display_path) -> dict[str, Any]:
    """Return a row as a dictionary for JSON, with `name` for places."""
    cells = {
        column.name: None if cell is None else cell_as_dict(cell)
        for column, cell in zip(columns, row.cells, strict=True)
    }
    newest = name(row.newest) if row.newest else None
    return {"document": name(row.path), "title": row.title, "newest_version": newest, "cells": cells}


def cell_as_dict(cell: Cell) -> dict[str, Any]:
    """Return a cell as a dictionary for JSON."""
    told = {name: getattr(cell, name) for name in ("state", "value", "text", "quotation", "page", "line")}
    probability = None if cell.probability is None else round(cell.probability, 3)
    more = {
        "page_label": cell.page_label or None,
        "heading": cell.heading or None,
        "probability": probability,
        "remark": cell.note or None,
        "by": cell.by,
    }
    return told | more


def _json_lines(table: Table, name: Name) -> bytes:
    return "".join(f"{printable_json(row_as_dict(table.columns, row, name))}\n" for row in table.rows).encode()


def _csv(table: Table, name: Name) -> bytes:
    """Return a line for each document: its cells, then for each column the quotation and the place."""
    names = [column.name for column in table.columns]
    head = [*_NAMES, *names, *(f"{one}: {what}" for one in names for what in ("quotation", "place"))]
    lines = [csv_line([csv_cell(one) for one in head])]
    for row in table.rows:
        path = one_line(name(row.path))
        values = [path, one_line(row.title), one_line(name(row.newest)) if row.newest else ""]
        values += [cell_text(cell) for cell in row.cells]
        for cell in row.cells:
            values += [printable(cell.quotation), place_of(cell, path)] if cell and cell.is_filled else ["", ""]
        lines.append(csv_line([csv_cell(value) for value in values]))
    return "".join(lines).encode()


def place_of(cell: Cell, path: str) -> str:
    """Return where the quotation of a cell stands."""
    if cell.page is not None:
        return f"{path} page {page_number(cell.page, cell.page_label)}"
    if cell.line is not None:
        return f"{path}:{cell.line}"
    return f"{path}, {one_line(cell.heading)}" if cell.heading else path


def _xlsx(table: Table, name: Name) -> bytes:
    import openpyxl  # type: ignore[import-untyped]
    from openpyxl.utils import get_column_letter  # type: ignore[import-untyped]

    workbook = openpyxl.Workbook()
    sheet, details = workbook.active, workbook.create_sheet("Quotations")
    sheet.title = "Table"
    shown = [name for name in _NAMES if name != "newest version" or any(row.newest for row in table.rows)]
    write_row(sheet, 1, [*shown, *(column.name for column in table.columns)], bold=True)
    write_row(details, 1, _DETAILS, bold=True)
    detail = 1
    for number, row in enumerate(table.rows, start=2):
        path = one_line(name(row.path))
        known = [path, one_line(row.title), one_line(name(row.newest)) if row.newest else ""]
        write_row(sheet, number, known[: len(shown)])
        for at, (column, cell) in enumerate(zip(table.columns, row.cells, strict=True), start=len(shown) + 1):
            if cell is None:
                continue
            _fill(sheet.cell(number, at), column, cell)
            if not cell.is_filled:
                continue
            likely = None if cell.probability is None else round(cell.probability, 3)
            place = [printable(cell.quotation), cell.page, cell.line, printable(cell.heading)]
            remarks = [likely, printable(cell.note), cell.by]
            detail += 1
            write_row(details, detail, [path, column.name, cell.state, cell_text(cell), *place, *remarks])
            if detail <= _MOST_LINKED:
                sheet.cell(number, at).hyperlink = f"#Quotations!E{detail}"
                details.cell(detail, 2).hyperlink = f"#Table!{get_column_letter(at)}{number}"
                if name is display_path:  # others are not told where the file lies
                    details.cell(detail, 1).hyperlink = f"file://{quote(os.fsencode(row.path))}"
    sheet.freeze_panes = sheet.cell(2, 2)
    details.freeze_panes = "A2"
    for at in range(1, sheet.max_column + 1):
        sheet.column_dimensions[get_column_letter(at)].width = _WIDTH
    for at, width in enumerate([_WIDTH, _WIDTH, 12, _WIDTH, _WIDE, 8, 8, _WIDTH, 12, 40, 10], start=1):
        details.column_dimensions[get_column_letter(at)].width = width
    sheet.auto_filter.ref, details.auto_filter.ref = sheet.dimensions, details.dimensions
    content = io.BytesIO()
    workbook.save(content)
    return content.getvalue()


def _fill(target: Any, column: Column, cell: Cell) -> None:
    """Write a cell of the table as what it is: a number, a date, a share, yes or no; coloured unless it is sure."""
    from openpyxl.styles import Alignment, Font, PatternFill  # type: ignore[import-untyped]

    value, form = _typed(column, cell)
    write_cell(target, value)
    if form:
        target.number_format = form
    target.alignment = Alignment(vertical="top", wrap_text=True)
    if cell.state == "unsure":
        target.fill = PatternFill("solid", fgColor="FFF2CC")
    elif cell.state == "not stated":
        target.font = Font(italic=True, color="808080")
    elif cell.by == "person":
        target.font = Font(bold=True)


def _typed(column: Column, cell: Cell) -> tuple[Any, str]:
    """Return the value of a cell for a spreadsheet, and its number format."""
    value = cell.value
    if not cell.is_filled or value is None:
        return cell_text(cell), ""
    if isinstance(value, bool):
        return value, ""
    if isinstance(value, int | float):
        number = value if abs(value) < _LARGEST else str(value)
        return number, "0.##%" if column.type == "percentage" else ""
    if column.type == "date" and isinstance(value, str) and len(value) == len("2024-05-01"):
        day = date.fromisoformat(value)
        return (day, "yyyy-mm-dd") if day.year >= 1900 else (value, "")  # noqa: PLR2004  a spreadsheet begins there
    if column.type == "amount" and isinstance(value, str):
        number, _, currency = value.partition(" ")
        return float(Decimal(number)), f'#,##0.00 "{currency}"'
    return printable(cell.text), ""


FORMS: Mapping[str, Callable[[Table, Name], bytes]] = {".xlsx": _xlsx, ".csv": _csv, ".jsonl": _json_lines}
