"""Which model is chosen, and what its calibration belongs to."""

from pathlib import Path

import pytest

from local_rag.model_records import Calibration
from local_rag.models.choice import calibration_of, gpu_backend, on_backend, with_calibration
from local_rag.models.registry import resolve

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
