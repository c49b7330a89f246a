"""A changed number is noticed in every notation, and an unchanged one in another notation is accepted."""

import pytest

from local_rag.text.facts import Source, missing_facts
from scripts.benchmarks.numbers import Case, random_cases


def lacks(sentence: str, source: str) -> bool:
    return bool(missing_facts("", sentence, [Source(source)]))


@pytest.mark.parametrize("seed", range(4))
def test_every_change_of_a_number_is_noticed_and_no_other_notation_is(seed: int) -> None:
    def is_missed(case: Case) -> bool:
        return lacks(case.sentence, case.source) != bool(case.changed)

    cases = random_cases(500, seed)
    assert {case.changed for case in cases} == {"", "digit", "digits", "separator", "sign", "unit", "scale"}
    assert [case for case in cases if is_missed(case)] == []


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("The pump is rated at 25 crowns.", "The pump is rated at 2.5 crowns."),
        ("Version 1012 is used.", "Version 10.1.2 is used."),
        ("The factor is 0125.", "The factor is 0.125."),
        ("It costs 45002 crowns.", "It costs 4,500.2 crowns."),
        ("The ratio is 1-5.", "The ratio is 1.5."),
        ("Members: 120.", "Members: 12.0."),
        ("The index is 1 234.", "The index is 1.234."),
        ("The fee is 1,250 crowns.", "The fee is 1.250 crowns."),
        ("The fee is 1.250 crowns.", "The fee is 1,250 crowns."),
        ("It holds 10^6 cells.", "It holds 106 cells."),
        ("It holds 10\u2076 cells.", "It holds 106 cells."),
        ("The fee is 4,500\u00b2 crowns.", "The fee is 4,5002 crowns."),
        ("The fee is 4,500\u00b2 crowns.", "The fee is 4,500.2 crowns."),
        ("The balance is -1350 crowns.", "The balance is 1350 crowns."),
        ("Use part E-15.", "Use part E-1-5."),
        ("Use version v15.", "Use version v1.5."),
        ("It has 3.5 \u00b0C.", "It has 35 degrees Celsius."),
    ],
)
def test_a_change_is_noticed(source: str, sentence: str) -> None:
    assert lacks(sentence, source)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("The fee is 1250 per boat.", "The fee is 1,250 per boat."),
        ("Die Gebühr beträgt 1.250 Euro und ist nicht für alle.", "The fee is 1,250 euro."),
        ("Preis: 1.250 EUR, Rabatt 2,50 EUR", "The price is EUR 1,250."),
        ("Die Gebühr ist 1250 Euro für die Leute.", "Die Gebühr ist 1.250 Euro, und das ist nicht viel für die Leute."),
        ("The fee is 4,500\u00b2 crowns.", "The fee is 4,500 crowns."),
        ("The hall has 30 m\u00b2.", "The hall has 30 m2."),
        ("Call 8008271000.", "Call 800-827-1000."),
        ("Use version 10.1.2.", "It is version 10.1.2."),
        ("It has 35 degrees Celsius.", "It has 35 \u00b0C."),
    ],
)
def test_another_notation_is_accepted(source: str, sentence: str) -> None:
    assert not lacks(sentence, source)
