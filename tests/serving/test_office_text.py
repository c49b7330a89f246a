"""Whatever a text holds, an Office file that holds it can be written and opened."""

import io
import math

import openpyxl  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.answer_records import Answer
from local_rag.extraction.cells import Cell
from local_rag.extraction.columns import parse_columns
from local_rag.extraction.extraction import Row, Table
from local_rag.serving.answer_files import answers_in_form
from local_rag.serving.extracted_files import FORMS

ODD = st.text(st.characters(categories=["Cc", "Cs", "Cn", "Co", "Lu", "Sm"]), max_size=20)


def opened(data: bytes) -> list[object]:
    sheets = openpyxl.load_workbook(io.BytesIO(data)).worksheets
    return [cell for sheet in sheets for row in sheet.iter_rows(values_only=True) for cell in row]


@given(ODD, ODD, ODD)
def test_a_workbook_holds_any_text(title: str, said: str, path: str) -> None:
    columns = parse_columns(["Price: What is the price? (text)"])
    table = Table(columns, (Row(1, f"/d/{path}", title, said, (Cell("stated", said, said, said, heading=title),)),))
    assert "Price" in opened(FORMS[".xlsx"](table, str))
    assert "question" in opened(answers_in_form(".xlsx", [Answer(title, said, "refused")], str))


@pytest.mark.parametrize("sign", ["\ufffe", "\uffff", "\0", "\x0b", "\x1f", "\ud800"])
def test_what_xml_cannot_hold_is_replaced(sign: str) -> None:
    cells = opened(answers_in_form(".xlsx", [Answer(f"a{sign}b", "", "refused")], str))
    assert "a\ufffdb" in cells


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_what_is_no_number_in_a_sheet_is_text(number: float) -> None:
    cells = opened(answers_in_form(".xlsx", [Answer("a", "b", "refused", seconds=number)], str))
    assert str(number) in cells
