"""How answers are judged: what a right one says, what it must not say, and what is wrong with the others."""

from typing import Any

import pytest

from local_rag.evaluation.answer_figures import is_right, mistake_of, says_all
from local_rag.evaluation.dataset import Question


def asking(*must_include: Any, **fields: Any) -> Question:
    groups = tuple((one,) if isinstance(one, str) else tuple(one) for one in must_include)
    return Question("How long is the ferry to Hestvik closed?", must_include=groups, **fields)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ("week", "Two weeks [1]."),
        ("box", "In boxes."),
        ("Face Shield", "the face\nshield FS-2"),
        ("1,200", "It costs 1 200 kroner a night [1]."),
        ("1200", "It costs 1,200 kroner."),
        ("five", "The 5 members decide."),
        ("third", "On day 3."),
        ("1 March 2025", "Until 2025-03-01."),
        ("7 March", "On the 7th of March."),
        ("45 %", "45% of it."),
        ("safety officer's", "the safety officer\u2019s"),
        ("stay@lantern-tide.example", "Write to stay@lantern-tide.example."),
        ("no,", "No, it is closed."),
    ],
)
def test_what_an_answer_says(wanted: str, text: str) -> None:
    assert is_right(asking(wanted), text)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ("photo", "A photocopy."),
        ("land", "To the island."),
        ("1,200", "It costs 11,200 kroner."),
        ("1,200", "It costs 1,200.5 kroner."),
        ("200", "It costs 1,200 kroner."),
        ("5 million", "41.5 million"),
        ("30 weeks", "30 days."),
        ("1 March 2025", "On 1 March 2024."),
        ("1", "In a boat."),
        ("8", "Ask [8]."),
        ("week 28", "week 280"),
    ],
)
def test_what_an_answer_does_not_say(wanted: str, text: str) -> None:
    assert not is_right(asking(wanted), text)


def test_one_string_of_each_group_is_enough_and_needed() -> None:
    groups = (("seven", "7 o'clock"), ("pier", "quay"))
    assert says_all("At 7 from the quay.", groups)
    assert not says_all("At seven.", groups)
    assert says_all("Anything.", ())


def test_what_must_not_be_said_makes_an_answer_wrong() -> None:
    question = asking("5 weeks", must_not=("31 weeks",))
    assert is_right(question, "5 weeks longer.")
    assert not is_right(question, "5 weeks longer, so 31 weeks.")
    assert mistake_of(question, "31 weeks.") == "other_value"


def test_values_belong_to_their_names() -> None:
    pairs = ((("Norway",), ("19", "nineteen")), (("Ireland",), ("9",)))
    question = asking("19", "9", pairs=pairs)
    assert is_right(question, "19 in Norway and 9 in Ireland.")
    assert is_right(question, "Norway: nineteen. Ireland: 9.")
    assert is_right(question, "Ireland has 9, Norway 19.")
    assert not is_right(question, "9 in Norway and 19 in Ireland.")
    assert not is_right(question, "Norway has 9, Ireland 19.")
    assert is_right(question, "19 and 9."), "without names nothing is swapped"


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("For 3 weeks.", "incomplete"),
        ("For 4 weeks.", "other_value"),
        ("For 3 weeks, as Brekkedal says.", "other_value"),
        ("The ferry to Hestvik is closed.", "off_the_point"),
        ("Ask somebody.", "off_the_point"),
    ],
)
def test_what_is_wrong_with_an_answer(text: str, mistake: str) -> None:
    question = asking("3 weeks", "repair", answer="3 weeks, for repair")
    assert not is_right(question, text)
    assert mistake_of(question, text) == mistake


def test_without_wanted_strings_a_mistake_is_told_by_the_reference() -> None:
    question = Question("When does the boat leave?", answer="It leaves the northern harbour at seven.")
    assert mistake_of(question, "From the harbour.") == "incomplete"
    assert mistake_of(question, "At 9.") == "other_value"
    assert mistake_of(question, "It is a boat.") == "off_the_point"


def test_a_whole_answer_is_compared_by_its_words_and_numbers() -> None:
    question = Question("When does the boat leave?", answer="The boat leaves the harbour at 7 o'clock every morning.")
    assert is_right(question, "It leaves the harbour every morning at 7 [2].")
    assert not is_right(question, "It leaves the harbour every morning at 9.")
    assert not is_right(question, "Bread is baked with rye flour.")
