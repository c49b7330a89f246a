"""Questions that ask for several things, and their parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.answering.question_parts import MOST_PARTS, asks_for_several, split_question


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "What is the difference between leave in Ireland and in Norway?",
            ["What is the difference between leave in Ireland", "What is the difference between leave in Norway"],
        ),
        ("Compare the Irish and the Norwegian leave.", ["Compare the Irish leave", "Compare the Norwegian leave"]),
        (
            "How does the mileage rate in Ireland differ from that in Norway?",
            ["How does the mileage rate in Ireland", "How does the mileage rate that in Norway"],
        ),
        (
            "Which is longer, the leave in Ireland or in Norway?",
            ["Which is longer, the leave in Ireland", "Which is longer, the leave in Norway"],
        ),
        ("Ireland vs Norway holidays", ["Ireland holidays", "Norway holidays"]),
        ("Who is the safety officer and how is she reached?", ["Who is the safety officer", "how is she reached"]),
        ("When does it leave? How long is the way back?", ["When does it leave?", "How long is the way back?"]),
    ],
)
def test_a_question_for_several_things_has_a_part_for_each(question: str, parts: list[str]) -> None:
    assert split_question(question) == parts
    assert asks_for_several(question)


@pytest.mark.parametrize(
    "question",
    [
        "What are the terms and conditions of the lease?",
        "When must I take the train rather than fly?",
        "more than ten years",
        "between and",
        "both",
        "",
        "How do I open the door and close it again, and where do I find the key to the room on the right?",
        "What do I have to do before I land at the station, and who must be told when it is done?",
    ],
)
def test_a_question_for_one_thing_stays_whole(question: str) -> None:
    assert split_question(question) == []


def test_a_long_question_with_an_and_may_ask_for_several_things_without_parts() -> None:
    question = "Which part of the weekly check had been left out that day, and on what weekday should it be?"
    assert split_question(question) == []
    assert asks_for_several(question)
    assert not asks_for_several("How do I " + question), "steps stand together"


@given(st.lists(st.sampled_from(["Ireland", "and", "or", "both", "between", "the", "leave", "?", "in", "who is"])))
def test_parts_are_few_and_made_of_the_questions_own_words(words: list[str]) -> None:
    parts = split_question(" ".join(words))
    assert len(parts) in {0, *range(2, MOST_PARTS + 1)}
    assert {word for part in parts for word in part.split()} <= set(" ".join(words).split())
