from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.asking.answer import REFUSAL, Answerer, check_citations, most_similar_source
from local_rag.errors import QuestionError
from local_rag.models.registry import resolve
from local_rag.records import Passage


def passage(text: str, title: str = "Handbook") -> Passage:
    return Passage(1, "a.md", title, text, "", "", (), None, 1, 2, 0.5)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["It is seven [1]."], [("It is seven", []), (" [1]", [1]), (".", [])]),
        (
            ["It is ", "seven ", "[", "1", ", 2", "]", "."],
            [("It is", []), (" seven", []), (" [1, 2]", [1, 2]), (".", [])],
        ),
        (["a[1][12]"], [("a", []), ("[1]", [1]), ("[12]", [12])]),
        (["list[int] and [x]"], [("list[int] and [x]", [])]),
        (["open [1"], [("open", []), (" [1", [])]),
        ([], []),
    ],
)
def test_citations_are_found_across_pieces(pieces: list[str], expected: list[tuple[str, list[int]]]) -> None:
    assert list(check_citations(iter(pieces))) == expected


@given(st.lists(st.text(alphabet="ab [],12\n", max_size=6), max_size=12))
def test_however_the_text_is_cut_the_same_comes_out(pieces: list[str]) -> None:
    def whole(parts: list[str]) -> tuple[str, list[int]]:
        found = list(check_citations(iter(parts)))
        return "".join(text for text, _ in found), [number for _, numbers in found for number in numbers]

    assert whole(pieces) == whole(["".join(pieces)])
    assert whole(pieces)[0] == "".join(pieces).rstrip()


def test_an_uncited_answer_is_traced_to_the_source_that_says_it() -> None:
    sources = [passage("The boat leaves at seven."), passage("Leave is 49 weeks at full pay."), passage("")]
    assert most_similar_source("You get 49 weeks of leave.", sources) == 2


class Scripted(Answerer):
    """The real thing with the tiny model, but for what the model would say."""

    odds = 1.0
    says: tuple[str, ...] = ()

    def log_odds(self, prefix: object) -> float:
        return self.odds

    def _generate(self, prefix: object) -> Iterator[str]:
        yield from self.says


@pytest.fixture(scope="module")
def answerer() -> Iterator[Scripted]:
    answerer = Scripted(resolve("smollm2-135m-instruct", "answer"))
    yield answerer
    answerer.close()


def test_citations_of_no_source_are_removed_and_reported(answerer: Scripted) -> None:
    answerer.odds, answerer.says = 1.0, ("At seven", " [1", "]. Or", " eight [7], nine [2, 9].")
    pieces: list[str] = []
    answer = answerer.answer("When?", [passage("seven"), passage("nine")], on_text=pieces.append)
    assert answer.text == "At seven [1]. Or eight, nine [2]."
    assert "".join(pieces) == answer.text
    assert [citation.number for citation in answer.citations] == [1, 2]
    assert answer.removed_citations == (7, 9)
    assert answer.answered


def test_an_answer_without_citation_gets_one(answerer: Scripted) -> None:
    answerer.odds, answerer.says = 1.0, ("At seven.",)
    answer = answerer.answer("When?", [passage("nine"), passage("It leaves at seven.")])
    assert answer.text == "At seven. [2]"
    assert [citation.passage.text for citation in answer.citations] == ["It leaves at seven."]


def test_low_odds_give_the_fixed_sentence_and_nothing_else(answerer: Scripted) -> None:
    answerer.odds, answerer.says = -3.0, ("Invented [1].",)
    pieces: list[str] = []
    answer = answerer.answer("When?", [passage("nine")], on_text=pieces.append)
    assert (answer.text, answer.answered, answer.citations) == (REFUSAL, False, ())
    assert pieces == [REFUSAL]


def test_no_passages_no_answer(answerer: Scripted) -> None:
    answerer.odds, answerer.says = 1.0, ("Invented [1].",)
    assert answerer.answer("When?", []).text == REFUSAL


def test_only_the_passages_that_fit_are_read(answerer: Scripted) -> None:
    answerer.odds, answerer.says = 1.0, ("Yes [1].",)
    many = [passage(f"{number} " + "word " * 120) for number in range(99)]
    short, whole = (answerer.answer("When?", many, whole_context=flag) for flag in (False, True))
    assert 3 < len(short.passages) < len(whole.passages) < 99
    assert short.passages == tuple(many[: len(short.passages)])


def test_a_passage_too_large_for_the_prompt_gives_way_to_the_next(answerer: Scripted) -> None:
    answerer.odds, answerer.says = 1.0, ("At seven [1].",)
    answer = answerer.answer("When?", [passage("\U00012000" * 2000), passage("It leaves at seven.")])
    assert [citation.passage.text for citation in answer.citations] == ["It leaves at seven."]


def test_an_endless_question_is_not_taken_for_one_without_answer(answerer: Scripted) -> None:
    with pytest.raises(QuestionError, match="leaves no room for passages; ask in fewer words"):
        answerer.answer("When? " * 2000, [passage("It leaves at seven.")])


def test_the_tiny_model_really_answers() -> None:
    answerer = Answerer(resolve("smollm2-135m-instruct", "answer"))
    pieces: list[str] = []
    try:
        answer = answerer.answer(
            "When does the boat leave?", [passage("The boat leaves at seven.")], on_text=pieces.append
        )
    finally:
        answerer.close()
    assert "".join(pieces) == answer.text
    assert answer.text
    assert answer.answered == (answer.text != REFUSAL)
