"""A doubtful answer is held against what the model says when it reads other parts of the documents."""

import pytest

from local_rag.answering.answer_checks import say_the_same
from local_rag.answering.answerer import Answerer
from local_rag.answering.compose import DIFFERS
from local_rag.answering.selection import Source, whole_sources
from local_rag.model_records import Calibration
from local_rag.plan_records import AnswerType
from local_rag.records import Answer
from local_rag.retrieval.question import read_question
from tests.fakes import TRAINED, TrainedGenerator, passage

BOAT, NOTICE = "The boat leaves at seven.", "From May on the boat leaves at nine."


def ask(after: str, *, sure: float, anyway: bool = False) -> tuple[Answer, list[str]]:
    """Ask a model that answers from one line, and says `after` once it has read the other one, too."""
    generator = TrainedGenerator(lambda prompt: after if NOTICE in prompt else BOAT, sure=sure)
    shown, texts = list[Source](whole_sources("?", [[passage(BOAT)]])), list[str]()
    more = whole_sources("?", [[passage(BOAT), passage(NOTICE, key=2)]])
    gate = Calibration("prompt", 0.0, {"answerable": 1.0}, 0.5, 0.01)
    answerer = Answerer(lambda: generator, gate, form=TRAINED)
    question = read_question("When does the boat leave?")
    answer = answerer.answer(question, shown, more=[lambda: more], anyway=anyway, show=texts.append)
    return answer, texts


def test_a_doubtful_answer_that_changes_with_what_is_read_is_quoted() -> None:
    answer, _ = ask("The boat leaves at nine.", sure=0.8)
    assert (answer.outcome, answer.reason) == ("quoted", DIFFERS)
    assert BOAT in answer.text


def test_an_answer_that_stays_the_same_is_given() -> None:
    answer, _ = ask("It leaves at seven.", sure=0.8)
    assert (answer.outcome, answer.reason) == ("answered", "")
    assert answer.text.startswith(BOAT)


def test_a_sure_answer_is_not_read_twice_nor_one_that_is_wished_for_anyway() -> None:
    assert ask("The boat leaves at nine.", sure=4.0)[0].outcome == "answered"
    assert ask("The boat leaves at nine.", sure=0.8, anyway=True)[0].outcome == "answered"


@pytest.mark.parametrize(
    ("one", "other", "kind", "expected"),
    [
        ("The fee is 25 EUR.", "It is a fee of EUR 25.", "number", True),
        ("The fee is 25 EUR.", "The fee is 30 EUR.", "number", False),
        ("The fee is 25 EUR.", "The fee is 25 EUR, and 30 EUR on Sundays.", "number", True),
        ("Yes, dogs may come along.", "No, dogs may not come along.", "yes_no", False),
        ("Ms Reyl keeps the key.", "Mr Odum keeps the spare key.", "name", False),
        ("Ms Reyl keeps the key.", "It is kept by Ms Reyl, as is every key.", "name", True),
        ("Ms Reyl keeps the key.", "The gate is locked at night.", "name", False),
        ("It ends on 3 May 2025.", "It ends on 4 May 2025.", "date", False),
        ("It ends on 3 May 2025.", "", "date", False),
    ],
)
def test_two_answers_say_the_same_if_numbers_and_words_agree(
    one: str, other: str, kind: AnswerType, expected: bool
) -> None:
    assert say_the_same([one] if one else [], [other] if other else [], kind, "?") is expected
