"""Tables of web pages and Word documents: merged cells, headers, captions."""

import io

import pytest

from local_rag.reading.converters.html_pages import convert_html
from local_rag.reading.converters.office import convert_docx
from local_rag.reading.converters.open_document import convert_odt
from tests.support.office_files import open_document


def rows_of(html: str) -> list[str]:
    text = convert_html(f"<body><h1>Title</h1><p>Words above.</p>{html}</body>".encode()).text
    return [line for line in text.split("\n") if line and line not in {"# Title", "Words above."}]


def test_merged_cells_stand_in_all_their_places() -> None:
    found = rows_of(
        "<table><tr><th rowspan=2>Country<th colspan=2>2023<tr><th>Days<th>Notes"
        "<tr><td rowspan=2>Norway<td>25<td>a<tr><td>20<td>b</table>"
    )
    assert found == [
        "| Country | 2023 Days | 2023 Notes |",
        "| --- | --- | --- |",
        "| Norway | 25 | a |",
        "| Norway | 20 | b |",
    ]


def test_a_merged_cell_beside_one_that_hangs_down_is_kept() -> None:
    found = rows_of("<table><tr><td rowspan=2>Rent<td>2023<td>2024<tr><td colspan=2>paid 1,234 EUR</table>")
    assert found[-1] == "| Rent | paid 1,234 EUR | paid 1,234 EUR |"


def test_a_word_of_which_a_part_is_marked_stays_whole_in_a_cell() -> None:
    cell = "<p>Price 1,2<b>34</b>.50, wu<i>tes</i></p><p>per<br>month</p><div>net</div>"
    assert rows_of(f"<table><tr><td>A<td>B<tr><td>{cell}<td>1</table>")[-1] == (
        "| Price 1,234.50, wutes per month net | 1 |"
    )


def test_a_row_of_names_and_years_is_a_header_without_being_marked() -> None:
    found = rows_of("<table><tr><td>Item<td>2023<td>2024<tr><td>Rent<td>100<td>120</table>")
    assert found == ["| Item | 2023 | 2024 |", "| --- | --- | --- |", "| Rent | 100 | 120 |"]


def test_numbers_without_names_have_a_blank_header() -> None:
    assert rows_of("<table><tr><td>Rent<td>100<tr><td>Food<td>80</table>")[0] == "|  |  |"


def test_captions_stand_above() -> None:
    found = rows_of(
        "<table><caption>Leave</caption><tr><td colspan=2>As of May<tr><td>Country<td>Days<tr><td>Norway<td>25</table>"
    )
    assert found[:3] == ["Leave", "As of May", "| Country | Days |"]


def test_a_section_over_all_columns_stands_under_none() -> None:
    found = rows_of("<table><tr><th>Country<th>Days<tr><td colspan=2>Europe<tr><td>Norway<td>25</table>")
    assert found[2:] == ["| Europe |  |", "| Norway | 25 |"]


def test_cells_are_one_line_with_bars_escaped() -> None:
    found = rows_of("<table><tr><th>Name<th>Use<tr><td>a|b<td><p>one</p><p>two</p></table>")
    assert found[-1] == "| a\\|b | one two |"


@pytest.mark.parametrize("inner", ["<table><tr><td>inner</table>", "<ul><li>inner</ul>", "<h2>inner</h2>"])
def test_a_table_for_layout_loses_nothing(inner: str) -> None:
    assert "inner" in "\n".join(rows_of(f"<table><tr><td>{inner}<td>beside</table>"))


def test_spans_are_bounded() -> None:
    found = rows_of("<table><tr><td rowspan=999999999 colspan=999999999>wide<td>b<tr><td>c<td>d</table>")
    assert "wide" in found[0]
    assert len("".join(found)) < 100_000


def test_word_tables_keep_merged_cells_and_their_header() -> None:
    import docx

    document = docx.Document()
    document.add_heading("Leave", 1)
    table = document.add_table(3, 3)
    for row, cells in zip(
        table.rows, (("Country", "Days", "Note"), ("Norway", "25", "a"), ("", "20", "min")), strict=True
    ):
        for cell, text in zip(row.cells, cells, strict=True):
            cell.text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    data = io.BytesIO()
    document.save(data)
    lines = [line for line in convert_docx(data.getvalue()).text.split("\n") if line.startswith("|")]
    assert lines == [
        "| Country | Days | Note |",
        "| --- | --- | --- |",
        "| Norway | 25 | a |",
        "| Norway | 20 | min |",
    ]


INNER = "<table><tr><th>Day<th>Fee<tr><td>Mon<td>5<tr><td>Tue<td>6</table>"


def test_a_table_in_a_cell_of_data_is_text_whose_values_name_their_columns() -> None:
    found = rows_of(f"<table><tr><th>Boat<th>Fees<tr><td>Skua<td>see {INNER} net<tr><td>Tern<td>7</table>")
    assert found == [
        "| Boat | Fees |",
        "| --- | --- |",
        "| Skua | see (Day: Mon, Fee: 5; Day: Tue, Fee: 6) net |",
        "| Tern | 7 |",
    ]


@pytest.mark.parametrize(
    "around",
    [
        "<table><tr><td>Left{}<td>Right</table>",
        "<table><tr><td>Left<tr><td>{}<tr><td>Right</table>",
        "<table role=presentation><tr><td>Left<td>{}<tr><td>Right<td>x</table>",
        "<table><tr><td>Left<td>x<tr><td><h2>Fees</h2>{}<td>Right</table>",
        "<table><tr><td>Left<td>x<tr><td><table><tr><td>{}</table><td>Right</table>",
    ],
)
def test_a_table_that_lays_out_another_is_opened(around: str) -> None:
    found = rows_of(around.format(INNER))
    at = found.index("| Day | Fee |")
    assert found[at : at + 4] == ["| Day | Fee |", "| --- | --- |", "| Mon | 5 |", "| Tue | 6 |"]
    assert "Left" in found
    assert "Right" in found


def test_tables_in_cells_of_word_and_open_document_are_read_alike() -> None:
    import docx

    document = docx.Document()
    outer = document.add_table(2, 2)
    for cell, text in zip(
        [one for row in outer.rows for one in row.cells], ["Boat", "Fees", "Skua", "see"], strict=True
    ):
        cell.text = text
    inner = outer.cell(1, 1).add_table(2, 2)
    for cell, text in zip([one for row in inner.rows for one in row.cells], ["Day", "Fee", "Mon", "5"], strict=True):
        cell.text = text
    saved = io.BytesIO()
    document.save(saved)
    assert "| Skua | see (Day: Mon, Fee: 5) |" in convert_docx(saved.getvalue()).text

    def row(*cells: str) -> str:
        written = (f"<table:table-cell>{cell}</table:table-cell>" for cell in cells)
        return f"<table:table-row>{''.join(written)}</table:table-row>"

    def line(text: str) -> str:
        return f"<text:p>{text}</text:p>"

    within = f"<table:table>{row(line('Day'), line('Fee'))}{row(line('Mon'), line('5'))}</table:table>"
    data = f"<table:table>{row(line('Boat'), line('Fees'))}{row(line('Skua'), line('see') + within)}</table:table>"
    assert "| Skua | see; (Day: Mon, Fee: 5) |" in convert_odt(open_document("text", data)).text
    layout = f"<table:table>{row(line('Left') + within, line('Right'))}</table:table>"
    opened = "Left\n\n| Day | Fee |\n| --- | --- |\n| Mon | 5 |\n\nRight"
    assert convert_odt(open_document("text", layout)).text == opened
