"""Convert tables: sheets and CSV files."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

from local_rag.reading.converters.converted import Converted
from local_rag.reading.decode import clean, decode
from local_rag.reading.provenance import office_provenance


def convert_xlsx(data: bytes) -> Converted:
    """Write each sheet as a section and each row as a line that names its columns."""
    import openpyxl  # type: ignore[import-untyped]

    workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    sections = []
    for sheet in workbook.worksheets:
        sheet.reset_dimensions()  # a sheet may claim all of Excel's million rows
        lines = list(_lines_of_table([_cell(value) for value in row] for row in sheet.iter_rows(values_only=True)))
        if lines:
            sections.append("\n".join([f"## {_cell(sheet.title)}", "", *lines]))
    workbook.close()
    text = clean("\n\n".join(sections))
    return Converted(None, text, "markdown", provenance=office_provenance(data))


def convert_csv(data: bytes) -> Converted:
    """Write each row of a table as a line that names its columns."""
    text = decode(data)
    try:
        dialect: type[csv.Dialect] = csv.Sniffer().sniff(text[: 64 * 1024], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel_tab if text.count("\t") > text.count(",") else csv.excel
    rows = ([_cell(value) for value in row] for row in csv.reader(io.StringIO(text, newline=""), dialect))
    return Converted(title=None, text="\n".join(_lines_of_table(rows)), kind="text")


def _lines_of_table(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Write a table with rows that can be understood alone: `Row 2: Name: Ada; Born: 1815`.

    The first row with two cells names the columns, unless one of them is a number. Rows above it are captions.
    """
    columns: Sequence[str] | None = None
    for number, row in enumerate(rows, start=1):
        filled = [cell for cell in row if cell]
        if columns is None:
            if len(filled) > 1:
                columns = () if any(re.fullmatch(r"[-+]?[\d.,]+%?", cell) for cell in filled) else row
                if columns:
                    yield f"Columns: {'; '.join(filled)}"
                    continue
            elif filled:
                yield filled[0]
                continue
        if filled:
            names = [*(columns or ()), *[""] * len(row)]
            cells = [f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=False) if cell]
            yield f"Row {number}: {'; '.join(cells)}"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return re.sub(r" 00:00:00$", "", " ".join(str(value).split()))
