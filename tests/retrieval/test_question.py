"""Questions that cannot be asked are refused; those about whole documents are told from others by rule."""

import re
from functools import partial
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.errors import QuestionError
from local_rag.retrieval.question import asks_for_documents


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("", "The question is empty."),
        (" \n", "The question is empty."),
        ("x" * 4001, "The question is longer than 4,000 characters; ask in fewer words."),
        ("Who \udcff?", "The question is not UTF-8; set the terminal to UTF-8 and type it again."),
    ],
)
def test_a_library_refuses_what_is_no_question(tmp_path: Path, question: str, message: str) -> None:
    with Library(tmp_path / "none") as library:
        for ask in (library.ask, library.search, library.find, partial(library.search_keywords, top=1)):
            with pytest.raises(QuestionError, match=f"^{re.escape(message)}$"):
                ask(question)


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
