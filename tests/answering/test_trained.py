"""Answers of a model that was trained to refuse: told as they are written, and checked sentence by sentence."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from local_rag.answer_records import Answer, Written
from local_rag.answering.answerer import Answerer
from local_rag.answering.compose import NOT_SAID, NOT_SURE, REFUSAL
from local_rag.answering.pipeline import Telling
from local_rag.answering.prompt import PART
from local_rag.answering.selection import Source, whole_sources
from local_rag.errors import StoppedError
from local_rag.model_records import Calibration
from local_rag.passage_records import Passage
from local_rag.retrieval.question import Question, read_question
from tests.fakes import TRAINED, TrainedGenerator, passage

BOAT = "The boat leaves at seven. It carries mail."


def sources(*texts: str | Passage) -> list[Source]:
    given = [passage(one, key=key) if isinstance(one, str) else one for key, one in enumerate(texts, start=1)]
    return whole_sources("?", [given])


def ask(
    generator: TrainedGenerator,
    *texts: str | Passage,
    question: str = "When does the boat leave?",
    calibration: Calibration | None = None,
    more: tuple[Callable[[], list[Source]], ...] = (),
    strict: bool = True,
    anyway: bool = False,
) -> tuple[Answer, list[Written]]:
    """Return the answer, and what was told of it."""
    told = list[Written]()
    answerer = Answerer(lambda: generator, calibration, form=TRAINED)
    answer = answerer.answer(
        read_question(question), sources(*texts), more=more, strict=strict, anyway=anyway, show=Telling(told.append)
    )
    return answer, told


def standing(told: list[Written]) -> str:
    """Return the text that stands in the end."""
    text = ""
    for one in told:
        text = one.text if one.replaces else text + one.text
    return text


def test_an_answer_is_told_word_by_word_and_each_sentence_is_cited_when_it_ends() -> None:
    answer, told = ask(TrainedGenerator(lambda _: "The boat leaves at seven. It carries mail."), BOAT)
    assert answer.text == "The boat leaves at seven. [1] It carries mail. [1]"
    assert standing(told) == answer.text
    pieces = [one.text for one in told]
    assert pieces[:4] == ["The", " boat", " leaves", " at"]
    assert not any(one.replaces for one in told)


def test_the_first_token_refuses_and_nothing_is_written() -> None:
    generator = TrainedGenerator(lambda _: TRAINED.refusal)
    answer, told = ask(generator, BOAT)
    assert (answer.outcome, answer.text, told) == ("refused", REFUSAL, [])
    assert len(generator.prompts) == 1
    assert answer.log_odds == pytest.approx(-4.0)


def test_between_an_answer_and_a_refusal_what_comes_closest_is_quoted() -> None:
    generator = TrainedGenerator(lambda _: TRAINED.refusal, sure=1.0, otherwise="It carries mail.")
    answer, told = ask(generator, BOAT)
    assert (answer.outcome, told) == ("quoted", [])
    assert answer.quotes[0].text == "It carries mail.", "what the model would say stands on it"
    assert ask(generator, BOAT, anyway=True)[0].text == "It carries mail. [1]"


@pytest.mark.parametrize(("answer_from", "quote_from", "outcome"), [(0.9, 0.1, "answered"), (0.99, 0.1, "quoted")])
def test_a_calibration_of_the_first_token_decides(answer_from: float, quote_from: float, outcome: str) -> None:
    gate = Calibration("prompt", 0.0, {"answerable": 1.0}, answer_from, quote_from)
    answer, told = ask(TrainedGenerator(lambda _: "At seven."), BOAT, calibration=gate)
    assert (answer.outcome, bool(told)) == (outcome, outcome == "answered")
    assert answer.probability == pytest.approx(0.982, abs=1e-3)


def test_a_number_that_nothing_shown_has_is_never_told() -> None:
    answer, told = ask(TrainedGenerator(lambda _: "The boat leaves at 26 o'clock."), "The boat leaves at 7 o'clock.")
    assert (answer.outcome, answer.text) == ("quoted", f"{NOT_SURE}\n- The boat leaves at 7 o'clock. [1]")
    assert "26" not in "".join(one.text for one in told)


def test_a_sentence_that_fails_its_check_is_struck_and_its_quotation_takes_its_place() -> None:
    said = "The boat leaves at seven. It carries mail to 30 farms."
    answer, told = ask(TrainedGenerator(lambda _: said), "The boat leaves at seven. It carries mail.", "30 farms.")
    assert answer.outcome == "answered"
    assert answer.text == "The boat leaves at seven. [1] \u201cIt carries mail.\u201d [1]"
    assert standing(told) == answer.text
    assert any(one.replaces for one in told)
    assert [one.sentence for one in answer.support] == ["The boat leaves at seven."]
    kept, _ = ask(
        TrainedGenerator(lambda _: said), "The boat leaves at seven. It carries mail.", "30 farms.", strict=False
    )
    assert "30 farms. [" in kept.text


def test_an_answer_about_something_else_than_is_asked_becomes_a_quotation() -> None:
    kessler = passage("The notice period is three months.", title="Contract with Kessler", path="k.md")
    fjordan = passage("Payment is due at once.", key=2, title="Contract with Fjordan", path="f.md")
    generator = TrainedGenerator(lambda _: "The notice period is three months.")
    asked = "How long is the notice period with {}?"
    assert ask(generator, kessler, fjordan, question=asked.format("Kessler"))[0].answered
    answer, told = ask(generator, kessler, fjordan, question=asked.format("Fjordan"))
    assert (answer.outcome, standing(told)) != ("answered", answer.text)
    assert ask(generator, kessler, question=asked.format("Fjordan"))[0].answered, "no other source is about that"


def test_a_source_about_one_of_two_things_that_are_compared_is_about_the_question() -> None:
    kessler = passage("The warranty is 36 months.", title="Offer of Kessler", path="k.md")
    fjordan = passage("The warranty is 18 months.", key=2, title="Offer of Fjordan", path="f.md")
    generator = TrainedGenerator(lambda _: "Kessler gives the longer warranty: 36 months.")
    answer, _ = ask(generator, kessler, fjordan, question="Who gives the longer warranty, Kessler or Fjordan?")
    assert answer.answered


def test_an_answer_without_the_kind_of_thing_that_is_asked_for_becomes_a_quotation() -> None:
    leave = "Employees get paid leave for the birth of a child. It lasts 12 weeks."
    generator = TrainedGenerator(lambda _: "Employees get paid leave for the birth of a child.")
    assert ask(generator, leave, question="What do employees get?")[0].outcome == "answered"
    assert ask(generator, leave, question="How many weeks of leave do employees get?")[0].outcome == "quoted"


def test_a_sentence_about_two_things_may_stand_on_two_passages() -> None:
    lodge = passage("25 % of the price is due at once.", title="The lodge", path="l.md")
    cottage = passage("50 % of the price is due at once.", key=2, title="The cottage", path="c.md")
    said = "25 % of the price is due at the lodge, and 50 % of the price is due at the cottage."
    answer, _ = ask(TrainedGenerator(lambda _: said), lodge, cottage, question="What is due at once for each?")
    assert answer.text == f"{said} [1, 2]"
    wrong = "50 % of the price is due at the lodge, and 90 % of the price is due at the cottage."
    assert ask(TrainedGenerator(lambda _: wrong), lodge, cottage, question="What is due?")[0].outcome == "quoted"


def test_a_qualifier_of_another_passage_is_left_out() -> None:
    given = passage("Travel by rail under 7 hours.", title="Travel"), passage("TP-9 is in force.", key=2, title="About")
    said = "In TP-9, travel by rail under 7 hours."
    answer, _ = ask(TrainedGenerator(lambda _: said), *given, question="When do I travel by rail?")
    assert answer.text == "Travel by rail under 7 hours. [1]"


def test_a_part_of_which_no_kind_is_known_is_asked_for_and_added_if_it_says_more() -> None:
    def reply(prompt: str) -> str:
        return "It reported fault A3." if f"{PART}Which" in prompt or PART not in prompt else "Crank it by hand."

    question = "Which fault did it report, and what should be done about it?"
    answer, _ = ask(TrainedGenerator(reply), "It reported fault A3. Crank it by hand.", question=question)
    assert answer.text == "It reported fault A3. [1] Crank it by hand. [1]"
    once = TrainedGenerator(lambda prompt: TRAINED.refusal if PART in prompt else "It reported fault A3.")
    assert ask(once, "It reported fault A3.", question=question)[0].text == "It reported fault A3. [1]"


class SplitGenerator(TrainedGenerator):
    """A model that likelier answers than not, but begins answers in two ways, each less likely than the refusal."""

    def log_probabilities(self, _prefix: Sequence[int], _suffix: Sequence[int]) -> np.ndarray:
        probabilities = np.full(256, -30.0)
        probabilities[[ord(TRAINED.refusal[0]), ord("A"), ord("B")]] = np.log([0.4, 0.31, 0.29])
        return probabilities


def test_where_an_answer_is_likelier_than_the_refusal_an_answer_is_written() -> None:
    answer, told = ask(SplitGenerator(lambda _: TRAINED.refusal, otherwise="At seven."), BOAT)
    assert answer.text == standing(told) == "At seven. [1]"


def test_more_is_read_only_where_the_first_sources_do_not_answer() -> None:
    generator = TrainedGenerator(lambda prompt: "At seven." if "seven" in prompt else TRAINED.refusal)
    selected = list[str]()

    def more() -> list[Source]:
        selected.append("more")
        return sources("Rye is bread.", BOAT)

    answer, _ = ask(generator, "Rye is bread.", more=(more,))
    assert (answer.text, selected) == ("At seven. [2]", ["more"])
    ask(generator, BOAT, more=(more,))
    assert selected == ["more"]


@pytest.mark.parametrize(
    ("sure", "first", "then", "read"),
    [
        (4.0, -2.0, -2.0, False),
        (4.0, -2.0, -1.0, True),
        (1.0, -2.0, -2.0, True),
        (4.0, 2.0, 1.0, True),
        (4.0, 2.0, -1.0, False),
        (4.0, None, None, True),
    ],
)
def test_a_sure_refusal_reads_more_only_of_what_the_reader_takes_for_an_answer(
    sure: float, first: float | None, then: float | None, read: bool
) -> None:
    generator = TrainedGenerator(lambda prompt: "At seven." if "seven" in prompt else TRAINED.refusal, sure=sure)
    rye, boat = sources("Rye is bread.", BOAT)
    shown = [replace(rye, answers=first)]
    answerer = Answerer(lambda: generator, form=TRAINED)
    more = [*shown, replace(boat, answers=then)]
    answer = answerer.answer(read_question("When does the boat leave?"), shown, more=(lambda: more,))
    assert (answer.outcome == "answered") == read


def test_of_two_readings_the_one_counts_of_which_the_model_is_surer() -> None:
    unsure = TrainedGenerator(lambda prompt: TRAINED.refusal if "Rye" in prompt else "At seven.", sure=1.0)
    answer, _ = ask(unsure, BOAT, more=(lambda: sources("Rye is bread.", BOAT),))
    assert answer.text == "At seven. [1]", "more text made it unsure"


BOTH = "When does the boat leave, and who sails it?"


def test_a_part_that_the_sources_do_not_answer_is_named() -> None:
    def reply(prompt: str) -> str:
        return "At seven." if f"{PART}When" in prompt else TRAINED.refusal

    answer, told = ask(TrainedGenerator(reply), BOAT, question=BOTH)
    assert (answer.outcome, answer.text) == ("answered", f"At seven. [1]\n\n{NOT_SAID} Who sails it?")
    assert standing(told) in answer.text


def test_the_answer_to_all_parts_is_asked_for_once() -> None:
    generator = TrainedGenerator(lambda _: "The boat leaves at seven, and Terna sails it.")
    answer, _ = ask(generator, "The boat leaves at seven. Terna sails it.", question=BOTH)
    assert answer.outcome == "answered"
    assert len(generator.prompts) == 1


def test_what_was_read_is_not_read_again_to_answer_anyway() -> None:
    generator = TrainedGenerator(lambda _: TRAINED.refusal, sure=1.0, otherwise="At seven.")
    answerer, given = Answerer(lambda: generator, form=TRAINED), sources(BOAT)
    assert answerer.answer(Question("When?"), given).outcome == "quoted"
    read = len(generator.prompts)
    assert answerer.answer(Question("When?"), given, anyway=True).text == "At seven. [1]"
    assert len(generator.prompts) == read


def test_it_can_be_stopped_at_every_token() -> None:
    generator, told = TrainedGenerator(lambda _: "The boat leaves at seven."), list[Written]()
    answerer = Answerer(lambda: generator, form=TRAINED)
    with generator.stopping(lambda: len(told) > 1), pytest.raises(StoppedError):
        answerer.answer(Question("When?"), sources(BOAT), show=Telling(told.append))
    assert [one.text for one in told] == ["The", " boat"]


def test_a_text_is_told_in_pieces_and_anew_where_it_loses_its_end() -> None:
    told = list[Written]()
    tell = Telling(told.append)
    for text in ("One", "One two", "One two", "One \u201cthree\u201d", "One \u201cthree\u201d four"):
        tell(text)
    assert told == [
        Written("One"),
        Written(" two"),
        Written("One \u201cthree\u201d", replaces=True),
        Written(" four"),
    ]
