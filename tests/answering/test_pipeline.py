"""Asking: parts, rephrasings, refusals, look-alikes, and what is counted; with fakes for search and model."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.answering.answerer import REFUSAL, Answerer
from local_rag.answering.expand import fuse_passages, rephrase
from local_rag.answering.look_alikes import look_alikes
from local_rag.answering.pipeline import AnswerPipeline, Candidates
from local_rag.library import Parts
from local_rag.llama.generator import never
from local_rag.models.reranker import Reranker
from local_rag.records import DEFAULT_OPTIONS, Answer, AskOptions, Citation, Passage, Turn
from local_rag.retrieval.search import Trace
from local_rag.store.history import Usage, usage_of
from tests.conftest import Run
from tests.fakes import FakeEmbedder, FakeGenerator, FakeReranker, generating


def passage(key: int, text: str, *, path: str = "a.md", title: str = "") -> Passage:
    return Passage(key, path, title, text, "", "", (), None, key, key, 0.1)


class FakeSearch:
    """Find the same passages whatever is asked, and remember what was."""

    def __init__(self, *found: Passage) -> None:
        self.found, self.asked = list(found), list[tuple[str, int]]()

    def __call__(self, question: str, share: int, /, *, alone: bool = False) -> Trace:
        assert not alone
        self.asked.append((question, share))
        return Trace(self.found, {}, {})


def ask(search: FakeSearch, generator: FakeGenerator, question: str, options: AskOptions = DEFAULT_OPTIONS) -> Answer:
    answerer = Answerer(generator, 0.0)
    pipeline = AnswerPipeline(search, lambda: answerer, options)
    return pipeline.ask(question, stop=never, on_text=lambda _: None, on_passages=lambda _: None)


def test_each_part_of_a_question_is_searched_beside_the_whole() -> None:
    search = FakeSearch(passage(1, "Ann at seven."))
    ask(search, FakeGenerator(lambda _: "Ann [1]."), "Who leaves at seven and when does she return?")
    assert search.asked == [
        ("Who leaves at seven and when does she return?", 3),
        ("Who leaves at seven", 3),
        ("when does she return", 3),
    ]


def test_where_what_is_read_does_not_hold_the_answer_the_closest_are_named() -> None:
    found = [passage(number, f"{number} " + "word " * 60, path=f"{number}.md") for number in range(9)]
    generator = FakeGenerator(lambda _: "x", lambda _: False)
    refused = ask(FakeSearch(*found), generator, "When?")
    assert (refused.text, refused.passages) == (REFUSAL, tuple(found))
    assert refused.closest == refused.read[:3]
    assert len(generator.prompts) == 1, "nothing is read twice"


def test_what_was_found_and_how_long_it_took_is_told() -> None:
    search = FakeSearch(passage(1, "At seven."), passage(2, "At nine."))
    answer = ask(search, FakeGenerator(lambda _: "At seven [1]."), "When?")
    assert len(answer.passages) == 2
    assert answer.seconds > 0
    assert answer.tokens > 0
    assert answer.threshold == 0.0


def test_a_rephrased_question_is_searched_too_with_half_the_weight() -> None:
    def reply(prompt: str) -> str:
        return "1. At what hour?\n- at what hour?\n\nWhen?\n" if "other ways" in prompt else "Seven [1]."

    search = FakeSearch(passage(1, "At seven."))
    answer = ask(search, FakeGenerator(reply), "When?", AskOptions(expand=True))
    assert [question for question, _ in search.asked] == ["When?", "At what hour?", "at what hour?"]
    assert answer.text == "Seven [1]."
    assert rephrase("When?", FakeGenerator(lambda _: "word " * 99)) == []
    one, other = passage(1, "one"), passage(2, "two")
    assert fuse_passages([[one, other], [other, one]], [2, 1], k=10) == [one, other]
    assert fuse_passages([[one], [other], [other], [other]], [2, 1, 1, 1], k=10) == [other, one]


IRELAND = passage(1, "The parent who gives birth gets 26 weeks of paid leave, 2 before.", title="Leave in Ireland")
NORWAY = passage(
    2, "The parent who gives birth gets 30 weeks of paid leave, 3 before.", path="b.md", title="Leave in Norway"
)


@pytest.mark.parametrize(
    ("question", "read", "expected"),
    [
        ("How long is paid leave?", [IRELAND, NORWAY], (NORWAY,)),
        ("How long is paid leave in Ireland?", [IRELAND, NORWAY], ()),
        ("How long is paid leave?", [IRELAND, passage(3, "Bread is baked at noon.", path="c.md")], ()),
        ("How long is paid leave?", [IRELAND], ()),
    ],
)
def test_a_look_alike_is_named_unless_the_question_says_which_it_means(
    question: str, read: Sequence[Passage], expected: tuple[Passage, ...]
) -> None:
    assert look_alikes(question, [Citation(1, IRELAND)], read) == expected


def test_a_look_alike_that_is_cited_too_is_none() -> None:
    assert look_alikes("How long?", [Citation(1, IRELAND), Citation(2, NORWAY)], [IRELAND, NORWAY]) == ()


def test_questions_are_counted_unless_that_is_off(documents: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = FakeGenerator(lambda _: "At seven [1].", lambda prompt: "camel" not in prompt)
    parts = Parts(load_embedder=FakeEmbedder, open_engine=generating(generator))
    assert run("index", documents, "--context", "none", "--profile", "tiny").exit_code == 0
    assert run("ask", "When does the boat leave?", parts=parts).exit_code == 0
    assert "closest passages" in run("ask", "What is the price of a camel?", parts=parts).stdout.lower()
    with Library(".local-rag", parts=parts) as library:
        library.ask("When?", counted=False)
    usage = usage_of(Path(".local-rag"))
    assert (usage.questions, usage.refused) == (2, 1)
    assert math.isfinite(usage.median_seconds)
    assert "2 questions, 1 of them not answered" in run("status").stdout
    monkeypatch.setenv("LOCAL_RAG_USAGE_COUNTS", "false")
    assert run("ask", "When does the boat leave?", parts=parts).exit_code == 0
    assert usage_of(Path(".local-rag")).questions == 2
    assert usage_of(Path("nowhere")) == Usage()


def test_with_a_reranker_the_likeliest_lines_are_read_unless_more_is_asked_for() -> None:
    text = "One. Two. Three. The boat leaves at seven. Five. Six. Seven. Eight. Nine. Ten. Eleven. Twelve. Last."
    before = Turn("Where is it?", "Here.")
    reranker = FakeReranker(lambda question, text: float("boat" in text and question.startswith("Where is it? ")))

    def prompt(question: str, options: AskOptions = DEFAULT_OPTIONS, *, reranker: Reranker | None = reranker) -> str:
        generator = FakeGenerator(lambda _: "At seven [1].")
        pipeline = AnswerPipeline(FakeSearch(), lambda: Answerer(generator, 0.0), options, reranker=reranker)
        found = Candidates([[passage(1, text)]], before)
        return generator.model.detokenize(list(pipeline.read(question, found).prefix))

    assert text in prompt("When?", reranker=None)
    assert text in prompt("When?", AskOptions(passages=1))
    assert text in prompt("How do I get there?"), "all of the steps"
    read = prompt("When?")
    assert "Three. The boat leaves at seven. Five." in read
    assert "Last." not in read
