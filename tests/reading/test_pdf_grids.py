"""What becomes of the tables of a PDF whose cells are separated by drawn lines."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_rag.reading.converters.pdf_page import Cell, Line
from local_rag.reading.converters.pdf_tables import find_tables
from tests.reading.test_pdf import LEAVE, Draw, page, pdf_of, table, text

LONG = "a sentence of so many words that it takes several lines of its narrow cell in every one of these tables"
HEAD = ("Boat", "Rule of the harbour", "Since")


def table_rows(written: str) -> list[list[str]]:
    lines = [line for line in written.split("\n") if line.startswith("|") and not line.startswith("| ---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def ruled(rows: Sequence[Sequence[Any]], **options: Any) -> Draw:
    def draw(pdf: Any) -> None:
        pdf.set_font("helvetica", size=10)
        with pdf.table(first_row_as_headings=False, **options) as drawn:
            for cells in rows:
                row = drawn.row()
                for cell in cells:
                    row.cell(**cell) if isinstance(cell, dict) else row.cell(cell)

    return draw


words = st.lists(st.sampled_from(["ferry", "lamp", "of", "two tons", "pier", "oil", "rope"]), min_size=1, max_size=25)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(words, words, words), min_size=2, max_size=6))
def test_each_cell_keeps_its_text_however_many_lines_it_has(cells: list[tuple[list[str], ...]]) -> None:
    rows = [[" ".join(cell) for cell in row] for row in cells]
    converted = pdf_of(page(text("Rules of the boats."), ruled([HEAD, *rows]), text("Ask the office.")))
    assert table_rows(converted.text) == [list(HEAD), *rows]
    assert converted.tables is not None
    assert [one.columns for one in converted.tables] == [HEAD]
    assert converted.text.startswith("Rules of the boats.\n\n|")
    assert converted.text.endswith("|\n\nAsk the office.")


def test_cells_without_a_gap_are_told_apart_by_the_line_between_them() -> None:
    def draw(pdf: Any) -> None:
        pdf.set_font("helvetica", size=10)
        for row in (("Name", "Born"), ("Countess Ada", "1815"), ("Admiral Grace", "1906")):
            for cell in row:
                pdf.cell(pdf.get_string_width("Admiral Grace") + 2.2, 8, cell, border=1)
            pdf.ln()

    assert table_rows(pdf_of(draw).text) == [["Name", "Born"], ["Countess Ada", "1815"], ["Admiral Grace", "1906"]]


def test_a_cell_over_several_columns_or_rows_counts_for_each() -> None:
    rows: list[list[Any]] = [
        ["Country", {"text": "Leave", "colspan": 2}],
        ["", "Days", "Carry over"],
        [{"text": "Norway", "rowspan": 2}, "25", "10"],
        ["26", LONG],
    ]
    found = pdf_of(ruled(rows))
    assert found.tables is not None
    assert [one.columns for one in found.tables] == [("Country", "Leave Days", "Leave Carry over")]
    assert table_rows(found.text)[1:] == [["Norway", "25", "10"], ["Norway", "26", LONG]]


def test_rows_without_lines_between_them_are_rows() -> None:
    def draw(pdf: Any) -> None:
        pdf.set_font("helvetica", size=10)
        for edge in (20, 70, 120):  # lines between columns, and below the header only
            pdf.line(edge, 10, edge, 60)
        for edge in (10, 20, 60):
            pdf.line(20, edge, 120, edge)
        for number, row in enumerate((("Boat", "Load"), ("Terna", "two tons"), ("Alke", "6 tons"), ("Orca", "8 tons"))):
            for left, cell in zip((22, 72), row, strict=True):
                pdf.text(left, 16 + 10 * number, cell)
        pdf.text(72, 52, "and mail")

    rows = [["Boat", "Load"], ["Terna", "two tons"], ["Alke", "6 tons"], ["Orca", "8 tons and mail"]]
    assert table_rows(pdf_of(draw).text) == rows


def test_a_row_without_lines_between_its_cells_has_the_cells_of_the_others() -> None:
    def draw(pdf: Any) -> None:
        pdf.set_font("helvetica", size=10)
        for at, row in enumerate(LEAVE):
            for cell, sides in zip(row, ("LTB", "TB", "RTB"), strict=True):
                pdf.cell(50, 8, cell, border=sides if at == 2 else 1)
            pdf.ln()

    assert table_rows(pdf_of(draw).text) == LEAVE


def test_boxes_and_diagrams_are_no_tables() -> None:
    def boxes(pdf: Any) -> None:
        pdf.rect(10, 10, 190, 250)
        pdf.set_font("helvetica", size=10)
        pdf.text(20, 20, "The ferry leaves at seven.")
        for at in range(8):  # a diagram
            pdf.line(20, 100 + 10 * at, 90, 100 + 10 * at)
            pdf.line(20 + 10 * at, 100, 20 + 10 * at, 170)
        pdf.text(52, 136, "12")
        pdf.text(72, 156, "34")

    assert "|" not in pdf_of(boxes).text


@pytest.mark.parametrize(
    "lines",
    [
        [(at % 100, 30.0, at % 100, 60.0) for at in range(25_000)],
        [line for at in range(200) for line in ((at, 0.0, at, 200.0), (0.0, at, 200.0, at))],
        [(at / 50, 30.0, at / 50, 60.0) for at in range(9_000)],
    ],
    ids=["many", "paper with squares", "hatched"],
)
def test_a_page_with_very_many_lines_keeps_its_text(lines: list[tuple[float, float, float, float]]) -> None:
    def drawing(pdf: Any) -> None:
        pdf.set_font("helvetica", size=10)
        pdf.text(20, 20, "The ferry leaves at seven.")
        for line in lines:
            pdf.line(*line)

    assert pdf_of(drawing).text == "The ferry leaves at seven."


@pytest.mark.parametrize("mark", ["-", "1.", "a)", "(2)", "\u2022"])
def test_a_list_is_no_table(mark: str) -> None:
    def draw(pdf: Any) -> None:
        pdf.set_font("helvetica", size=10)
        for number, item in enumerate(("Wait at the pier", "Wave to the captain", "Go on board")):
            pdf.text(10, 20 + 8 * number, mark.encode("cp1252").decode("latin-1"))
            pdf.text(20, 20 + 8 * number, item)

    assert "|" not in pdf_of(draw).text


def test_a_table_between_lines_of_text_keeps_its_place() -> None:
    converted = pdf_of(page(text("Above."), table(LEAVE), text("Between."), table(LEAVE), text("Below.")))
    assert [line for line in converted.text.split("\n") if "|" not in line and line] == ["Above.", "Between.", "Below."]
    assert converted.text.index("Above.") < converted.text.index("| Norway") < converted.text.index("Between.")


def test_values_of_neighbouring_columns_that_touch_are_parted() -> None:
    def line(top: float, *cells: tuple[str, float, float]) -> Line:
        return Line(tuple(Cell(*one) for one in cells), top, 10.0)

    lines = [
        line(100, ("Name", 0, 30), ("Start", 60, 85), ("Day", 100, 150)),
        line(88, ("navik", 0, 30), ("22:44", 60, 85), ("9/1/2009", 100, 140)),
        line(76, ("wobos", 0, 30), ("14:30 12/23/2009", 60, 150)),
        line(64, ("tapir", 0, 30), ("22:44", 60, 85), ("9/4/2009", 100, 140)),
    ]
    [found] = find_tables(lines)
    assert ["wobos", "14:30", "12/23/2009"] in [list(row) for row in found.rows]
