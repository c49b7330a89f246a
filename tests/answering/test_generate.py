"""An answer as it is written: one for each thing that is asked for."""

from local_rag.answering.generate import write_answer
from local_rag.answering.prompt import REQUEST
from tests.fakes import FakeGenerator

QUESTION = "When does the boat leave, and who sails it?"


def replies(first: str, second: str) -> FakeGenerator:
    return FakeGenerator(lambda prompt: second if "Who sails it?" in prompt else first)


def test_each_thing_that_is_asked_for_is_answered_from_the_same_sources() -> None:
    generator = replies("At seven [1].", "Terna does [2].")
    prefix = generator.model.tokenize(f"Sources\nQuestion: {QUESTION}\n")
    assert list(write_answer(QUESTION, prefix, generator))[-1] == " Terna does [2]."
    first, second = generator.prompts
    assert first.startswith(shared := generator.model.detokenize(prefix))
    assert second.startswith(shared)
    assert "Answer only this part of the question: When does the boat leave?" in first
    assert "Answer only this part of the question: Who sails it?" in second
    assert REQUEST in second


def test_what_was_said_before_is_not_said_again() -> None:
    generator = replies(
        "The boat leaves at seven. Terna sails it [1].", "Terna sails it [2]. She is ten metres long [2]."
    )
    text = "".join(write_answer(QUESTION, [], generator))
    assert text == "The boat leaves at seven. Terna sails it [1]. She is ten metres long [2]."


def test_the_first_is_told_as_it_is_generated() -> None:
    pieces = write_answer("When?", [], generator := FakeGenerator(lambda _prompt: "At seven [1]."))
    assert next(pieces) == "A"
    assert len(generator.prompts) == 1
    assert "".join(pieces) == "t seven [1]."
