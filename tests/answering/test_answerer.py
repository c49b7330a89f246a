"""Answers: whether to answer, with what the model says, its citations checked."""

import math

import pytest

from local_rag.answering.answerer import REFUSAL, Answerer, answer_room
from local_rag.answering.prompt import CHECK, REQUEST
from local_rag.answering.reading_budget import USUAL
from local_rag.errors import QuestionError
from local_rag.llama.open import open_engine
from local_rag.models.registry import resolve
from local_rag.records import Answer, Passage
from tests.fakes import FakeGenerator, FakeVocabulary, passage


def ask(generator: FakeGenerator, *passages: Passage, question: str = "When?") -> tuple[Answer, list[str]]:
    """Answer, and return the answer with the pieces in which it was told."""
    pieces: list[str] = []
    return Answerer(generator, 0.0).answer(question, passages, on_text=pieces.append), pieces


def says(text: str) -> FakeGenerator:
    return FakeGenerator(lambda _prompt: text)


def test_the_model_is_first_asked_whether_and_then_what() -> None:
    generator = says("At seven [1].")
    answer, _ = ask(generator, passage("It leaves at seven.", title="Handbook"))
    check, request = generator.prompts
    assert CHECK in check
    assert REQUEST in request
    assert check.partition(CHECK)[0] == request.partition(REQUEST)[0], "both share the sources"
    assert "[1] Handbook\nIt leaves at seven.\n\nQuestion: When?\n" in request
    assert (answer.question, answer.answered) == ("When?", True)
    assert answer.log_odds is not None
    assert answer.log_odds > 9


def test_citations_of_no_source_are_removed_and_reported() -> None:
    answer, pieces = ask(says("At seven [1]. Or eight [7], nine [2, 9]."), passage("seven"), passage("nine"))
    assert answer.text == "At seven [1]. Or eight, nine [2]."
    assert "".join(pieces) == answer.text
    assert [(citation.number, citation.passage.text) for citation in answer.citations] == [(1, "seven"), (2, "nine")]
    assert answer.removed_citations == (7, 9)
    assert [(support.sentence, support.removed) for support in answer.support] == [
        ("At seven [1].", ()),
        ("Or eight, nine [2].", (7, 9)),
    ]


def test_an_answer_without_citation_gets_one() -> None:
    answer, pieces = ask(says("At seven."), passage("nine"), passage("It leaves at seven."))
    assert answer.text == "".join(pieces) == "At seven. [2]"
    assert [citation.passage.text for citation in answer.citations] == ["It leaves at seven."]


def test_a_model_that_says_nothing_has_not_answered() -> None:
    answer, pieces = ask(says(" [3] \n"), passage("nine"))
    assert (answer.text, answer.answered, answer.citations, answer.removed_citations, pieces) == (
        "",
        False,
        (),
        (3,),
        [],
    )


def test_low_odds_give_the_fixed_sentence_and_nothing_else() -> None:
    generator = FakeGenerator(lambda _prompt: "Invented [1].", holds=lambda _prompt: False)
    answer, pieces = ask(generator, passage("nine"))
    assert (answer.text, answer.answered, answer.citations) == (REFUSAL, False, ())
    assert pieces == [REFUSAL]
    assert [passage.text for passage in answer.read] == ["nine"]
    assert answer.closest == answer.read
    assert len(generator.prompts) == 1, "what it would have answered is not asked"


def test_the_next_question_is_answered_where_nobody_listened_to_the_last() -> None:
    answerer = Answerer(says("At seven [1]."), 0.0)

    def hang_up(_text: str) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError) as kept:
        answerer.answer("When?", [passage("It leaves at seven.")], on_text=hang_up)
    assert answerer.answer("When?", [passage("It leaves at seven.")]).answered, kept


def test_the_threshold_is_in_log_odds() -> None:
    sure, nine = says("At nine [1]."), [passage("nine")]
    odds = Answerer(sure, 0.0).answer("When?", nine).log_odds
    assert odds is not None
    assert Answerer(sure, odds - 0.1).answer("When?", nine).answered
    assert not Answerer(sure, odds + 0.1).answer("When?", nine).answered


def test_no_passages_no_answer() -> None:
    generator = says("Invented [1].")
    answer, pieces = ask(generator)
    assert (answer.text, answer.answered, answer.log_odds, pieces) == (REFUSAL, False, None, [REFUSAL])
    assert generator.prompts == []


def test_only_the_passages_that_fit_are_read() -> None:
    many = [passage(f"{number} " + "word " * 20) for number in range(99)]
    answerer = Answerer(says("Yes [1]."), 0.0)
    short, whole = (answerer.answer("When?", many, prompt_tokens=limit) for limit in (USUAL, None))
    assert 2 < len(short.read) < len(whole.read) < 99
    assert short.read == tuple(many[: len(short.read)])
    small = Answerer(FakeGenerator(lambda _prompt: "Yes [1].", context_tokens=1000), 0.0)
    assert small.answer("When?", many) == small.answer("When?", many, prompt_tokens=None), "all that the model can read"


def test_an_endless_question_is_not_taken_for_one_without_answer() -> None:
    with pytest.raises(QuestionError, match="leaves no room for passages; shorten it"):
        ask(says("Yes [1]."), passage("It leaves at seven."), question="When? " * 2000)


class ByteVocabulary(FakeVocabulary):
    """A vocabulary whose tokens are bytes."""

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        return list(text.encode(errors="surrogateescape"))

    def piece(self, token: int) -> bytes:
        return bytes([token])

    def detokenize(self, tokens: list[int]) -> str:
        return bytes(tokens).decode(errors="replace")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Blåbær på Gråskjær, 東京 🙂 [1].", "Blåbær på Gråskjær, 東京 🙂 [1]."),
        ("Cut \udcf0\udc9f\udc99", "Cut \ufffd [1]"),
        ("No \udcff\udcff\udcff\udcfftext [1]", "No \ufffd\ufffd\ufffd\ufffdtext [1]"),
    ],
    ids=["characters of several tokens", "cut in the midst of one", "no text at all"],
)
def test_tokens_become_characters(said: str, text: str) -> None:
    generator = says(said)
    generator.model = ByteVocabulary()
    answer, pieces = ask(generator, passage("cut"))
    assert answer.text == "".join(pieces) == text


def test_the_room_for_an_answer_is_no_more_than_the_model_has() -> None:
    assert answer_room(2048, 16) == 2048
    assert answer_room(131072, 16) == 8192


@pytest.mark.slow
def test_the_tiny_model_really_answers_and_really_refuses() -> None:
    model = resolve("smollm2-135m-instruct", "answer")
    pieces: list[str] = []
    sources = [passage("The boat leaves at seven."), passage("Bread is baked with rye flour.")]
    with open_engine(model.path, context_tokens=answer_room) as engine:
        answer = Answerer(engine, -math.inf).answer("When does the boat leave?", sources, on_text=pieces.append)
        refusal = Answerer(engine, math.inf).answer("When does the boat leave?", sources)
    assert answer.answered
    assert "".join(pieces) == answer.text
    assert "seven" in answer.text
    assert answer.citations
    assert (refusal.text, refusal.answered) == (REFUSAL, False)
    assert answer.log_odds is not None
    assert refusal.log_odds == pytest.approx(answer.log_odds, abs=0.5)
