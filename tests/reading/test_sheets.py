"""What becomes of the tables in spreadsheets and of separated values: headers, numbers, merged cells, notes."""

import io
import zipfile
from collections.abc import Sequence
from datetime import date, datetime, time
from pathlib import Path

import pytest

from local_rag.reading.converters.number_format import show_number
from local_rag.reading.converters.sheets import convert_csv, convert_xlsx
from local_rag.reading.read import make_document

Cells = Sequence[Sequence[object]]


def workbook_of(rows: Cells, *, merged: Sequence[str] = (), formats: dict[str, str] | None = None) -> bytes:
    import openpyxl  # type: ignore[import-untyped]

    workbook = openpyxl.Workbook()
    for row in rows:
        workbook.active.append(row)
    for area in merged:
        workbook.active.merge_cells(area)
    for cell, code in (formats or {}).items():
        workbook.active[cell].number_format = code
    data = io.BytesIO()
    workbook.save(data)
    return data.getvalue()


def lines(data: bytes) -> list[str]:
    return [line for line in convert_xlsx(data).text.split("\n") if line][1:]


def test_a_workbook_has_the_title_of_its_file_and_not_of_its_first_sheet() -> None:
    document = make_document(Path("prices-2025.xlsx"), convert_xlsx(workbook_of([["Item", "Price"], ["Chair", 40]])))
    assert document.title == "Prices 2025"
    assert [heading.title for heading in document.headings] == ["Sheet"]


def test_a_blank_row_ends_a_table() -> None:
    rows: Cells = [["Name", "Born"], ["Ada", 1815], [], ["City", "Population"], ["Oslo", 700000]]
    assert lines(workbook_of(rows)) == [
        "Columns: Name; Born",
        "Row 2: Name: Ada; Born: 1815",
        "Columns: City; Population",
        "Row 5: City: Oslo; Population: 700000",
    ]


@pytest.mark.parametrize(
    ("rows", "header"),
    [
        ([["Item", 2023, 2024], ["Revenue", 100, 120], ["Costs", 80, 90]], "Columns: Item; 2023; 2024"),
        ([["Item", 2024], ["Revenue", 1200.5]], "Columns: Item; 2024"),
        ([["Item", "2023/24", "2024/25"], ["Revenue", 100, 120]], "Columns: Item; 2023/24; 2024/25"),
        ([[None, datetime(2024, 1, 1), datetime(2024, 2, 1)], ["Rent", 9, 8]], "Columns: 2024-01-01; 2024-02-01"),
        ([["Item", 2023, 2024], ["Founded", 2001, 2002]], "Columns: Item; 2023; 2024"),
        ([["Ada", 1950], ["Bob", 1960]], None),
        ([["Revenue", 100], ["Costs", 80]], None),
        ([["Price", "-1.5 %"], ["Costs", "€ 80"]], None),
    ],
)
def test_names_and_years_above_numbers_are_a_header(rows: Cells, header: str | None) -> None:
    found = lines(workbook_of(rows))
    if header is None:
        assert found[0].startswith("Row 1: ")
        assert all(": " not in line.removeprefix(f"Row {number}: ") for number, line in enumerate(found, start=1))
    else:
        assert found[0] == header
        assert found[1].startswith("Row 2: ")


def test_rows_above_the_header_are_captions() -> None:
    rows: Cells = [["Stock", None], ["Report 2024", "Confidential"], ["Product", "Price", "Stock"], ["Bolt", 1.5, 30]]
    assert lines(workbook_of(rows)) == [
        "Stock",
        "Report 2024; Confidential",
        "Columns: Product; Price; Stock",
        "Row 4: Product: Bolt; Price: 1.5; Stock: 30",
    ]


def test_merged_cells_count_for_all_that_they_cover() -> None:
    rows: Cells = [
        ["Item", "2023", None, "2024", None],
        [None, "Q1", "Q2", "Q1", "Q2"],
        ["Europe", None, None, None, None],
        ["Rent", 1, 2, 3, 4],
        [None, 5, 6, 7, 8],
    ]
    merged = ["A1:A2", "B1:C1", "D1:E1", "A3:E3", "A4:A5"]
    assert lines(workbook_of(rows, merged=merged)) == [
        "Columns: Item; 2023 Q1; 2023 Q2; 2024 Q1; 2024 Q2",
        "Row 3: Europe",
        "Row 4: Item: Rent; 2023 Q1: 1; 2023 Q2: 2; 2024 Q1: 3; 2024 Q2: 4",
        "Row 5: Item: Rent; 2023 Q1: 5; 2023 Q2: 6; 2024 Q1: 7; 2024 Q2: 8",
    ]


def test_tables_side_by_side_keep_their_own_headers() -> None:
    rows: Cells = [
        ["Name", "Born", None, None, None],
        ["Ada", 1815, None, "City", "Population"],
        ["Bob", 1901, None, "Oslo", 700000],
        [None, None, None, "Bergen", 280000],
    ]
    assert lines(workbook_of(rows)) == [
        "Columns: Name; Born",
        "Row 2: Name: Ada; Born: 1815",
        "Row 3: Name: Bob; Born: 1901",
        "Columns: City; Population",
        "Row 3: City: Oslo; Population: 700000",
        "Row 4: City: Bergen; Population: 280000",
    ]


def test_a_blank_column_within_a_table_is_none_of_its_ends() -> None:
    rows: Cells = [["Name", None, "Born"], ["Ada", None, 1815], ["Bob", None, 1901]]
    assert lines(workbook_of(rows))[1] == "Row 2: Name: Ada; Born: 1815"


def test_cells_are_shown_as_the_sheet_shows_them() -> None:
    rows: Cells = [["Share", "Sum", "Post code", "Day", "At"], [0.25, 1234.5, 7, date(2024, 5, 1), time(9, 30)]]
    formats = {"A2": "0%", "B2": '#,##0.00 "EUR"', "C2": "00000"}
    assert lines(workbook_of(rows, formats=formats))[1] == (
        "Row 2: Share: 25%; Sum: 1,234.50 EUR; Post code: 00007; Day: 2024-05-01; At: 9:30:00"
    )


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (0.256, "0.0%", "25.6%"),
        (1234.5, "[$€-407]#,##0.00", "€1,234.50"),
        (1234.5, '_-* #,##0.00\\ "€"_-;-* #,##0.00\\ "€"_-', "1,234.50 €"),
        (12.5, "\\$0.00", "$12.50"),
        (-5, "#,##0;[Red](#,##0)", "(5)"),
        (-5, "#,##0", "-5"),
        (-0.001, "0.00", "0.00"),
        (0, '0;-0;"none"', "none"),
        (1234567, '#,##0,"k"', "1,235k"),
        (1.2, "0.##", "1.2"),
        (2.0, "0.##", "2."),
        (1234.567, '#,##0.0 "a;b"', "1,234.6 a;b"),
        (0.1 + 0.2, "General", "0.3"),
        (0.5, "# ?/?", "1/2"),
        (12, "0.00E+00", "1.20E+01"),
        (5, "@", "5"),
        (7, "", "7"),
        (1e300, "0.00", "1e+300"),
        (10**400, "0.00", str(10**400)),
    ],
)
def test_number_formats(value: float, code: str, shown: str) -> None:
    assert show_number(value, code) == shown


def test_formulas_without_a_value_and_comments_are_notes() -> None:
    import openpyxl
    from openpyxl.comments import Comment  # type: ignore[import-untyped]

    workbook = openpyxl.Workbook()
    workbook.active.append(["Share", "Sum", "Total"])
    workbook.active.append([1, "=A2+1", "=SUM(A2:B2)"])
    workbook.active["A2"].comment = Comment("As of\nMay", "Ada")
    data = io.BytesIO()
    workbook.save(data)
    assert convert_xlsx(data.getvalue()).notes == (
        "2 formulas have no stored value (B2, C2); open the file in a spreadsheet program and save it",
        "comment on A2: As of May",
    )
    workbook.create_sheet("Plan")["B7"] = "=1+1"
    data = io.BytesIO()
    workbook.save(data)
    assert "1 formula has no stored value (B7 of the sheet Plan)" in convert_xlsx(data.getvalue()).notes[2]


def with_sheet(data: bytes, before: bytes, after: bytes) -> bytes:
    """Replace bytes in the sheets of a workbook."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(changed, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            target.writestr(name, content.replace(before, after) if "sheets/" in name else content)
    return changed.getvalue()


def test_a_stored_value_of_a_formula_is_read_without_a_note() -> None:
    data = workbook_of([["Sum"], ["=1+1"]])
    converted = convert_xlsx(with_sheet(data, b"</f><v></v>", b"</f><v>2</v>"))
    assert converted.text.endswith("Sum\n2")
    assert converted.notes == ()
    assert convert_xlsx(data).notes


def test_many_merged_cells_cost_no_memory() -> None:
    data = workbook_of([["Name", "Born"], ["Ada", 1815]])
    areas = b"".join(b'<mergeCell ref="A%d:XFD1048576"/>' % row for row in range(1, 3000))
    data = with_sheet(data, b"</sheetData>", b"</sheetData><mergeCells>" + areas + b"</mergeCells>")
    assert lines(data)[-1].startswith("Row 2: ")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Name;Preis\nSchraube;1,50\nMutter;2,75\n", "Row 2: Name: Schraube; Preis: 1,50"),
        ("Country,2022,2023\nNorway,5.4,5.5\n", "Row 2: Country: Norway; 2022: 5.4; 2023: 5.5"),
        ('name, note\nAda, "first, and best"\n', "Row 2: name: Ada; note: first, and best"),
        ("a,b\n1,2\n\nc,d\n3,4\n", "Row 5: c: 3; d: 4"),
        ("name\tborn\nAda, Countess\t1815\nBob, Jr, Dr\t1901\n", "Row 2: name: Ada, Countess; born: 1815"),
        ("note\nHello, world; see\nBye, now; or\n", "Hello, world; see"),
    ],
)
def test_separated_values(content: str, expected: str) -> None:
    assert expected in convert_csv(content.encode()).text.split("\n")


def test_a_csv_may_have_a_long_field() -> None:
    converted = convert_csv(f'id,text\n1,"{"word " * 40000}"\n2,short\n'.encode())
    assert converted.text.endswith("\nRow 3: id: 2; text: short")
    assert converted.text.count("word") == 40000


def test_the_tables_of_a_sheet_are_known_to_the_splitter() -> None:
    converted = convert_xlsx(workbook_of([["Name", "Born"], ["Ada", 1815], [], ["City", "People"], ["Oslo", 7]]))
    assert converted.tables is not None
    assert [converted.text[table.start : table.end] for table in converted.tables] == [
        "Columns: Name; Born\nRow 2: Name: Ada; Born: 1815",
        "Columns: City; People\nRow 5: City: Oslo; People: 7",
    ]
