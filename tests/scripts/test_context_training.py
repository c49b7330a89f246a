"""Training the writer of contexts: its examples are the program's own prompts, and training goes on from an adapter."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from local_rag.indexing.situating_prompts import plan_contexts, write_contexts
from local_rag.llama.models_in_use import open_vocabulary
from local_rag.model_records import ContextForm
from scripts.training.answers import train as training
from scripts.training.answers.examples import load_examples
from scripts.training.answers.gguf_weights import Weights
from scripts.training.answers.qwen import Qwen, load_adapter, save_adapter
from scripts.training.contexts.build import SENTENCE, build, read_documents
from tests.fakes import FakeGenerator
from tests.support.tiny_models import save_model

FORM = ContextForm("Situate the last chunk.")
TEXT = "The ferry leaves at seven.\n\nIt costs five euros.\n\nDogs travel free."
CHUNKS = [
    {"start": 0, "end": 26, "question": "When do we sail?", "context": "When the ferry sails."},
    {"start": 28, "end": 48, "headings": ["Fares"], "context": "The fare of the ferry."},
    {"start": 50, "end": 67},
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("model") / "tiny.gguf", "qwen2")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [json.dumps({"title": title, "text": TEXT, "chunks": CHUNKS}) for title in ("Ferry", "Boat")]
    (tmp_path / "contexts.jsonl").write_text("\n".join(lines))
    return tmp_path


def test_examples_are_the_prompts_that_index_writes(model: Path, folder: Path) -> None:
    documents = list(read_documents(folder / "contexts.jsonl"))
    examples = build(documents, model, FORM)
    assert len(examples.prompts) == 6, "a chunk without a question or sentence is no example"
    generator = FakeGenerator(lambda _prompt: "A sentence.")
    first = documents[0]
    jobs = plan_contexts(first.title, first.text, first.chunks, vocabulary=generator.model, plan="", form=FORM)
    list(write_contexts(jobs, generator))
    with open_vocabulary(model) as vocabulary:
        prompt, about = vocabulary.detokenize(examples.prompt(0)), vocabulary.detokenize(examples.prompt(2))
        for one, wanted in ((0, "When do we sail?"), (2, "The fare of the ferry.")):
            answer = examples.tokens[examples.starts[one] : examples.starts[one + 1]][examples.prompts[one] :].tolist()
            assert vocabulary.detokenize(answer[:-1]) == wanted
            assert vocabulary.ends(answer[-1])
        assert SENTENCE.request in about
        assert "It costs five euros" in about
    said = generator.prompts[0].partition("<document>")[2].rpartition(FORM.request)[0]
    assert said
    assert said in prompt
    assert "Dogs travel free" not in prompt, "a prompt ends with its chunk"


@pytest.mark.slow
def test_training_goes_on_from_an_adapter(model: Path, folder: Path, tmp_path: Path) -> None:
    torch.manual_seed(2)
    begun = Qwen(Weights(model), rank=4, alpha=4)
    with torch.no_grad():
        for weight in begun.parameters():
            weight.normal_(std=0.02)
    save_adapter(begun, tmp_path / "begun.gguf", 4)
    build(list(read_documents(folder / "contexts.jsonl")), model, FORM).save(tmp_path / "examples.npz")
    paths = [str(tmp_path / name) for name in ("examples.npz",)] + [str(model), str(tmp_path / "more.gguf")]
    how = ["--steps", "1", "--rank", "4", "--rate", "0", "--start", str(tmp_path / "begun.gguf")]
    done = CliRunner().invoke(training.main, [*paths, *how])
    assert done.exit_code == 0, done.output
    tokens = torch.from_numpy(load_examples(tmp_path / "examples.npz").tokens[None, :30].astype(np.int64))
    fresh, gone_on = (Qwen(Weights(model), rank=4, alpha=8) for _ in range(2))
    load_adapter(gone_on, tmp_path / "more.gguf", 8)
    with torch.inference_mode():
        wanted, found, other = begun(tokens), gone_on(tokens), fresh(tokens)
    assert torch.allclose(found, wanted, atol=2e-2)
    assert not torch.allclose(other, wanted, atol=2e-2)
    with pytest.raises(ValueError, match="rank 4, not 2"):
        load_adapter(Qwen(Weights(model), rank=2, alpha=4), tmp_path / "more.gguf", 4)
