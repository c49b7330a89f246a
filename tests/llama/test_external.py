"""An engine that already runs, behind the interface of OpenAI."""

import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from local_rag.answering.answerer import Answerer
from local_rag.answering.selection import whole_sources
from local_rag.errors import ModelError, StoppedError
from local_rag.llama.external import ExternalEngine, TextVocabulary, Thoughts
from local_rag.llama.generator import Request
from local_rag.models.engine_address import parse_engine
from local_rag.retrieval.question import read_question
from tests.fakes import passage
from tests.support.engine_stand_in import Engine, running

SEVEN = passage("The boat leaves the harbour at seven and carries twelve people.")
QUESTION = "When does the boat leave the harbour?"


@pytest.fixture
def engine() -> Iterator[Engine]:
    with running(Engine()) as started:
        yield started


def opened(engine: Engine, model: str = "llama3.2:3b") -> ExternalEngine:
    return ExternalEngine(parse_engine(f"{engine.url}#{model}"), context_tokens=lambda length, _: min(8192, length))


def prompt(generator: ExternalEngine, text: str, system: str = "Answer.", max_tokens: int = 80) -> Request:
    head, tail = generator.model.chat_frame(system)
    prefix = [*generator.model.tokenize(head, special=True), *generator.model.tokenize(text)]
    return Request("1", prefix, generator.model.tokenize(tail, special=True), max_tokens)


def said(generator: ExternalEngine, text: str = "Question", max_tokens: int = 80) -> tuple[str, bool]:
    ((_, tokens, whole),) = generator.complete([prompt(generator, text, max_tokens=max_tokens)])
    return generator.model.detokenize(tokens), whole


@pytest.mark.parametrize(
    "text", ["Yes", "a  b\n\n\n c", "İstanbul 日本語 12345.6", "\ue000user\ue001", "<|im_end|>", ""]
)
def test_pieces_are_the_text(text: str) -> None:
    vocabulary = TextVocabulary(Path("any"))
    for special in (False, True):
        assert vocabulary.detokenize(vocabulary.tokenize(text, special=special)) == text


def test_words_that_are_asked_for_are_one_piece() -> None:
    vocabulary = TextVocabulary(Path("any"))
    assert [len(vocabulary.tokenize(word)) for word in ("Yes", " Yes", "no", " No")] == [1, 1, 1, 1]


def test_a_document_cannot_speak_as_another_part_of_the_chat(engine: Engine) -> None:
    generator = opened(engine)
    head, tail = generator.model.chat_frame("Answer.")
    said(generator, f"before {tail} after")
    assert engine.asked[-1]["messages"] == [
        {"role": "system", "content": "Answer."},
        {"role": "user", "content": f"before {tail} after"},
    ]
    assert head != TextVocabulary(Path("any")).chat_frame("Answer.")[0]  # nobody can know the marks


def test_a_reply_arrives_as_it_is_written(engine: Engine) -> None:
    generator = opened(engine)
    assert said(generator) == ("The boat leaves at seven.", True)
    assert said(generator, max_tokens=3) == ("The boat lea", False)
    body = engine.asked[0]
    assert (body["model"], body["temperature"], body["max_tokens"], body["stream"]) == ("llama3.2:3b", 0, 80, True)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert generator.counts.generated > 5


def test_an_engine_that_refuses_unknown_fields_is_asked_without_them(engine: Engine) -> None:
    engine.refuses = ("reasoning_effort",)
    generator = opened(engine)
    assert said(generator)[0] == "The boat leaves at seven."
    assert "chat_template_kwargs" in engine.asked[-1]
    engine.refuses = ("reasoning_effort", "chat_template_kwargs")
    assert said(generator)[0] == "The boat leaves at seven."
    said(generator)
    assert len(engine.asked) == 5  # the two refused ones, and three replies


def test_thoughts_are_no_part_of_the_answer(engine: Engine) -> None:
    engine.thinks = True
    generator = opened(engine)
    assert said(generator, max_tokens=40) == ("The boat leaves at seven.", True)
    assert [body["max_tokens"] for body in engine.asked] == [40, 40 + 2048]
    assert generator.log_probabilities(*_yes(generator)) is None  # its first token is a thought


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("No thought <think>here</think>.", "No thought <think>here</think>."),
        ("<think>\nThe user asks.\n</think>\n\nSeven.", "Seven."),
        ("\n<think></think>Seven.", "Seven."),
        ("<think>Never ends", ""),
        ("<thin", "<thin"),
        ("<thinking about it", "<thinking about it"),
        ("", ""),
    ],
)
def test_only_a_thought_at_the_beginning_is_skipped(text: str, answer: str, size: int) -> None:
    thoughts = Thoughts()
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert "".join(map(thoughts.skip, pieces)) + thoughts.rest() == answer


def _yes(generator: ExternalEngine) -> tuple[list[int], list[int]]:
    request = prompt(generator, "Is that right?")
    return list(request.prefix), list(request.suffix)


def test_odds_are_those_that_the_engine_tells(engine: Engine) -> None:
    engine.odds = {"Yes": -0.1, " No": -3.0, "Perhaps so": -1.0, "!": -5.0}
    generator = opened(engine)
    likely = generator.log_probabilities(*_yes(generator))
    assert likely is not None
    assert likely[generator.model.tokenize("Yes")[0]] == -0.1
    assert likely[generator.model.tokenize(" No")[0]] == -3.0
    assert likely[generator.model.tokenize("maybe")[0]] == -5.0
    assert engine.asked[-1]["top_logprobs"] == 20
    assert np.isfinite(likely).all()


@pytest.mark.parametrize(
    ("odds", "text", "outcome"),
    [
        ({"Yes": -0.1, "No": -3.0}, "The boat leaves the harbour at seven.", "answered"),
        ({"Yes": -3.0, "No": -0.1}, "The boat leaves the harbour at seven.", "quoted"),
        # Without odds, numbers and names decide.
        (None, "The boat leaves the harbour at seven.", "answered"),
        (None, "The boat leaves the harbour at 19:45.", "quoted"),
        ({"Perhaps": -0.1, "!": -2.0}, "The boat leaves the harbour at 19:45.", "quoted"),
    ],
)
def test_what_decides_whether_to_answer(engine: Engine, odds: dict[str, float] | None, text: str, outcome: str) -> None:
    engine.odds, engine.reply = odds, lambda _prompt: text
    answer = Answerer(lambda: opened(engine)).answer(read_question(QUESTION), whole_sources(QUESTION, [[SEVEN]]))
    assert answer.outcome == outcome
    assert (answer.log_odds is None) == (not odds or "Yes" not in odds)
    assert SEVEN.text in answer.text or outcome == "answered"


def test_odds_that_are_not_told_are_asked_for_once(engine: Engine) -> None:
    generator = opened(engine)
    for _ in range(3):
        assert generator.log_probabilities(*_yes(generator)) is None
    assert len(engine.asked) == 1
    assert generator.tells_odds is False


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"raw": b"<html>not an engine</html>"}, "is not JSON|cannot be reached"),
        ({"status": 500}, r"answered 500 \(.*Unrecognized request argument.*\); see its own log"),
        ({"raw": b'data: {"error": {"message": "out of memory"}}\n'}, "reported an error .*out of memory"),
        ({"raw": b"data: " + b"x" * 5_000_000}, "did not stop writing"),
    ],
)
def test_faults_of_an_engine_are_one_sentence(engine: Engine, change: dict[str, object], message: str) -> None:
    generator = opened(engine)
    for name, value in change.items():
        setattr(engine, name, value)
    if "raw" in change and b"html" in engine.raw:  # type: ignore[operator]
        assert said(generator) == ("", False)  # no event in it
        return
    with pytest.raises(ModelError, match=message) as caught:
        said(generator, max_tokens=10_000_000)
    assert "\n" not in str(caught.value)


def test_an_engine_that_is_not_there(engine: Engine) -> None:
    address = parse_engine("http://127.0.0.1:1/v1#any")
    with pytest.raises(ModelError, match=r"http://127.0.0.1:1/v1 cannot be reached \(Connection refused\)"):
        ExternalEngine(address, context_tokens=lambda length, _: length)


@pytest.mark.parametrize(
    ("models", "wanted", "found"),
    [
        (["llama3.2:3b", "other"], "llama3.2:3b", "llama3.2:3b"),
        (["llama3.2:latest", "other"], "llama3.2", "llama3.2:latest"),
        (["/models/only.gguf"], "", "/models/only.gguf"),
        (["a", "b"], "", "has several models; name one of a, b"),
        (["a", "b"], "c", "has no model 'c'; name one of a, b"),
        ([], "c", "has no model 'c'; name one of none"),
    ],
)
def test_the_model_is_one_that_the_engine_has(engine: Engine, models: list[str], wanted: str, found: str) -> None:
    engine.models = tuple({"id": name} for name in models)
    if found in models:
        assert opened(engine, wanted).model.path == Path(found)
    else:
        with pytest.raises(ModelError, match=found):
            opened(engine, wanted)


def test_an_engine_tells_its_context(engine: Engine) -> None:
    engine.models = ({"id": "m", "meta": {"n_ctx": 6000}},)
    assert opened(engine, "m").context_tokens == 6000
    engine.models = ({"id": "m"},)
    assert opened(engine, "m").context_tokens == 4096


def test_stopping_does_not_wait_for_the_engine(engine: Engine) -> None:
    engine.slow = 60.0
    generator, stop = opened(engine), threading.Event()
    threading.Timer(0.3, stop.set).start()
    started = time.perf_counter()
    with generator.stopping(stop.is_set), pytest.raises(StoppedError):
        said(generator)
    assert time.perf_counter() - started < 30, "less than a word takes"


def test_log_odds_without_either_word_are_not_a_number(engine: Engine) -> None:
    engine.odds = {"Perhaps": -0.1, "!": -2.0}
    generator = opened(engine)
    assert math.isnan(Answerer(lambda: generator)._log_odds_of(prompt(generator, "x").prefix, "It is."))
