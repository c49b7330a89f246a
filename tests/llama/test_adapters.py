"""Adapters: one gives what merged weights give, and an activated one is refused."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from local_rag.errors import ModelError
from local_rag.llama.engine import EngineSettings, SharedPrefixEngine
from local_rag.llama.generator import Request, Stoppable
from local_rag.llama.model import LlamaModel
from local_rag.models.registry import resolve
from tests.conftest import Run
from tests.support.tiny_models import save_adapter, save_model

CLOSE = 0.02


@pytest.fixture
def model(tmp_path: Path) -> Iterator[LlamaModel]:
    with LlamaModel(save_model(tmp_path / "model.gguf", "llama")) as loaded:
        yield loaded


def engine_of(model: LlamaModel) -> SharedPrefixEngine:
    return SharedPrefixEngine(
        model, context_tokens=512, settings=EngineSettings(sequences=2, batch_tokens=64, threads=1)
    )


def odds(model: LlamaModel, engine: SharedPrefixEngine, suffix: str = "<y> Is it so?") -> np.ndarray:
    return engine.log_probabilities(model.tokenize("The boat leaves at seven. " * 4), model.tokenize(suffix))


def test_an_adapter_gives_what_merged_weights_give(model: LlamaModel, tmp_path: Path) -> None:
    adapter, added = save_adapter(tmp_path / "lora.gguf")
    merged_path = save_model(tmp_path / "merged.gguf", "llama", added=added)
    with LlamaModel(merged_path) as merged, closing(engine_of(merged)) as other:
        wanted = odds(merged, other)
    with closing(engine_of(model)) as engine:
        before = odds(model, engine)
        with engine.adapted(adapter):
            with engine.adapted(None):
                without = odds(model, engine)
            found = odds(model, engine)
            prompt = model.tokenize("The boat")
            assert len(next(engine.complete([Request("", prompt, prompt, 4)]))[1]) == 4
        after = odds(model, engine)
    assert np.abs(found - wanted).max() < CLOSE
    assert np.abs(found - before).max() > 10 * CLOSE
    assert np.abs(after - before).max() < CLOSE, "nothing that the adapter read is left"
    assert np.abs(without - before).max() < CLOSE


def test_what_cannot_be_adapted_is_one_sentence(model: LlamaModel, tmp_path: Path) -> None:
    activated, _ = save_adapter(tmp_path / "alora.gguf", model.tokenize("<y>"))
    with closing(engine_of(model)) as engine:
        for path in (tmp_path / "none.gguf", tmp_path / "model.gguf"):
            with pytest.raises(ModelError, match=r"is no adapter for model\.gguf; convert"), engine.adapted(path):
                pass
        with pytest.raises(ModelError, match=r"is an activated adapter, which is not"), engine.adapted(activated):
            pass
        assert np.isfinite(odds(model, engine)).all()
    with pytest.raises(ModelError, match=r"This engine cannot use the adapter"):
        Stoppable().adapted(activated)


def test_a_question_is_answered_with_the_adapter_that_is_named(indexed: Path, run: Run, tmp_path: Path) -> None:
    adapter, added = save_adapter(tmp_path / "lo+ra.gguf")
    base = save_model(tmp_path / "ba+se.gguf", "llama")
    merged = save_model(tmp_path / "merged.gguf", "llama", added=added)

    def right(model: str) -> float:
        """Return the log odds that the model gives its own answer."""
        done = run("ask", "When does the boat leave?", "--answer-model", model, "--json")
        assert done.exit_code == 0, done.output
        return float(json.loads(done.stdout)["log_odds"])

    adapted, alone, together = (right(model) for model in (f"{base}+{adapter}", str(base), str(merged)))
    assert adapted == pytest.approx(together, abs=CLOSE)
    assert adapted != pytest.approx(alone, abs=10 * CLOSE)


def test_the_adapter_is_part_of_the_identity(tmp_path: Path) -> None:
    adapter, _ = save_adapter(tmp_path / "lora.gguf")
    base = resolve("smollm2-135m-instruct", "answer")
    first = resolve(f"smollm2-135m-instruct+{adapter}", "answer")
    assert (first.path, first.adapter) == (base.path, adapter)
    assert first.calibration is None
    adapter.write_bytes(adapter.read_bytes() + b"more")
    second = resolve(f"smollm2-135m-instruct+{adapter}", "answer")
    assert len({base.identity, first.identity, second.identity}) == 3


def test_an_adapter_that_cannot_be_used_is_one_sentence(indexed: Path, run: Run, tmp_path: Path) -> None:
    adapter, _ = save_adapter(tmp_path / "lora.gguf")
    other, text = save_model(tmp_path / "other.gguf", "qwen3"), tmp_path / "notes.txt"
    text.write_text("no adapter")
    base = save_model(tmp_path / "base.gguf", "llama")
    for model, said in (
        (f"{other}+{adapter}", r"lora\.gguf is no adapter for other\.gguf; convert the one of this model to GGUF\."),
        (f"{base}+{text}", r"notes\.txt is not a GGUF file, which an adapter must be; .*\."),
        (f"{base}+{tmp_path}/none.gguf", r"No model or file is called '.*none\.gguf'; .*\."),
    ):
        done = run("ask", "When does the boat leave?", "--answer-model", model)
        assert done.exit_code == 1
        assert re.fullmatch(f"Error: .*{said}", done.stderr.splitlines()[-1])
    with pytest.raises(ModelError, match=r"Only the answer model may have an adapter"):
        resolve(f"{base}+{adapter}", "context")
