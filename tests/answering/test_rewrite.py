"""Follow-ups written anew: what is asked of the model, what is made of its answer, and beside what it is searched."""

from collections.abc import Callable
from pathlib import Path

import pytest

from local_rag.answering.answerer import Answerer
from local_rag.answering.pipeline import AnswerPipeline
from local_rag.answering.rewrite import require_rewriter, rewrite
from local_rag.asking import AskOptions, Turn
from local_rag.errors import ModelError, StoppedError
from local_rag.retrieval.searcher import Trace
from tests.fakes import FakeGenerator, FakeVocabulary, passage

EARLIER = (Turn("How long is leave in Ireland?", "26 weeks. [1]\nPaid."),)


def writing(reply: Callable[[str], str]) -> FakeGenerator:
    """A generator as large as is asked for."""
    generator = FakeGenerator(reply)
    generator.model = FakeVocabulary(parameters=3_085_938_688)
    return generator


class FakeSearch:
    """Find one passage for each way to ask, in the order in which they come; remember how each was asked."""

    def __init__(self, *, follows: bool = True) -> None:
        self.asked, self._follows = list[tuple[str, int, bool]](), follows

    def __call__(self, question: str, share: int, /, *, alone: bool = False) -> Trace:
        self.asked.append((question, share, alone))
        return Trace([passage(key=len(self.asked))], {}, {}, follows=self._follows and not alone)


def found(search: FakeSearch, reply: Callable[[str], str], question: str = "And in Norway?") -> list[list[int]]:
    answerer = Answerer(lambda: writing(reply))
    pipeline = AnswerPipeline(search, lambda: answerer, len, AskOptions(rewrite=True), earlier=EARLIER)
    return [[one.chunk_id for one in passages] for passages in pipeline.find(question).lists]


def test_a_follow_up_is_searched_plain_and_written_anew_and_both_are_fused() -> None:
    search = FakeSearch()
    assert found(search, lambda _: "How long is leave in Norway?") == [[1, 2]]
    assert search.asked == [("And in Norway?", 2, False), ("How long is leave in Norway?", 2, True)]


def test_rewriting_can_be_stopped_and_the_model_is_usable_afterwards() -> None:
    answerer = Answerer(lambda: writing(lambda _: "How long is leave in Norway?"))
    rewriting = AskOptions(rewrite=True)
    stopped = AnswerPipeline(FakeSearch(), lambda: answerer, len, rewriting, earlier=EARLIER, stop=lambda: True)
    with pytest.raises(StoppedError):
        stopped.find("And in Norway?")
    assert AnswerPipeline(FakeSearch(), lambda: answerer, len, rewriting, earlier=EARLIER).find("And in Norway?").lists


def test_a_new_subject_is_not_written_anew() -> None:
    search = FakeSearch(follows=False)
    assert found(search, lambda _: "How long is leave?", "When does the boat sail?") == [[1]]
    assert len(search.asked) == 1


@pytest.mark.parametrize("reply", ["", "And in Norway?", "\n \n", "word " * 41])
def test_nothing_comes_of_what_is_no_other_question(reply: str) -> None:
    search = FakeSearch()
    assert found(search, lambda _: reply) == [[1]]


def test_the_model_reads_what_was_asked_and_answered_before_on_a_line_each() -> None:
    generator = writing(lambda _: '1. "How long is leave in Norway?"\nNo more.')
    assert rewrite("And\nin Norway?", EARLIER * 5, generator) == "How long is leave in Norway?"
    (prompt,) = generator.prompts
    said = "Question: How long is leave in Ireland?\nAnswer: 26 weeks. [1] Paid.\n\n"
    assert f"{said * 3}Question: And in Norway?\nWrite the last question anew" in prompt
    assert said * 4 not in prompt


def test_a_long_answer_before_is_cut() -> None:
    generator = writing(lambda _: "How long?")
    rewrite("And?", [Turn("One?", "word " * 10_000)], generator)
    assert len(generator.prompts[0]) < 1000


@pytest.mark.parametrize(
    ("parameters", "refused"), [(1_543_714_304, True), (2_613_000_000, True), (3_085_938_688, False)]
)
def test_a_model_below_3b_is_refused(parameters: int, refused: bool) -> None:
    model = FakeVocabulary(Path("small.gguf"), parameters)
    if not refused:
        require_rewriter(model)
        return
    with pytest.raises(
        ModelError, match=r"^--rewrite needs .* but small.gguf has \d.\d billion; .*`--answer-model`\.$"
    ):
        require_rewriter(model)
