"""Why an answer is only quoted: said in the answer, in JSON and beside it, in the language of the question."""

import pytest

from local_rag.answer_records import Answer
from local_rag.answering.answerer import Answerer
from local_rag.answering.compose import LACKING, NO_NUMBER, STANDS_ON_NOTHING, UNSURE
from local_rag.answering.remarks import remarks
from local_rag.answering.selection import Source, whole_sources
from local_rag.display import answer_as_dict
from local_rag.model_records import Calibration
from local_rag.retrieval.question import read_question
from tests.fakes import TRAINED, TrainedGenerator, passage

BOAT = "The boat leaves at seven. It carries mail."


def ask(said: str, question: str, text: str = BOAT, answer_from: float = 0.5) -> Answer:
    """Answer with a model whose first token makes an answer certain enough, unless `answer_from` is higher."""
    gate = Calibration("prompt", 0.0, {"answerable": 1.0}, answer_from, 0.01)
    given: list[Source] = whole_sources("?", [[passage(text)]])
    generator = TrainedGenerator(lambda _: said, sure=2.0)
    return Answerer(lambda: generator, gate, form=TRAINED).answer(read_question(question), given)


@pytest.mark.parametrize(
    ("said", "question", "reason"),
    [
        ("The boat leaves at 8:15.", "When does the boat leave?", LACKING),
        ("Whales sing.", "What does the boat carry?", STANDS_ON_NOTHING),
        ("It is the boat that carries mail.", "How many letters does the boat carry?", NO_NUMBER),
        ("It is the boat that carries mail.", "On what date does the boat carry mail?", NO_NUMBER),
    ],
)
def test_a_rule_that_keeps_an_answer_back_is_named(said: str, question: str, reason: str) -> None:
    answer = ask(said, question)
    assert (answer.outcome, answer.reason) == ("quoted", reason)
    assert "8:15" not in f"{answer.text} {answer.reason}", "what no document says is told nowhere"
    assert reason in remarks(answer, str)
    assert answer_as_dict(answer)["reason"] == reason


def test_an_improbable_answer_is_kept_back_because_it_is_unsure() -> None:
    answer = ask("The boat leaves at seven.", "When does the boat leave?", answer_from=0.99)
    assert (answer.outcome, answer.reason) == ("quoted", UNSURE)


def test_an_answer_that_is_given_needs_no_reason() -> None:
    answer = ask("The boat leaves at seven.", "When does the boat leave?")
    assert (answer.outcome, answer.reason) == ("answered", "")


def test_the_reason_is_in_the_language_of_the_question() -> None:
    answer = ask("Das Schiff fährt um 8:15 Uhr.", "Wann fährt das Schiff ab und wohin?", "Das Schiff fährt um sieben.")
    assert answer.outcome == "quoted"
    assert answer.reason.startswith("Zitiert, weil")
