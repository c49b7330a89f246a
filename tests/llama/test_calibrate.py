from pathlib import Path

import pytest

from local_rag.llama import calibrate as module
from local_rag.llama.calibrate import calibrate, measure_rates, stored_settings
from local_rag.llama.engine import EngineSettings
from local_rag.llama.model import LlamaModel, physical_cores


@pytest.fixture(autouse=True)
def _models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RAG_MODELS", str(tmp_path))


def test_rates_are_measured(tiny_llama: LlamaModel) -> None:
    prefill, decode = measure_rates(tiny_llama, EngineSettings(sequences=2, batch_tokens=64), decoded=2)
    assert prefill > decode > 1


def test_the_best_trial_is_chosen_and_stored(
    tiny_llama: LlamaModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tried = []

    def rates(_model: LlamaModel, settings: EngineSettings, *, decoded: int) -> tuple[float, float]:
        tried.append(settings)
        assert decoded > 0
        return 100.0 + settings.batch_tokens / 100, 50.0 + settings.sequences - 20 * (not settings.flash_attention)

    monkeypatch.setattr(module, "measure_rates", rates)
    assert stored_settings(tiny_llama.path) is None
    notes: list[str] = []
    best = calibrate(tiny_llama, notes.append)
    assert best == EngineSettings(32, 1024, True, physical_cores())
    assert stored_settings(tiny_llama.path) == best
    assert len(notes) == len(tried)
    assert all(settings.threads <= physical_cores() for settings in tried)
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF")
    assert stored_settings(other) is None


def test_a_damaged_memory_is_measured_anew(tiny_llama: LlamaModel, tmp_path: Path) -> None:
    (tmp_path / ".calibration.json").write_text("{")
    assert stored_settings(tiny_llama.path) is None


def test_never_more_threads_than_cores(tiny_llama: LlamaModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "physical_cores", lambda: 64)
    monkeypatch.setattr(module, "measure_rates", lambda *_arguments, decoded: (100.0, float(decoded)))
    assert calibrate(tiny_llama, lambda _note: None).threads == 64
    monkeypatch.setattr(module, "physical_cores", lambda: 3)
    stored = stored_settings(tiny_llama.path)
    assert stored is not None
    assert stored.threads == 3
