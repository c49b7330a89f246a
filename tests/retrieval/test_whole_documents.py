"""Questions about whole documents are told from others by rule; others never see the rows of documents."""

import pytest

from local_rag.retrieval.document_questions import asks_for_documents


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
