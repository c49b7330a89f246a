"""Training an adapter for answers, from questions to what llama.cpp says with it, on a tiny model of random weights."""

import json
import random
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from local_rag.llama.engine import EngineSettings, SharedPrefixEngine
from local_rag.llama.model import LlamaModel
from local_rag.llama.models_in_use import open_engine, open_vocabulary
from local_rag.model_records import AnswerForm
from scripts.training.answers import train as training
from scripts.training.answers.build import KnowingReader, build, is_held_out, prompt_of, sources_of, variants
from scripts.training.answers.evaluate import outcome
from scripts.training.answers.examples import Examples, load_examples
from scripts.training.answers.gguf_weights import Weights
from scripts.training.answers.qwen import Qwen
from scripts.training.sets import Entry, Text
from tests.support.tiny_models import save_model

FORM = AnswerForm('Answer in a sentence, or reply "Unanswerable."', "Unanswerable.")
FERRY = Text("Ferry", "The ferry leaves at seven. It costs five euros. Dogs travel free.")
TOWER = Text("Tower", "The tower is 40 metres high. It was built in 1911.")
COFFEE = Text("Coffee", "Coffee is roasted in the yard. The beans come from Kenya.")


def entry(**changes: Any) -> Entry:
    """Return a question that the first passage answers."""
    base = Entry("own", "When does the ferry leave?", (FERRY,), (TOWER, COFFEE), ("leaves at seven",), "At seven.")
    return replace(base, **changes)


HELD_OUT = next(topic for topic in map(str, range(100)) if is_held_out(entry(topic=topic)))
ENTRIES = [
    entry(),
    entry(question="What does the ferry cost?", evidence=("five euros",), answer="It costs five euros."),
    entry(question="How high is the tower?", gold=(TOWER,), others=(FERRY,), evidence=("40 metres",), answer="40 m."),
    entry(question="Who owns the mill?", gold=(), evidence=(), answer=""),
    entry(question="How deep is the lake?", gold=(), others=(TOWER,), evidence=(), answer=""),
    entry(question="Who runs the mill?", gold=(), others=(TOWER,), evidence=(), answer="", topic=HELD_OUT),
    entry(question="Do dogs pay?", evidence=("Dogs travel free",), answer="Dogs travel free.", topic=HELD_OUT),
]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Use one thread: those of torch wait for each other in busy loops, which takes long beside other tests."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("model") / "tiny.gguf", "qwen2")


@pytest.fixture(scope="module")
def examples(model: Path) -> Examples:
    found, _, _ = build(ENTRIES, model, FORM, seed=1)
    return found


def engine_of(path: Path) -> AbstractContextManager[SharedPrefixEngine]:
    def settings(_model: LlamaModel) -> EngineSettings:
        return EngineSettings(threads=1)

    return open_engine(path, context_tokens=lambda _length, _sequences: 2048, settings=settings)


def odds(engine: SharedPrefixEngine, prompt: list[int]) -> np.ndarray:
    return engine.log_probabilities(prompt[:-1], prompt[-1:])


def test_a_prompt_is_the_one_of_the_program_and_shows_what_answers(model: Path) -> None:
    with open_vocabulary(model) as vocabulary:
        for seed in map(str, range(10)):
            prompt = vocabulary.detokenize(prompt_of(entry(), FORM.request, vocabulary, seed) or [])
            assert "You answer questions from sources" in prompt
            assert "Source: Ferry\nThe ferry leaves at seven." in prompt
            assert prompt.index("Sources:") < prompt.rindex("Question: When does the ferry leave?")
            assert prompt.rstrip().endswith(f"{FORM.request}\nassistant:")
        after = prompt_of(entry(before="Is there a ferry?"), FORM.request, vocabulary, "1")
        assert "Question: Is there a ferry?\nQuestion: When" in vocabulary.detokenize(after or [])


def test_what_does_not_show_the_answer_is_no_example() -> None:
    long = Text("Ferry", "Nothing is said here. " * 400 + "The ferry leaves at seven.")
    shown = sources_of(entry(gold=(long,)), 100, "1")
    assert "leaves at seven" in " ".join(source.text for source in shown), "what answers is chosen first"
    apart = entry(gold=(long, TOWER), evidence=("leaves at seven", " ".join(["word"] * 3)))
    assert sources_of(apart, 100, "1") == []


def test_a_reader_that_knows_prefers_what_answers() -> None:
    text = "It is red. The ferry leaves at seven. It is old."
    (reading,) = KnowingReader(("leaves at seven",), "1").score("", [text])
    logits = [reading.sentence(0, 10), reading.sentence(11, 37), reading.sentence(38, len(text))]
    assert max(logits) == logits[1]
    assert logits == [reading.sentence(0, 10), reading.sentence(11, 37), reading.sentence(38, len(text))]


def test_some_questions_are_asked_without_what_answers_or_with_another_name() -> None:
    lake = entry(question="How deep is Lake Vern in 1911?", topic="lake")
    names = [entry(question=f"Where does {name} live?", topic="names") for name in ("Oslo", "Bergen")]
    drawn = list(variants([lake, *names] * 60, random.Random(1)))
    absent = [one for one in drawn if one.source == "own-absent"]
    changed = [one for one in drawn if one.source == "own-changed"]
    assert absent
    assert changed
    assert all(FERRY not in one.others and not one.answer for one in absent)
    assert all("1911" not in one.question or "Lake Vern" not in one.question for one in changed)
    assert all(not one.gold and FERRY in one.others for one in changed)


def test_examples_of_a_topic_are_held_out_together() -> None:
    topics = [f"topic {number}" for number in range(300)]
    held = [topic for topic in topics if is_held_out(entry(topic=topic))]
    assert 10 < len(held) < 60
    assert not is_held_out(entry())


def test_examples_are_stored_with_what_ends_an_answer(model: Path, examples: Examples, tmp_path: Path) -> None:
    examples.save(tmp_path / "examples.npz")
    read = load_examples(tmp_path / "examples.npz")
    assert np.array_equal(read.tokens, examples.tokens)
    with open_vocabulary(model) as vocabulary:
        texts = set()
        for number, start in enumerate(read.starts[:-1]):
            answered = [int(token) for token in read.tokens[start + read.prompts[number] : read.starts[number + 1]]]
            assert vocabulary.ends(answered[-1])
            texts.add((vocabulary.detokenize(answered[:-1]), bool(read.answerable[number])))
    assert ("At seven.", True) in texts
    assert ("Unanswerable.", False) in texts
    assert all((text == "Unanswerable.") != answerable for text, answerable in texts)


@pytest.mark.slow
def test_the_model_in_torch_says_what_llama_cpp_says(model: Path, examples: Examples) -> None:
    torch_model = Qwen(Weights(model), rank=2, alpha=4)
    with engine_of(model) as engine:
        for number in range(3):
            prompt = examples.prompt(number)
            wanted = odds(engine, prompt)
            with torch.inference_mode():
                found = torch_model.logits(torch_model(torch.tensor([prompt]))[0, -1]).log_softmax(-1).numpy()
            assert found.argmax() == wanted.argmax()
            assert np.abs(found - wanted).max() < 0.05


@pytest.mark.slow
def test_the_adapter_changes_llama_cpp_as_it_was_trained(model: Path, examples: Examples, tmp_path: Path) -> None:
    examples.save(tmp_path / "examples.npz")
    paths = [str(tmp_path / "examples.npz"), str(model), str(tmp_path / "adapter.gguf")]
    how = ["--steps", "22", "--rank", "4", "--rate", "2e-2", "--step-tokens", "6000"]
    done = CliRunner().invoke(training.main, [*paths, *how])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in lines if line.startswith("step ")]
    assert losses[-1] < 0.5 * losses[0]
    before, after = (
        json.loads(line.removeprefix(word)) for word in ("before", "after") for line in lines if line.startswith(word)
    )
    assert after["log_loss"] < before["log_loss"]
    refusals = np.flatnonzero(~examples.answerable & ~examples.held_out).tolist()
    with engine_of(model) as engine:
        unadapted = [odds(engine, examples.prompt(number))[examples.refusal] for number in refusals]
        with engine.adapted(tmp_path / "adapter.gguf"):
            adapted = [odds(engine, examples.prompt(number))[examples.refusal] for number in refusals]
    assert np.mean(adapted) > np.mean(unadapted) + 1


def test_tokens_that_do_not_occur_do_not_exist_while_training(model: Path, examples: Examples) -> None:
    own, rows = training.in_own_tokens(examples)
    assert np.array_equal(rows[own.tokens], examples.tokens)
    assert rows[own.refusal] == examples.refusal
    with torch.inference_mode():
        some, whole = (Qwen(Weights(model), rank=2, alpha=4, rows=kept) for kept in (rows, None))
        few = some.logits(some(torch.from_numpy(own.tokens[None, :40].astype(np.int64))))
        all_ = whole.logits(whole(torch.from_numpy(examples.tokens[None, :40].astype(np.int64))))
    assert torch.allclose(few, all_[..., rows], atol=1e-4)


def test_batches_hold_every_example_once_and_no_more_than_fits(model: Path, examples: Examples) -> None:
    trainer = training.Trainer(Qwen(Weights(model), rank=2, alpha=4), examples, 2000)
    numbers = np.arange(len(examples.prompts))
    found = list(trainer.batches(numbers, np.random.default_rng(3)))
    assert sorted(number for batch in found for number in batch) == numbers.tolist()
    lengths = examples.prompts + examples.answers
    assert all(len(batch) == 1 or len(batch) * lengths[batch].max() <= 2000 for batch in found)


def test_the_rate_falls_with_the_steps_or_the_clock() -> None:
    assert [training.fallen(part) for part in (0.0, 1.0)] == [1.0, pytest.approx(training.LEAST)]
    assert training.by_steps(4)(1) == 0.25
    assert training.by_clock(1e6)(10**9) < 0.01


def test_how_long_to_train_must_be_said_once(model: Path) -> None:
    for given in ([], ["--steps", "1", "--minutes", "1"]):
        done = CliRunner().invoke(training.main, [str(model), str(model), "out.gguf", *given])
        assert done.exit_code == 2
        assert "either --minutes or --steps" in done.output


def test_outcomes_are_told_apart() -> None:
    record = {"question": "When does the ferry leave?", "answer": "At seven."}
    unknown = record | {"answer": ""}
    assert outcome(record, "It leaves at seven.", "Unanswerable.") == "right"
    assert outcome(record, "It leaves at 9 o'clock.", "Unanswerable.") == "wrong"
    assert outcome(record, "Unanswerable.", "Unanswerable.") == "refused"
    assert outcome(unknown, "Unanswerable.", "Unanswerable.") == "rightly refused"
    assert outcome(unknown, "At seven.", "Unanswerable.") == "answered without support"


def test_a_model_of_another_kind_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"is a model of the kind llama; only qwen2 can be trained here\."):
        Weights(save_model(tmp_path / "llama.gguf", "llama"))


def test_held_out_examples_are_records_for_the_evaluation(model: Path) -> None:
    found, records, counts = build([entry(topic=HELD_OUT)], model, FORM, seed=1)
    assert found.held_out.all()
    assert json.loads(json.dumps(records[0]))["prompt"] == found.prompt(0)
    assert sum(counts.values()) == len(found.prompts)
