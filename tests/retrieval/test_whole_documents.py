"""Questions about whole documents are told from others by rule; others never see the rows of documents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.retrieval.whole_documents import asks_for_documents, without


@pytest.mark.parametrize(
    "question",
    [
        "What is this report about?",
        "Which documents deal with parental leave?",
        "what is in here?",
        "What is in this library",
        "Summarise the contract with Hansen.",
        "Sum up the minutes of May.",
        "Give me an overview of the manual.",
        "Is there a handbook for the pump?",
        "Do we have any guidelines or documents on travel?",
        "Where are the rules for visitors?",
        "Where is it written down how cargo is landed?",
        "Where did we announce the new boat?",
        "List the reports on storms.",
        "What does this paper deal with?",
        "Tell me about this document.",
        "Which of these files covers the lease?",
    ],
)
def test_whole_documents_are_asked_for(question: str) -> None:
    assert asks_for_documents(question)


@pytest.mark.parametrize(
    "question",
    [
        "When does the boat leave?",
        "How long is parental leave in Norway?",
        "Where is the generator?",
        "What should I do about water in the boat?",
        "Who is in charge of the report?",
        "How do I file a claim?",
        "Which pump failed in 2024?",
        "",
        "a" * 100_000,
    ],
)
def test_other_questions_are_not(question: str) -> None:
    assert not asks_for_documents(question)


def test_a_question_made_to_take_long_does_not() -> None:
    assert not asks_for_documents("the that this " * 100_000)


@given(st.lists(st.integers(0, 60), unique=True), st.sets(st.integers(0, 60)), st.integers(1, 40))
def test_leaving_rows_out_is_searching_without_them(ids: list[int], rows: set[int], top: int) -> None:
    ranking = [(one, -float(place)) for place, one in enumerate(ids)]
    asked: list[int] = []

    def search(count: int) -> list[tuple[int, float]]:
        asked.append(count)
        return ranking[:count]

    assert without(rows, search, top) == [one for one in ranking if one[0] not in rows][:top]
    assert asked[0] == (2 * top if rows else top)
    assert without((), search, top) == ranking[:top]
