"""Which model is chosen, and what its calibration belongs to."""

from dataclasses import replace
from pathlib import Path

import pytest

from local_rag.errors import ModelError
from local_rag.model_records import Calibration, ContextForm, InstalledModel
from local_rag.models.choice import asked_for, calibration_of, chosen, gpu_backend, on_backend, with_calibration
from local_rag.models.registry import resolve
from local_rag.settings import Settings

OWN = Calibration("recipe", 0.1, {"right": 1.0}, answer_from=0.5, quote_from=0.1)


@pytest.mark.parametrize(
    ("library", "kind"),
    [
        ("libggml-vulkan.so", "vulkan"),
        ("libggml-cuda.so.0", "cuda"),
        ("libggml-metal.dylib", "metal"),
        ("libggml-hip.so", "hip"),
        ("libggml-cpu.so", ""),
    ],
)
def test_the_gpu_is_the_one_that_llama_was_compiled_for(library: str, kind: str, tmp_path: Path) -> None:
    assert gpu_backend(tmp_path) == ""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libggml-base.so").touch()
    (tmp_path / "lib" / library).touch()
    assert gpu_backend(tmp_path) == kind


def test_each_backend_has_its_own_calibration() -> None:
    model = resolve("smollm2-135m-instruct", "answer")
    assert on_backend(model, "") == model
    vulkan, cuda = on_backend(model, "vulkan"), on_backend(model, "cuda")
    assert len({model.identity, vulkan.identity, cuda.identity}) == 3
    remembered = with_calibration(vulkan, {}, OWN)
    assert calibration_of(vulkan, remembered) == OWN
    assert calibration_of(cuda, remembered) is None
    assert calibration_of(model, remembered) is None


ASK, SITUATE = ContextForm("Ask."), ContextForm("Situate it.")
PLAIN = InstalledModel(name="writer", role="context", path=Path("writer.gguf"), identity="w", context_length=2048)


def test_a_model_is_asked_for_the_form_that_is_wanted() -> None:
    both = replace(PLAIN, context_form=ASK, sentence_form=SITUATE)
    assert asked_for("questions", both).context_form == ASK
    assert asked_for("sentences", both).context_form == SITUATE
    assert asked_for("questions", PLAIN) == asked_for("sentences", PLAIN) == PLAIN


def test_a_model_that_only_asks_questions_writes_no_sentences() -> None:
    with pytest.raises(ModelError, match=r"'writer' .* writes no sentences; name another with `--context-model`"):
        asked_for("sentences", replace(PLAIN, context_form=ASK))


def test_an_adapter_for_questions_is_left_out_where_sentences_are_wanted() -> None:
    adapter = Settings(context_model="qwen2.5-coder-0.5b-contexts")
    assert chosen(adapter)["context"] == "qwen2.5-coder-0.5b-contexts"
    situating = adapter.model_copy(update={"context_form": "sentences"})
    assert chosen(situating)["context"] == "qwen2.5-coder-0.5b-instruct"
    assert chosen(situating)["answer"] == chosen(adapter)["answer"]
    other = situating.model_copy(update={"context_model": "smollm2-135m-instruct"})
    assert chosen(other)["context"] == "smollm2-135m-instruct"
