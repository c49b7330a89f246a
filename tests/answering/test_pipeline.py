"""Asking: parts, what the model is shown, refusals, look-alikes, and what is counted; with fakes."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.answer_records import Answer, BeingRead, Citation
from local_rag.answering.answerer import Answerer
from local_rag.answering.compose import NO_TIME, REFUSAL
from local_rag.answering.pace import Pace
from local_rag.answering.pipeline import LEFT, AnswerPipeline, ByCode, Candidates, look_alikes
from local_rag.asking import DEFAULT_OPTIONS, AskOptions, Turn
from local_rag.library import Parts
from local_rag.model_records import Calibration
from local_rag.passage_records import Passage
from local_rag.plan_records import Plan
from local_rag.retrieval.question import Question, read_question
from local_rag.retrieval.searcher import Trace
from local_rag.store.history_file import Usage, usage_of
from tests.conftest import Run
from tests.fakes import FakeEmbedder, FakeGenerator, FakeReader, generating


def passage(key: int, text: str, *, path: str = "a.md", title: str = "") -> Passage:
    return Passage(key, path, title, text, "", "", (), None, key, key, 0.1)


class FakeSearch:
    """Find the same passages whatever is asked, and remember what was."""

    def __init__(self, *found: Passage) -> None:
        self.found, self.asked = list(found), list[tuple[str, int]]()

    def __call__(self, question: Question, *, share: int, **_how: object) -> Trace:
        self.asked.append((question.text, share))
        return Trace(self.found, {}, {})


def ask(search: FakeSearch, generator: FakeGenerator, question: str, options: AskOptions = DEFAULT_OPTIONS) -> Answer:
    answerer = Answerer(lambda: generator)
    pipeline, told = AnswerPipeline(search, lambda: answerer, len, options), list[str]()
    answer = pipeline.ask(read_question(question), show=told.append, on_passages=lambda _: None)
    assert (told, answer.written) == ([], len(answer.text)), "nothing is shown that might not be given"
    return answer


def test_each_part_of_a_question_is_searched_beside_the_whole() -> None:
    search = FakeSearch(passage(1, "Ann at seven."))
    ask(search, FakeGenerator(lambda _: "Ann."), "Who leaves at seven and when does she return?")
    assert search.asked == [
        ("Who leaves at seven and when does she return?", 3),
        ("Who leaves at seven?", 3),
        ("When does she return?", 3),
    ]


def test_parts_may_be_searched_otherwise_than_the_whole() -> None:
    search, of_parts = FakeSearch(passage(1, "Ann at seven.")), FakeSearch(passage(2, "At nine."))
    pipeline = AnswerPipeline(search, lambda: Answerer(FakeGenerator), len, search_part=of_parts)
    pipeline.find(read_question("Who leaves at seven and when does she return?"))
    assert search.asked == [("Who leaves at seven and when does she return?", 3)]
    assert of_parts.asked == [("Who leaves at seven?", 3), ("When does she return?", 3)]


def test_where_nothing_has_a_word_of_the_question_the_closest_are_named() -> None:
    found = [passage(number, f"{number} is a number", path=f"{number}.md") for number in range(9)]
    refused = ask(FakeSearch(*found), FakeGenerator(lambda _: "x", lambda _: False), "How long is a camel?")
    assert (refused.text, refused.passages) == (REFUSAL, tuple(found))
    assert refused.closest == refused.read[:3] != ()


def test_what_was_found_and_how_long_it_took_is_told() -> None:
    search = FakeSearch(passage(1, "At seven."), passage(2, "At nine."))
    answer = ask(search, FakeGenerator(lambda _: "At seven."), "When?")
    assert len(answer.passages) == 2
    assert answer.seconds > 0
    assert answer.tokens > 0
    assert answer.shown


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
    generator = FakeGenerator(lambda _: "At seven.", lambda prompt: "camel" not in prompt)
    parts = Parts(load_embedder=FakeEmbedder, open_engine=generating(generator))
    assert run("index", documents, "--context", "none", "--profile", "tiny").exit_code == 0
    assert run("ask", "When does the boat leave?", parts=parts).exit_code == 0
    assert "closest:" in run("ask", "What is the price of a camel?", parts=parts).stdout.lower()
    with Library(".local-rag", parts=parts) as library:
        library.ask("When?", counted=False)
        assert library.ask("When?", code_only=True).outcome == "left"
        assert library.ask("When does the boat leave?", seconds=0.001, counted=False).reason == NO_TIME
    usage = usage_of(Path(".local-rag"))
    assert (usage.questions, usage.refused) == (2, 1)
    assert math.isfinite(usage.median_seconds)
    assert "2 questions, 1 of them not answered" in run("status").stdout
    monkeypatch.setenv("LOCAL_RAG_USAGE_COUNTS", "false")
    assert run("ask", "When does the boat leave?", parts=parts).exit_code == 0
    assert usage_of(Path(".local-rag")).questions == 2
    assert usage_of(Path("nowhere")) == Usage()


TEXT = "One. Two. Three. The boat leaves at seven. Five. Six. Seven. " + "More words. " * 80 + "Last."


def test_the_model_is_shown_the_best_parts_unless_whole_passages_are_asked_for() -> None:
    found = Candidates(Question("When does the boat leave?"), [[passage(1, TEXT)]])

    def shown(options: AskOptions = DEFAULT_OPTIONS) -> str:
        reader = FakeReader(lambda _question, text: float("boat" in text))
        pipeline = AnswerPipeline(
            FakeSearch(), lambda: Answerer(FakeGenerator), len, options, open_reader=lambda: reader
        )
        (source,) = pipeline.select(found)
        return source.text

    assert "Three. The boat leaves at seven. Five." in shown()
    assert "Last." not in shown()
    assert shown(AskOptions(passages=1)) == TEXT


def test_the_model_is_loaded_only_where_it_could_answer() -> None:
    generator, loaded = FakeGenerator(lambda _: "At seven."), list[FakeGenerator]()

    def load() -> FakeGenerator:
        loaded.append(generator)
        return generator

    def outcome(verdict: float, options: AskOptions = DEFAULT_OPTIONS) -> str:
        answerer = Answerer(load, Calibration("prompt", 0.0, {"answers": 1.0}, 0.5, 0.1))
        reader = FakeReader(lambda _question, _text: verdict)
        pipeline = AnswerPipeline(
            FakeSearch(passage(1, TEXT)), lambda: answerer, len, options, open_reader=lambda: reader
        )
        return pipeline.ask(
            Question("When does the boat leave?"), show=lambda _: None, on_passages=lambda _: None
        ).outcome

    assert (outcome(-1.0), outcome(-9.0), loaded) == ("quoted", "refused", [])
    assert (outcome(-1.0, AskOptions(anyway=True)), outcome(1.0)) == ("answered", "answered")
    assert len(loaded) == 2


def test_a_follow_up_is_ranked_with_the_question_before_it() -> None:
    asked = list[str]()

    def score(question: str, _text: str) -> float:
        asked.append(question)
        return 0.0

    pipeline = AnswerPipeline(FakeSearch(), lambda: Answerer(FakeGenerator), len, open_reader=lambda: FakeReader(score))
    pipeline.select(Candidates(Question("When?"), [[passage(1, "One.")]], Turn("Where is it?", "Here.")))
    assert set(asked) == {"Where is it? When?"}


def test_code_alone_answers_or_leaves_a_question_and_costs_no_model() -> None:
    options, computed = AskOptions(code_only=True), Answer("How many?", "Seven.", "answered")

    def load() -> Answerer:
        raise AssertionError("no model is asked")

    def asked(by_code: ByCode | None, question: str) -> Answer:
        pipeline = AnswerPipeline(FakeSearch(), load, len, options, by_code=by_code)
        return pipeline.ask(Question(question), show=lambda _: None, on_passages=lambda _: None)

    assert asked(lambda _question, _earlier: computed, "How many?").text == "Seven."
    for by_code in (None, lambda _question, _earlier: None):
        left = asked(by_code, "When does it leave?")
        assert (left.outcome, left.text) == ("left", LEFT)
    assert asked(None, "Wann fährt das Boot ab?").text == "Code allein beantwortet diese Frage nicht."


def test_an_answer_says_what_its_question_was_understood_as() -> None:
    plan = Plan("documents", operation="count", subject="crane", match="words")
    pipeline = AnswerPipeline(FakeSearch(), lambda: Answerer(FakeGenerator), len)
    answer = pipeline.ask(Question("How many?", plan), show=lambda _: None, on_passages=lambda _: None)
    assert answer.plan == plan


def test_only_what_the_model_can_read_in_time_is_read() -> None:
    """A model that reads a hundred tokens a second reads less in five seconds than without a limit, and none in one."""
    long = passage(1, " ".join(f"The boat {number} leaves at seven." for number in range(200)))

    def answered(seconds: float | None) -> Answer:
        pace = Pace({"read": 100.0, "written": 30.0})
        generator = FakeGenerator(lambda _: "The boat leaves at seven.")
        pipeline = AnswerPipeline(
            FakeSearch(long), lambda: Answerer(lambda: generator, pace=pace), count_words, AskOptions(seconds=seconds)
        )
        answer = pipeline.ask(read_question("When does the boat leave?"), show=print, on_passages=print)
        assert bool(generator.prompts) == (answer.outcome == "answered")
        return answer

    in_time, unlimited, late = answered(4), answered(None), answered(1)
    assert count_words(in_time.shown[0].text) < count_words(unlimited.shown[0].text)
    assert (late.outcome, late.reason) == ("quoted", NO_TIME)
    assert late.quotes
    nothing = AnswerPipeline(FakeSearch(), lambda: Answerer(FakeGenerator), count_words, AskOptions(seconds=1))
    told = list[BeingRead]()
    pace, generator = Pace({"read": 100.0, "written": 30.0}), FakeGenerator(lambda _: "At seven.")
    told_of = AnswerPipeline(FakeSearch(long), lambda: Answerer(lambda: generator, pace=pace), count_words)
    told_of.ask(read_question("When?"), show=print, on_passages=print, on_reading=told.append)
    [reading] = told
    assert reading.passages == 1
    assert reading.seconds == pytest.approx(pace.seconds_for(count_words(unlimited.shown[0].text)), abs=1.0)
    assert nothing.ask(read_question("When?"), show=print, on_passages=print).outcome == "refused"


def count_words(text: str) -> int:
    return len(text.split())
