"""Numbers of sheets are shown as Excel shows them; a code that is not understood leaves the number as it is."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from local_rag.reading.converters.number_format import show_cell, show_number
from scripts.benchmarks.formats import CASES, misses


def test_the_conformance_table_has_no_misses() -> None:
    assert len({code for _, code, _ in CASES}) >= 120
    assert misses() == []


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (45356, "dd.mm.yyyy", "05.03.2024"),
        (45356, "d mmmm yyyy", "5 March 2024"),
        (45356, "yyyy/mm/dd", "2024/03/05"),
        (45356, "mm-dd-yy", "2024-03-05"),
        (45356, "dd/mm/yyyy", "2024-03-05"),
        (45356.6875, "m/d/yy h:mm", "2024-03-05 16:30"),
        (45356, "yyyy-mm-dd h:mm:ss", "2024-03-05"),
        (45356.5, "yyyy-mm-dd h:mm:ss", "2024-03-05 12:00:00"),
        (45356, "mmm yy", "Mar 24"),
        (0.25, "0 %", "25 %"),
        (0.3, "General", "0.3"),
    ],
)
def test_a_cell_with_a_date_that_can_be_read_as_another_is_written_year_first(
    value: float, code: str, shown: str
) -> None:
    assert show_cell(value, code) == shown


def test_days_are_counted_from_1904_in_some_files() -> None:
    assert show_number(45356 - 1462, "yyyy-mm-dd", from_1904=True) == show_number(45356, "yyyy-mm-dd")


@example(float("-inf"), "md")
@given(st.floats() | st.integers(), st.text('0#?.,%/E+-;[]<>="\\_*@hmsyd $\u20acGenral AM/P', max_size=20))
def test_no_code_is_too_odd(value: float, code: str) -> None:
    assert isinstance(show_cell(value, code), str)


@pytest.mark.parametrize(
    ("value", "code", "from_1904", "shown"),
    [
        (-30701, "yyyy-mm-dd", False, "1815-12-10"),
        (-1, "yyyy-mm-dd", True, "1903-12-31"),
        (-0.5, "h:mm", False, "-0.5"),
        (-1.5, "[h]:mm", False, "-36:00"),
        (-900_000, "yyyy-mm-dd", False, "-900000"),
    ],
)
def test_a_day_before_the_first_is_a_date_and_a_negative_time_stays_negative(
    value: float, code: str, from_1904: bool, shown: str
) -> None:
    assert show_cell(value, code, from_1904=from_1904) == shown
