"""What of an answer is a citation and what is text, as it is written and as a whole."""

from local_rag.asking.answer import Answerer
from local_rag.records import Answer, Passage
from tests.fakes import FakeGenerator


def passage(text: str) -> Passage:
    return Passage(1, "a.md", "Handbook", text, "", "", (), None, 1, 2, 0.5)


def answered(reply: str, *sources: str) -> Answer:
    """Answer with a model that says just this; the answer must be the same as it was streamed."""
    pieces: list[str] = []
    answerer = Answerer(FakeGenerator(lambda _prompt: reply), 0.0)
    answer = answerer.answer("When?", [passage(text) for text in sources], on_text=pieces.append)
    assert "".join(pieces) == answer.text
    return answer


def test_an_uncited_answer_that_shares_no_word_with_any_source_cites_none() -> None:
    answer = answered("Bananas ripen.", "The boat leaves at seven.", "Leave is 49 weeks.")
    assert (answer.text, answer.citations, answer.answered) == ("Bananas ripen.", (), True)


def test_an_uncited_answer_cites_the_source_that_shares_most_words() -> None:
    answer = answered("It leaves at nine.", "Unlike any.", "The boat leaves at seven.")
    assert answer.text == "It leaves at nine. [2]"
    assert [citation.number for citation in answer.citations] == [2]
