"""Cells as numbers with a unit, dates and texts."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.text.cell_values import (
    StoredNumber,
    read_column,
    read_date,
    read_number,
    unit_of_name,
    writes_decimal_comma,
)


@pytest.mark.parametrize(
    ("cell", "comma", "wanted"),
    [
        ("1,234.50", False, (1234.5, "")),
        ("1.234,50 €", True, (1234.5, "EUR")),
        ("1.234", True, (1234, "")),
        ("1 234 567", False, (1234567, "")),
        ("EUR 12", False, (12, "EUR")),
        ("€1.2M", False, (1200000, "EUR")),
        ("1600 kEUR", False, (1600, "kEUR")),
        ("12 kg", False, (12, "kg")),
        ("45 %", False, (45, "%")),
        ("(500)", False, (-500, "")),
        ("-3", False, (-3, "")),
        ("12th", False, None),
        ("1e3", False, (1000, "")),
        ("1E+20", False, (1e20, "")),
        ("-2.5e-3", False, (-0.0025, "")),
        ("1e308", False, (1e308, "")),
        ("1e400", False, None),
        ("-1e999", False, None),
        ("9e300bn", False, None),
        ("123456789012345bn", False, (123456789012345e9, "")),
        ("5 Main Street", False, None),
        ("O-24100", False, None),
    ],
)
def test_a_number_is_read_with_its_sign_marks_and_unit(cell: str, comma: bool, wanted: object) -> None:
    assert read_number(cell, decimal_comma=comma) == wanted


@pytest.mark.parametrize(
    ("cell", "wanted"),
    [
        ("2024-03-01", "2024-03-01"),
        ("01.03.2024", "2024-03-01"),
        ("3 March 2024", "2024-03-03"),
        ("Mar 3, 2024", "2024-03-03"),
        ("March 2024", "2024-03-01"),
        ("2024-03-01 07:30:00", "2024-03-01 07:30:00"),
        ("1058.4", None),
        ("31.02.2024", None),
    ],
)
def test_a_date_is_read_however_it_is_written(cell: str, wanted: str | None) -> None:
    assert read_date(cell) == wanted


def test_a_column_is_read_in_one_way() -> None:
    assert read_column("Net", ["1.234,50", "12,00", "", "n/a"]).values == [1234.5, 12, None, None]
    assert read_column("Net", [StoredNumber("1058.4", 1058.4), "2"]).kind == "number"
    assert read_column("Order no.", ["12", "13"]).kind == "text"
    assert read_column("Code", ["00123", "00124"]).values == ["00123", "00124"]
    assert read_column("Hours", ["7:30", "8:00"]).values == [7.5, 8]
    assert read_column("Day", ["3/14/2024", "3/2/2024"]).values == ["2024-03-14", "2024-03-02"]
    mixed = read_column("Amount", ["EUR 5", "GBP 6"])
    assert (mixed.unit, mixed.units) == ("", ("EUR", "GBP"))
    weeks = read_column("Full pay", ["1 week", "4 weeks", "10 weeks"])
    assert (weeks.values, weeks.unit, weeks.units) == ([1, 4, 10], "weeks", ())
    assert writes_decimal_comma(["1,5", "2,25"]) is True
    assert [unit_of_name(name) for name in ("Net EUR", "Weight (kg)", "Budget (kEUR)", "Name")] == [
        "EUR",
        "kg",
        "kEUR",
        "",
    ]


@given(st.integers(-(10**9), 10**9))
def test_a_number_with_thousands_marks_is_itself(number: int) -> None:
    assert read_number(f"{number:,}") == (number, "")


@given(st.one_of(st.integers(), st.floats(), st.integers(-5000, 5000).map(lambda power: f"1e{power}")))
def test_every_number_of_a_column_has_a_place_in_sqlite(value: float | str) -> None:
    cell = value if isinstance(value, str) else StoredNumber("7", value)
    for one in read_column("Load", [cell, "2", "3", "4", "5"]).values:
        assert isinstance(one, str) or (one is not None and math.isfinite(one))
        assert not isinstance(one, int) or -(2**63) <= one < 2**63


def test_numbers_with_any_sign_of_a_note_or_of_roughness_are_numbers() -> None:
    cells = [
        "approx. 500",
        "about 4",
        "c. 7",
        "*1,200",
        "4,500 l*",
        "1,500\u00b9\u207e",
        "900 (1)",
        "800 (est.)",
        "30 ^a",
        "5",
        "6",
    ]
    read = read_column("Litres", cells)
    assert read.values == [500, 4, 7, 1200, 4500, 1500, 900, 800, 30, 5, 6]


_SAID_BEHIND = [["12 (dozen)", "5 (negative)", "8 (lost)"], ["\u00b15", "\u00b17"], ["C.5", "C.7"]]


@pytest.mark.parametrize(
    "cells", [["C500", "C400", "c300"], ["5 (kwh)", "6 (kwh)"], ["5 (million)"], ["5 (usd)"], *_SAID_BEHIND]
)
def test_a_code_and_a_number_of_which_more_is_said_behind_it_are_no_rough_numbers(cells: list[str]) -> None:
    assert read_column("Load", cells).values == cells


def test_a_second_number_in_the_brackets_of_most_cells_is_no_note() -> None:
    assert read_column("Score", ["3 (2)", "6 (4)", "5"]).values == ["3 (2)", "6 (4)", "5"]
    assert read_column("Score", ["3 (2)", "6", "5"]).values == [3, 6, 5]


def test_ten_may_have_a_note() -> None:
    assert read_column("Load", ["10 (1)", "10*", "ca 10"]).values == [10, 10, 10]
    assert read_column("Load", ["10\u2076", "10\u00b3"]).kind == "text"


def test_a_letter_behind_a_measured_number_is_a_remark_and_that_of_a_label_is_none() -> None:
    others = ["300", "2,000.5", "150", "100", "50"]
    read = read_column("Litres", ["1,250r", "4,500 p", "**500**", *others])
    assert read.values[:3] == [1250, 4500, 500]
    assert read.marked == ("1,250r", "4,500 p", "**500**")
    assert read_column("Volume", ["1.2b", "1.5", *others]).values[0] == "1.2b"
    assert read_column("Clause", ["1.2", "1.2c", "1.3", "1.4", "1.5", "1.6"]).values[1] == "1.2c"
    assert read_column("House", ["12c", "11", "12", "13", "14", "15"]).values[0] == "12c"
