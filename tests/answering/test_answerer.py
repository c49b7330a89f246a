"""Answers: written and judged by the model, then given, quoted or refused."""

import math
from functools import partial

import pytest

from local_rag.answer_records import Answer, Quote
from local_rag.answering.answerer import Answerer, answer_room
from local_rag.answering.compose import NOT_SURE, REFUSAL
from local_rag.answering.prompt import PART, PROPOSAL
from local_rag.answering.selection import Source, whole_sources
from local_rag.asking import Turn
from local_rag.errors import QuestionError
from local_rag.llama.models_in_use import open_engine
from local_rag.model_records import PLAIN_FORM, Calibration
from local_rag.models.registry import resolve
from local_rag.passage_records import Hit, Passage
from local_rag.retrieval.question import Question, read_question
from tests.fakes import FakeGenerator, FakeReader, FakeVocabulary, passage

REQUEST = PLAIN_FORM.request
BOAT = "The boat leaves at seven. It carries mail."


def sources(*texts: str | Passage) -> list[Source]:
    given = [passage(one, key=key) if isinstance(one, str) else one for key, one in enumerate(texts, start=1)]
    return whole_sources("?", [given])


def ask(generator: FakeGenerator, *texts: str | Passage, question: str = "When?", strict: bool = True) -> Answer:
    return Answerer(lambda: generator).answer(read_question(question), sources(*texts), strict=strict)


def says(text: str, *, right: bool = True, context_tokens: int = 8192) -> FakeGenerator:
    return FakeGenerator(lambda _prompt: text, lambda _prompt: right, context_tokens=context_tokens)


def calibration(answer_from: float, quote_from: float, signal: str = "right") -> Calibration:
    """Return one by which an answer is as probable as the model says that it is right, which the fakes are sure of."""
    return Calibration("prompt", 0.0, {signal: 1.0}, answer_from, quote_from)


def test_the_model_first_answers_and_then_says_whether_that_is_right() -> None:
    generator = says("At seven.")
    answer = ask(generator, passage(BOAT, title="Handbook"))
    request, proposal = generator.prompts
    proposed = PROPOSAL.format(answer="At seven.")
    assert request.partition(REQUEST)[0] == proposal.partition(proposed)[0] != proposal, "both share the sources"
    assert f"Source: Handbook\n{BOAT}\n\nQuestion: When?\n{REQUEST}" in request
    assert (answer.question, answer.outcome, answer.answered) == ("When?", "answered", True)
    assert answer.log_odds is not None
    assert answer.log_odds > 9
    assert (answer.probability, answer.threshold) == (None, None)


@pytest.mark.parametrize(
    ("close_from", "cosine", "outcome"), [(0.8, 0.82, "quoted"), (0.8, 0.78, "refused"), (None, 0.82, "refused")]
)
def test_a_passage_in_another_language_is_quoted_if_its_meaning_is_close(
    close_from: float | None, cosine: float, outcome: str
) -> None:
    answerer = Answerer(lambda: says("Um sieben.", right=False), close_from=close_from)
    near = passage(BOAT, hits=(Hit("keyword", 1, 9.0), Hit("dense", 1, cosine)))
    assert answerer.answer(Question("Wann ist die Abfahrt?"), sources(near)).outcome == outcome


def test_each_sentence_cites_and_quotes_what_it_stands_on() -> None:
    answer = ask(says("It leaves at seven. Bread is baked at noon."), BOAT, "Bread is baked with rye, at noon.")
    assert answer.text == "It leaves at seven. [1] Bread is baked at noon. [2]"
    assert [one.citations for one in answer.support] == [(1,), (2,)]
    assert all(one.supported for one in answer.support)
    assert answer.quotes == (
        Quote("The boat leaves at seven.", 1, 0, 25),
        Quote("Bread is baked with rye, at noon.", 2, 0, 33),
    )
    assert [(one.number, one.passage) for one in answer.citations] == list(enumerate(answer.read, start=1))
    assert [one.citation for one in answer.shown] == [1, 2]


def test_a_citation_that_the_model_wrote_is_left_out() -> None:
    assert ask(says("It leaves at seven [3, 4]."), BOAT).text == "It leaves at seven. [1]"


def test_a_number_that_the_quotation_lacks_is_missing() -> None:
    boat = "The boat carries mail to 30 farms."
    (support,) = ask(says("The boat carries mail to 26 farms."), boat, strict=False).support
    assert (support.supported, support.missing) == (False, ("26",))


def test_a_sentence_that_nothing_supports_is_not_given() -> None:
    answer = ask(says("It leaves at seven. Bananas ripen quickly."), BOAT)
    assert answer.text == "It leaves at seven. [1]"


@pytest.mark.parametrize(
    "generator", [says("It leaves at seven.", right=False), says("Bananas ripen."), says(" [3] \n")]
)
def test_instead_of_a_doubtful_answer_the_documents_are_quoted(generator: FakeGenerator) -> None:
    answer = ask(generator, BOAT)
    assert answer.outcome == "quoted"
    assert answer.text == f"{NOT_SURE}\n- The boat leaves at seven. [1]\n- It carries mail. [1]"
    assert [one.text for one in answer.quotes] == ["The boat leaves at seven.", "It carries mail."]
    assert [one.number for one in answer.citations] == [1]
    assert (answer.support, answer.closest) == ((), ())


def test_a_quoted_row_of_a_table_names_its_columns() -> None:
    table = "| Line | Leaves at |\n| --- | --- |\n| Mail boat | 7:00 |"
    answer = ask(says("The mail boat leaves at 7:00.", right=False), table, question="When does the mail boat leave?")
    assert answer.text == f"{NOT_SURE}\n- Line: Mail boat; Leaves at: 7:00 [1]"
    assert [one.text for one in answer.quotes] == ["| Mail boat | 7:00 |"]


def test_where_no_source_has_a_word_of_the_question_it_is_refused() -> None:
    texts = "Rye.", "Wheat.", "Oats.", "Barley."
    answer = ask(says("Invented."), *texts, question="How long is a camel?")
    assert (answer.text, answer.outcome, answer.citations, answer.quotes) == (REFUSAL, "refused", (), ())
    assert [one.text for one in answer.read] == [*texts]
    assert answer.closest == answer.read[:3]


def test_a_refusal_and_a_doubt_are_told_in_the_language_of_the_question() -> None:
    refused = ask(says("Erfunden."), "Rye.", question="Wie lang ist ein Kamel?")
    assert refused.text == "Die Dokumente beantworten diese Frage nicht."
    quoted = ask(says("It leaves at seven.", right=False), BOAT, question="Wann fährt the boat ab, und wie oft?")
    assert quoted.text.startswith("Nicht sicher. Das sagen die Dokumente:\n- The boat")


def test_without_sources_the_model_is_not_asked() -> None:
    generator = says("Invented.")
    answer = ask(generator)
    assert (answer.text, answer.outcome, answer.log_odds) == (REFUSAL, "refused", None)
    assert generator.prompts == []


@pytest.mark.parametrize(
    ("right", "answer_from", "quote_from", "outcome"),
    [(True, 0.9, 0.1, "answered"), (False, 0.9, 0.0, "quoted"), (False, 0.9, 0.1, "refused")],
)
def test_the_calibrated_probability_decides(right: bool, answer_from: float, quote_from: float, outcome: str) -> None:
    answerer = Answerer(lambda: says("It leaves at seven.", right=right), calibration(answer_from, quote_from))
    answer = answerer.answer(Question("When?"), sources(BOAT))
    assert (answer.outcome, answer.threshold) == (outcome, answer_from)
    assert answer.probability == pytest.approx(float(right), abs=1e-6)
    assert answerer.answer(Question("When?"), []).probability == 0.0


@pytest.mark.parametrize(("right", "outcome"), [(True, "answered"), (False, "quoted")])
def test_where_a_signal_is_missing_the_models_own_yes_decides(right: bool, outcome: str) -> None:
    answerer = Answerer(lambda: says("It leaves at seven.", right=right), calibration(0.9, 0.9, "answers"))
    answer = answerer.answer(Question("When?"), sources(BOAT))
    assert (answer.outcome, answer.probability) == (outcome, None)


def test_whether_the_passages_that_an_answer_stands_on_answer_is_a_signal() -> None:
    reader = FakeReader(lambda _question, text: 2.0 if "mail" in text else 0.5)
    given = whole_sources("When?", [[passage(BOAT), passage("Rye is bread.", key=2)]], reader=reader)
    for said, answers in (("At seven.", 2.0), ("Bread.", 0.5), ("At seven. Bread.", 2.0), ("Bananas ripen.", 0.5)):
        draft = Answerer(partial(says, said)).draft(Question("When?"), given)
        assert draft
        assert draft.signals.answers == answers


def read(says_of_boat: float) -> list[Source]:
    """Return two sources, and what a reader says of them."""
    reader = FakeReader(lambda _question, text: says_of_boat if "mail" in text else -9.0)
    return whole_sources("When?", [[passage(BOAT), passage("Rye is bread.", key=2)]], reader=reader)


def test_if_the_readers_word_decides_the_model_is_not_asked_for_its_own() -> None:
    generator = says("It leaves at seven.", right=False)
    answer = Answerer(lambda: generator, calibration(0.5, 0.1, "answers")).answer(Question("When?"), read(2.0))
    assert (answer.outcome, answer.log_odds, len(generator.prompts)) == ("answered", None, 1)
    assert answer.probability == pytest.approx(1 / (1 + math.exp(-2.0)))


@pytest.mark.parametrize(("quote_from", "outcome"), [(0.1, "quoted"), (0.2, "refused")])
def test_where_no_passage_can_answer_nothing_is_written(quote_from: float, outcome: str) -> None:
    generator = says("It leaves at seven.")
    answerer, given = Answerer(lambda: generator, calibration(0.5, quote_from, "answers")), read(-2.0)
    answer = answerer.answer_unread(Question("When does the boat leave?"), given)
    assert answer
    assert (answer.outcome, answer.tokens, generator.prompts) == (outcome, 0, [])
    assert answer.probability == pytest.approx(1 / (1 + math.exp(2.0)))
    if outcome == "quoted":
        assert answer.quotes[0].text == "The boat leaves at seven."
    assert answerer.answer(Question("When does the boat leave?"), given, anyway=True).text == "It leaves at seven. [1]"


@pytest.mark.parametrize("said", ["It leaves at seven.", "Bananas ripen."])
def test_on_request_a_doubtful_answer_is_given(said: str) -> None:
    answer = Answerer(lambda: says(said, right=False)).answer(Question("When?"), sources(BOAT), anyway=True)
    assert answer.answered
    assert answer.text.startswith(said)
    assert [one.supported for one in answer.support] == [said != "Bananas ripen."]


def test_what_was_read_for_a_question_is_not_read_again_on_request() -> None:
    generator = says("It leaves at seven.", right=False)
    answerer, given = Answerer(lambda: generator), sources(BOAT)
    first = answerer.answer(Question("When?"), given)
    prompts = len(generator.prompts)
    again, strict = (
        answerer.answer(Question("When?"), given, anyway=True),
        answerer.answer(Question("When?"), given, strict=True),
    )
    assert len(generator.prompts) == prompts > 0
    assert [one.outcome for one in (first, again, strict)] == ["quoted", "answered", "quoted"]
    assert again == Answerer(lambda: says("It leaves at seven.", right=False)).answer(
        Question("When?"), given, anyway=True
    )
    answerer.answer(Question("When, then?"), given)
    assert len(generator.prompts) == 2 * prompts


def test_strict_quotes_instead_of_an_answer_with_a_missing_number() -> None:
    given = sources("The boat leaves the pier at 7:00.")
    for said, outcome in (("The boat leaves at 7:00.", "answered"), ("The boat leaves the pier at 8:00.", "quoted")):
        answerer = Answerer(partial(says, said))
        assert answerer.answer(Question("When?"), given, strict=False).answered
        assert answerer.answer(Question("When?"), given).outcome == outcome


def test_an_answer_that_stands_on_a_step_shows_all_steps_if_the_question_asks_how() -> None:
    steps = "Do this:\n\n1. Wait at the pier.\n2. Wave a red\n   flag."
    answer = ask(says("Wait at the pier."), steps, question="How do I board the boat?")
    assert answer.text == "Wait at the pier. [1]\n\n1. Wait at the pier.\n2. Wave a red flag. [1]"
    assert ask(says("At the pier."), steps, question="Where do I wait?").text == "At the pier. [1]"
    whole = ask(says("Wait at the pier and wave a red flag."), steps, question="How do I board the boat?")
    assert whole.text == "Wait at the pier and wave a red flag. [1]", "no step is said twice"
    assert "2. Wave a red" in whole.quotes[0].text


def test_each_part_of_a_question_is_answered_once() -> None:
    question = "When does the boat leave, and who sails it?"

    def reply(prompt: str) -> str:
        return "The boat leaves at seven. Terna sails." if f"{PART}When" in prompt else "Terna sails. It carries mail."

    generator = FakeGenerator(reply)
    answer = ask(generator, f"{BOAT} Terna sails her.", question=question)
    assert answer.text == "The boat leaves at seven. [1] Terna sails. [1] It carries mail. [1]"
    first, _, second, proposal = generator.prompts
    assert f"{PART}When does the boat leave?\n{REQUEST}" in first
    assert f"{PART}Who sails it?\n{REQUEST}" in second
    assert "Terna sails. It carries mail." in proposal


def test_an_answer_begins_with_what_it_says() -> None:
    assert ask(says("According to the provided sources, it leaves at seven."), BOAT).text == "It leaves at seven. [1]"


def test_no_more_than_two_sentences_are_taken() -> None:
    answer = ask(says("It leaves at seven. It carries mail. The boat is red."), f"{BOAT} The boat is red.")
    assert answer.text == "It leaves at seven. [1] It carries mail. [1]"


def test_a_sentence_that_wraps_like_its_source_stays_one() -> None:
    answer = ask(says("It carries mail to\nthe islands.\nThe boat leaves."), BOAT, question="What does the boat do?")
    assert answer.text == "It carries mail to the islands. [1] The boat leaves. [1]"


def test_only_the_sources_that_fit_are_read() -> None:
    many = [f"{number} " + " ".join(f"word{number * 100 + one}" for one in range(9)) for number in range(40)]
    answer = ask(says("Yes.", context_tokens=1500), *many)
    assert 2 < len(answer.read) < 40
    assert [one.text for one in answer.read] == many[: len(answer.read)]


def test_a_follow_up_is_about_what_the_question_before_is_about() -> None:
    answerer, boat = Answerer(lambda: says("At noon.", right=False)), sources(BOAT)
    assert answerer.answer(Question("And in Denmark?"), boat).outcome == "refused"
    assert (
        answerer.answer(Question("And in Denmark?"), boat, before=Turn("When does the boat leave?")).outcome == "quoted"
    )


def test_what_a_follow_up_is_not_about_is_not_said() -> None:
    leave = passage("The parent has 30 weeks of leave.", title="Leave in Norway")
    both = says("In Ireland the parent has 30 weeks. In Norway the parent has 30 weeks.")
    before = Turn("How many weeks has the parent in Ireland?")
    answer = Answerer(lambda: both).answer(Question("And in Norway?"), whole_sources("?", [[leave]]), before=before)
    assert answer.text == "In Norway the parent has 30 weeks. [1]"


@pytest.mark.parametrize("right", [True, False])
def test_sources_are_read_once_for_an_answer_and_once_for_its_judgement(right: bool) -> None:
    generator = says("It leaves at seven.", right=right)
    answer = Answerer(lambda: generator, calibration(0.5, 0.0)).answer(Question("When?"), sources(BOAT))
    assert answer.answered == right
    assert len(generator.prompts) == 2


def test_an_endless_question_is_not_taken_for_one_without_answer() -> None:
    generator = says("Yes.")
    generator.context_tokens = 1000
    with pytest.raises(QuestionError, match="leaves no room for passages; shorten it"):
        ask(generator, BOAT, question="When? " * 600)


class ByteVocabulary(FakeVocabulary):
    """A vocabulary whose tokens are bytes."""

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        return list(text.encode(errors="surrogateescape"))

    def detokenize(self, tokens: list[int]) -> str:
        return bytes(tokens).decode(errors="replace")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Blåbær på Gråskjær, 東京 🙂.", "Blåbær på Gråskjær, 東京 🙂. [1]"),
        ("Blåbær \udcf0\udc9f\udc99", "Blåbær \ufffd [1]"),
        ("Blåbær \udcff\udcff\udcff", "Blåbær \ufffd\ufffd\ufffd [1]"),
    ],
    ids=["characters of several tokens", "cut in the midst of one", "no text at all"],
)
def test_tokens_become_characters(said: str, text: str) -> None:
    generator = says(said)
    generator.model = ByteVocabulary()
    assert ask(generator, "Blåbær på Gråskjær, 東京").text == text


def test_the_room_for_an_answer_is_no_more_than_the_model_has() -> None:
    assert answer_room(2048, 16) == 2048
    assert answer_room(131072, 16) == 8192


@pytest.mark.slow
def test_the_tiny_model_really_answers() -> None:
    model = resolve("smollm2-135m-instruct", "answer")
    with open_engine(model.path, context_tokens=answer_room) as engine:
        answer = Answerer(lambda: engine).answer(
            Question("When does the boat leave?"),
            sources("The boat leaves at seven.", "Bread is baked with rye flour."),
            anyway=True,
        )
    assert answer.answered
    assert "seven" in answer.text
    assert answer.citations
    assert answer.log_odds is not None
