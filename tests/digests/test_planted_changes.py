"""The measurement of planted changes, on a few contracts: all values are found, and nothing else is reported."""

import random

from scripts.benchmarks.planted_changes import contract, measure, report


def test_planted_changes_of_contracts_are_found_and_no_others() -> None:
    made = random.Random(3)
    figures = report("contracts", *measure([contract(made) for _ in range(6)], made, apart=40))
    assert int(str(figures["changed values"])) >= 20
    assert (figures["found %"], figures["false values %"]) == (100.0, 0.0)
    assert figures["moves"] == "6 of 6"
    assert str(figures["other changes false"]).startswith("0 of")
