"""Sheets and tables as people make them: captions, years as names, several tables, merged cells, amounts."""

import io
from collections.abc import Sequence

from tests.reading.golden.case import Case, Cell


def sheet(
    rows: Sequence[Sequence[object]],
    *,
    merged: Sequence[str] = (),
    formats: Sequence[tuple[str, str]] = (),
    comment: tuple[str, str] = ("", ""),
) -> bytes:
    import openpyxl  # type: ignore[import-untyped]
    from openpyxl.comments import Comment  # type: ignore[import-untyped]

    workbook = openpyxl.Workbook()
    page = workbook.active
    for row in rows:
        page.append(row)
    for area in merged:
        page.merge_cells(area)
    for place, code in formats:
        page[place].number_format = code
    if comment[0]:
        page[comment[0]].comment = Comment(comment[1], "Ada")
    data = io.BytesIO()
    workbook.save(data)
    return data.getvalue()


CASES = [
    Case(
        "years.xlsx",
        lambda: sheet([["Item", 2023, 2024], ["Revenue", 100, 120], ["Costs", 80, 90]]),
        cells=(Cell("100", "2023", "Revenue"), Cell("90", "2024", "Costs"), Cell("Costs", "Item")),
    ),
    Case(
        "two-tables.xlsx",
        lambda: sheet([["Name", "Born"], ["Ada", 1815], [], ["City", "People"], ["Oslo", 700000]]),
        cells=(Cell("1815", "Born", "Ada"), Cell("700000", "People", "Oslo"), Cell("Oslo", "City")),
        absent=("Name: Oslo", "Born: 700000"),
    ),
    Case(
        "captions.xlsx",
        lambda: sheet([["Stock"], ["Report 2024", "Confidential"], ["Product", "Price", "Left"], ["Bolt", 1.5, 30]]),
        {"Report 2024; Confidential": "Sheet"},
        (Cell("1.5", "Price", "Bolt"), Cell("30", "Left", "Bolt")),
    ),
    Case(
        "merged.xlsx",
        lambda: sheet(
            [["Item", "2023", None], [None, "Q1", "Q2"], ["Rent", 1, 2], [None, 3, 4]],
            merged=["A1:A2", "B1:C1", "A3:A4"],
        ),
        cells=(Cell("1", "2023 Q1", "Rent"), Cell("4", "2023 Q2", "Rent")),
    ),
    Case(
        "amounts.xlsx",
        lambda: sheet(
            [["Share", "Sum", "Code"], [0.25, 1234.5, 7]],
            formats=[("A2", "0%"), ("B2", '#,##0.00 "EUR"'), ("C2", "00000")],
        ),
        cells=(Cell("25%", "Share"), Cell("1,234.50 EUR", "Sum"), Cell("00007", "Code")),
    ),
    Case(
        "formula.xlsx",
        lambda: sheet([["Name", "Total"], ["Ada", "=1+1"]], comment=("A2", "She left in May.")),
        cells=(Cell("Ada", "Name"),),
        noted={"=1+1": "no stored value (B2)", "She left in May.": "comment on A2: She left in May."},
    ),
    Case(
        "beside.xlsx",
        lambda: sheet([["Name", "Born", None, None], ["Ada", 1815, None, "City"], ["Bob", 1901, None, "Oslo"]]),
        cells=(Cell("1901", "Born", "Bob"),),
        absent=("Born: Oslo",),
    ),
    Case(
        "semicolons.csv",
        lambda: "Name;Preis;Menge\nSchraube;1,50;3\nMutter;2,75;4\n".encode("utf-8-sig"),
        cells=(Cell("2,75", "Preis", "Mutter"), Cell("3", "Menge", "Schraube")),
    ),
    Case(
        "long-field.csv",
        lambda: b'id,text\n1,"%send of it"\n2,short\n' % (b"word " * 30000),
        {"word end of it": ""},
        (Cell("short", "text", "2"),),
    ),
    Case(
        "prose.csv",
        lambda: b"note\nHello, world; see\nBye, now; or\n",
        {"Hello, world; see": "", "Bye, now; or": ""},
    ),
    Case(
        "merged-cells.html",
        lambda: (
            b"<h1>Leave</h1><table><tr><th>Country<th>Days<th>Note<tr><td rowspan=2>Norway<td>25<td>a"
            b"<tr><td>20<td>min</table>"
        ),
        cells=(Cell("20", "Days", "min"), Cell("Norway", "Country", "min"), Cell("a", "Note", "25")),
    ),
    Case(
        "years.html",
        lambda: b"<h1>Money</h1><table><tr><td>Item<td>2023<td>2024<tr><td>Rent<td>100<td>120</table>",
        cells=(Cell("100", "2023", "Rent"), Cell("120", "2024", "Rent")),
    ),
]
