"""Questions that cannot be asked are refused; those about whole documents are told from others by their plans."""

import re
from datetime import date
from functools import partial
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.asking import MAX_QUESTION
from local_rag.errors import QuestionError
from local_rag.plan_records import Plan
from local_rag.retrieval.question import Question, asked_on, for_code, read_question
from local_rag.understanding.question_reader import read_plan


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
        for ask in (library.ask, library.search, library.find, partial(library.retrieval.search_keywords, top=1)):
            with pytest.raises(QuestionError, match=f"^{re.escape(message)}$"):
                ask(question)


ABOUT_DOCUMENTS = """What is this report about?
Which documents deal with parental leave?
Summarise the contract with Hansen.
Sum up the minutes of May.
Give me an overview of the manual.
Do we have any guidelines or documents on travel?
List the reports on storms.
What does this paper deal with?
Tell me about this document.
Which of these files covers the lease?""".splitlines()
OTHERS = """When does the boat leave?
How long is parental leave in Norway?
Where is the generator?
What should I do about water in the boat?
Who is in charge of the report?
How do I file a claim?
Which pump failed in 2024?""".splitlines()


def test_whole_documents_are_searched_where_documents_are_asked_for() -> None:
    assert sum(read_plan(question).about_documents for question in ABOUT_DOCUMENTS) >= 0.9 * len(ABOUT_DOCUMENTS)
    assert not any(read_plan(question).about_documents for question in OTHERS)


def test_a_question_carries_its_plan() -> None:
    question = read_question("When does it leave, and who sails it?")
    assert question.plan == read_plan(question.text)
    assert question.parts == question.plan.parts
    assert Question("Which reports mention the crane?").plan == Plan()
    assert read_question("Which reports mention the crane?", kind="passages").plan.kind == "passages"


def test_a_time_in_full_makes_no_question_too_long() -> None:
    today, end = date(2026, 11, 29), " last month?"
    short, long = (Question("x" * (most - len(end)) + end) for most in (MAX_QUESTION - 50, MAX_QUESTION))
    assert asked_on(short, today).text == short.text[:-1] + " (October 2026)?"
    assert for_code(short, today).text.endswith("x in October 2026?")
    assert asked_on(long, today) is for_code(long, today) is long
