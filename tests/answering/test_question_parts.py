"""Questions that ask for several things, and their parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.answering.question_parts import MOST_PARTS, split_clauses


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Who is the safety officer and how is she reached?", ["Who is the safety officer?", "How is she reached?"]),
        ("When does it leave, AND is it\non time?", ["When does it leave?", "Is it on time?"]),
        ("When does it leave? How long is the way back?", ["When does it leave?", "How long is the way back?"]),
        (
            "When does it leave and what does it carry and who sails it and where does it land?",
            ["When does it leave?", "What does it carry?", "Who sails it?"],
        ),
    ],
)
def test_a_question_for_several_things_has_a_part_for_each(question: str, parts: list[str]) -> None:
    assert split_clauses(question) == parts


@pytest.mark.parametrize(
    "question",
    [
        "What are the terms and conditions of the lease?",
        "What is the difference between leave in Ireland and in Norway?",
        "Who sails, and how?",
        "Why? And how?",
        "between and",
        "",
    ],
)
def test_a_question_for_one_thing_stays_whole(question: str) -> None:
    assert split_clauses(question) == []


@given(
    st.lists(st.sampled_from(["Ireland", "and", "when", "is it", "?", ".", "the", "leave", ", and", "who is", "\n"]))
)
def test_parts_are_few_and_made_of_the_questions_own_words(words: list[str]) -> None:
    parts = split_clauses(" ".join(words))
    assert len(parts) in {0, *range(2, MOST_PARTS + 1)}
    assert all(part.endswith("?") for part in parts)
    own = " ".join(words).lower().replace(",", "").replace("?", " ").split()
    assert {word.rstrip("?").lower() for part in parts for word in part.split()} <= {*own, ",", ""}
