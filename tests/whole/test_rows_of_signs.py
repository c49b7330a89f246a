"""Documents of rows of signs are indexed in the time of plain text of the same size."""

import pytest

from scripts.benchmarks.rows_of_signs import measure


@pytest.mark.slow
def test_rows_of_signs_take_the_time_of_text() -> None:
    # One text whose time grows with its square takes a hundred times as long as all others.
    assert measure(documents=30, characters=6000, seed=7)["ratio_per_chunk"] < 3
