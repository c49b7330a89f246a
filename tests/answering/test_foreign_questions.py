"""A question in another language than that of the documents is searched and answered in English."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from local_rag.answer_records import Answer
from local_rag.answering.answerer import Answerer
from local_rag.answering.foreign_questions import in_english
from local_rag.answering.pipeline import AnswerPipeline
from local_rag.asking import DEFAULT_OPTIONS, AskOptions
from local_rag.model_records import Calibration
from local_rag.passage_records import Passage
from local_rag.retrieval.question import Question, read_question
from local_rag.retrieval.searcher import Trace
from tests.fakes import TRAINED, FakeGenerator, TrainedGenerator, passage

TYPED, ENGLISH = "Wie viele Tage Urlaub bekommt ein Lehrling?", "How many days of leave does an apprentice get?"


def ask(
    question: str,
    *,
    knows: Callable[[str], float] = lambda text: 1.0 if text == ENGLISH else 0.2,
    answer: str = "25 days.",
    found: str = "An apprentice gets 25 days of leave.",
    translates: bool = True,
    calibration: Calibration | None = None,
    options: AskOptions = DEFAULT_OPTIONS,
) -> tuple[list[str], Answer]:
    searched = list[str]()

    def search(asked: Question, **_how: object) -> Trace:
        searched.append(asked.text)
        return Trace([passage(found)] if found else list[Passage](), {}, {})

    generator = TrainedGenerator(lambda prompt: ENGLISH if "Translate" in prompt else answer)
    answerer = Answerer(lambda: generator, calibration, form=TRAINED, translates=translates)
    pipeline = AnswerPipeline(search, lambda: answerer, len, options, share_known=lambda asked: knows(asked.text))
    told = pipeline.ask(read_question(question), show=lambda _: None, on_passages=lambda _: None)
    return searched, told


def test_a_foreign_question_is_searched_in_english_and_the_user_is_told() -> None:
    searched, answer = ask(TYPED)
    assert searched == [ENGLISH]
    assert (answer.question, answer.outcome, answer.text) == (TYPED, "answered", "25 days. [1]")
    assert [(one.typed, one.searched) for one in answer.corrections] == [(TYPED, ENGLISH)]


def test_what_the_program_says_itself_stays_in_the_language_of_the_question() -> None:
    _, answer = ask(TYPED, found="")
    assert (answer.outcome, answer.text) == ("refused", "Die Dokumente beantworten diese Frage nicht.")


@pytest.mark.parametrize(
    "case",
    [
        {"question": "How many days of leave does an apprentice get?", "knows": lambda _: 0.0},  # English already
        {"question": TYPED, "knows": lambda _: 0.8},  # the documents are German, too
        {"question": TYPED, "knows": lambda _: 0.0},  # nor do they have the words of the translation
        {"question": TYPED, "translates": False},  # the model is too small for that
    ],
)
def test_a_question_is_left_as_it_is_where_a_translation_would_not_help(case: dict[str, object]) -> None:
    searched, answer = ask(**case)  # type: ignore[arg-type]
    assert searched == [case["question"]]
    assert answer.corrections == ()


@pytest.mark.parametrize(
    ("reply", "translation"),
    [
        ("How much is  room 12\nin 2024?", "How much is room 12 in 2024?"),
        ("How much is room 13 in 2024?", ""),  # another number asks something else
        ("", ""),
    ],
)
def test_a_translation_has_no_number_that_the_question_lacks(reply: str, translation: str) -> None:
    assert in_english("Was kostet Raum 12 im Jahr 2024?", FakeGenerator(lambda _: reply)) == translation


def test_a_translated_question_is_answered_only_if_the_model_is_surer() -> None:
    gate = Calibration("prompt", 0.6, {}, 0.5, 0.1)  # 0.65 for every answer
    assert ask(TYPED, calibration=gate)[1].outcome == "quoted"
    assert ask(ENGLISH, calibration=gate)[1].outcome == "answered"
    assert ask(TYPED, calibration=replace(gate, bias=1.2))[1].outcome == "answered"  # 0.77
