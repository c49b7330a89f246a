"""The names that a question says."""

import pytest

from local_rag.text.question_names import question_names


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What is the notice period with Kessler?", ["Kessler"]),
        ("per diem in Norway in 2024", ["Norway", "2024"]),
        ("How many orders did Fjordan Freight place in Q3 2024?", ["Fjordan", "Freight", "Q3", "2024"]),
        ("ST-4480 accuracy", ["ST-4480"]),
        ("Does the PDF say when I may leave?", []),
        ("Welche Frist ist in dem Vertrag AB-12 vereinbart?", ["AB-12"]),
    ],
)
def test_the_names_of_a_question(question: str, names: list[str]) -> None:
    assert [fact.text for fact in question_names(question)] == names
