"""Training the writer of contexts: it reads the program's own prompts, and what is saved is what was trained."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from local_rag.indexing.situating_prompts import plan_contexts, write_contexts
from local_rag.llama.models_in_use import open_engine, open_vocabulary
from local_rag.model_records import ContextForm
from scripts.training.answers import train as training_of_adapters
from scripts.training.answers.examples import load_examples
from scripts.training.answers.gguf_weights import Weights
from scripts.training.answers.qwen import Qwen, load_adapter, save_adapter
from scripts.training.contexts import train as training
from scripts.training.contexts.build import build, read_documents, read_passages
from scripts.training.contexts.llama import Llama
from scripts.training.contexts.train import Trainer
from scripts.training.contexts.windows import Windows, load_windows
from tests.fakes import FakeGenerator
from tests.support.tiny_models import save_model

FORM, SENTENCE = (ContextForm(request, separator="<unk>") for request in ("<s>Ask.", "<s>"))
TEXT = "The ferry leaves at seven.\n\nIt costs five euros.\n\nDogs travel free."
CHUNKS = [
    {"start": 0, "end": 26, "questions": ["When do we sail?", "Is it early?"], "context": "When the ferry sails."},
    {"start": 28, "end": 48, "headings": ["Fares"], "questions": ["What is the fare?"], "context": "The fare."},
    {"start": 50, "end": 67},
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("model") / "tiny.gguf", "llama")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [json.dumps({"title": title, "text": TEXT, "chunks": CHUNKS}) for title in ("Ferry", "Boat")]
    (tmp_path / "contexts.jsonl").write_text("\n".join(lines))
    return tmp_path


@pytest.fixture
def windows(folder: Path, model: Path) -> Windows:
    return build(list(read_documents(folder / "contexts.jsonl")), model, FORM, SENTENCE)


def test_windows_are_the_prompts_that_index_writes(model: Path, folder: Path, windows: Windows) -> None:
    assert len(windows.prefix_ends) == 2
    assert windows.questions.sum() == 4
    generator = FakeGenerator(lambda _prompt: "A sentence.")
    first = next(read_documents(folder / "contexts.jsonl"))
    with open_vocabulary(model) as vocabulary:
        jobs = plan_contexts(first.title, first.text, first.chunks, vocabulary=generator.model, plan="", form=FORM)
        list(write_contexts(jobs, generator))
        read = [vocabulary.detokenize(windows.window(0)[: windows.cuts[one]].tolist()) for one in (0, 2)]
        wanted = windows.branch(0)[windows.requests[0] :].tolist()
        assert vocabulary.detokenize(wanted[:-1]) == "When do we sail?\nIs it early?"
        assert vocabulary.ends(wanted[-1])
    assert "five euros" not in read[0], "a prompt ends with its chunk"
    assert read[0].endswith("The ferry leaves at seven.")
    assert read[1].endswith("It costs five euros.")
    assert generator.prompts[0].endswith("The ferry leaves at seven.<s>Ask.")


def test_a_passage_is_asked_only_in_other_words(tmp_path: Path) -> None:
    (tmp_path / "nq").mkdir()
    passage = "The ferry to the island leaves at seven."
    asked = ("when does the ferry to the island leave", "first boat of the morning")
    lines = [{"title": "Ferry", "passage": passage, "question": one, "answers": ["seven"]} for one in asked]
    (tmp_path / "nq" / "train.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert [one.questions for one in read_passages(tmp_path)] == [(("first boat of the morning",),)]


@pytest.mark.slow
def test_what_is_saved_says_what_was_trained(model: Path, windows: Windows, tmp_path: Path) -> None:
    windows.save(tmp_path / "windows.npz")
    paths = [str(one) for one in (tmp_path / "windows.npz", model, tmp_path / "trained.gguf")]
    done = CliRunner().invoke(training.main, [*paths, "--minutes", "0.05", "--rate", "1e-2", "--step-tokens", "50"])
    assert done.exit_code == 0, done.output
    untrained, trained = (Trainer(Llama(Weights(Path(path), "llama")), windows) for path in paths[1:])
    for one in (untrained, trained):
        one.model.round()
    numbers = range(len(windows.prefix_ends))
    assert trained.evaluate(numbers)[0] < untrained.evaluate(numbers)[0] - 0.5
    # llama.cpp, which sees one prompt at a time, expects the same tokens.
    losses, _asked = trained.losses([0])
    prefix, branch, first = windows.window(0)[: windows.cuts[0]], windows.branch(0), int(windows.requests[0])
    with open_engine(tmp_path / "trained.gguf", context_tokens=lambda _length, _sequences: 512) as engine:
        said = [
            engine.log_probabilities(prefix.tolist(), branch[:end].tolist())[branch[end]]
            for end in range(first, len(branch))
        ]
    assert np.allclose(losses[: len(said)].detach().numpy(), -np.array(said), atol=0.3)


@pytest.mark.slow
def test_training_goes_on_from_an_adapter(folder: Path, tmp_path: Path) -> None:
    torch.manual_seed(2)
    model = save_model(tmp_path / "qwen.gguf", "qwen2")
    begun = Qwen(Weights(model), rank=4, alpha=4)
    with torch.no_grad():
        for weight in begun.parameters():
            weight.normal_(std=0.02)
    save_adapter(begun, tmp_path / "begun.gguf", 4)
    windows = build(list(read_documents(folder / "contexts.jsonl")), model, ContextForm("Ask."), ContextForm("Say."))
    windows.examples().save(tmp_path / "examples.npz")
    examples = load_examples(tmp_path / "examples.npz")
    with open_vocabulary(model) as vocabulary:
        first = vocabulary.detokenize(examples.prompt(0))
        answer = examples.tokens[examples.prompts[0] : examples.prompts[0] + examples.answers[0]].tolist()
        assert vocabulary.detokenize(answer[:-1]) == "When do we sail?\nIs it early?"
        about = vocabulary.detokenize(examples.prompt(3))
    assert len(examples.prompts) == 8, "a chunk without a question or sentence is no example"
    assert "Ask." in first.partition("The ferry leaves at seven.")[2]
    assert "</document>\n\nSay." in about.partition("It costs five euros.")[2]
    paths = [str(one) for one in (tmp_path / "examples.npz", model, tmp_path / "more.gguf")]
    how = ["--steps", "1", "--rank", "4", "--rate", "0", "--start", str(tmp_path / "begun.gguf")]
    done = CliRunner().invoke(training_of_adapters.main, [*paths, *how])
    assert done.exit_code == 0, done.output
    tokens = torch.from_numpy(examples.tokens[None, :30].astype(np.int64))
    fresh, gone_on = (Qwen(Weights(model), rank=4, alpha=8) for _ in range(2))
    load_adapter(gone_on, tmp_path / "more.gguf", 8)
    with torch.inference_mode():
        wanted, found, other = begun(tokens), gone_on(tokens), fresh(tokens)
    assert torch.allclose(found, wanted, atol=2e-2)
    assert not torch.allclose(other, wanted, atol=2e-2)
    with pytest.raises(ValueError, match="rank 4, not 2"):
        load_adapter(Qwen(Weights(model), rank=2, alpha=4), tmp_path / "more.gguf", 4)


def test_windows_side_by_side_see_nothing_of_each_other(model: Path, windows: Windows, tmp_path: Path) -> None:
    windows.save(tmp_path / "windows.npz")
    trainer = Trainer(Llama(Weights(model, "llama")), load_windows(tmp_path / "windows.npz"))
    trainer.model.round()
    with torch.no_grad():
        together, alone = trainer.losses([0, 1])[0], torch.cat([trainer.losses([one])[0] for one in (0, 1)])
    assert torch.allclose(together, alone, atol=0.05)
