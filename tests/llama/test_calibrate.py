from pathlib import Path

import pytest

from local_rag.llama.calibrate import calibrate, measure_rates, stored_settings
from local_rag.llama.engine import EngineSettings
from local_rag.llama.model import LlamaModel


@pytest.fixture(autouse=True)
def _models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RAG_MODELS", str(tmp_path))


class Machine:
    """A machine that likes large batches of many sequences; keeps what was tried on it."""

    def __init__(self) -> None:
        self.tried: list[EngineSettings] = []

    def __call__(self, _model: LlamaModel, settings: EngineSettings, *, decoded: int) -> tuple[float, float]:
        assert decoded > 0
        self.tried.append(settings)
        return 100.0 + settings.batch_tokens / 100, 50.0 + settings.sequences - 20 * (not settings.flash_attention)


def test_rates_are_measured(tiny_llama: LlamaModel) -> None:
    prefill, decode = measure_rates(tiny_llama, EngineSettings(sequences=2, batch_tokens=64), decoded=2)
    assert prefill > decode > 1


def test_the_best_trial_is_chosen_and_stored(tiny_llama: LlamaModel, tmp_path: Path) -> None:
    assert stored_settings(tiny_llama.path, cores=4) is None
    machine, notes = Machine(), list[str]()
    best = calibrate(tiny_llama, notes.append, measure=machine, cores=4)
    assert best == EngineSettings(sequences=32, batch_tokens=1024, flash_attention=True, threads=4)
    assert stored_settings(tiny_llama.path, cores=4) == best
    assert [f"{number} of {len(machine.tried)}" in note for number, note in enumerate(notes, start=1)] == [True] * 7
    assert {settings.threads for settings in machine.tried} == {3, 4}
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF")
    assert stored_settings(other, cores=4) is None


def test_a_core_of_two_is_not_given_away(tiny_llama: LlamaModel) -> None:
    machine = Machine()
    calibrate(tiny_llama, lambda _note: None, measure=machine, cores=2)
    assert {settings.threads for settings in machine.tried} == {2}


@pytest.mark.parametrize("damage", ["{", "[]", "3", ""])
def test_a_damaged_memory_is_measured_anew(tiny_llama: LlamaModel, tmp_path: Path, damage: str) -> None:
    (tmp_path / ".calibration.json").write_text(damage)
    assert stored_settings(tiny_llama.path) is None
    best = calibrate(tiny_llama, lambda _note: None, measure=Machine(), cores=4)
    assert stored_settings(tiny_llama.path, cores=4) == best


def test_never_more_threads_than_cores(tiny_llama: LlamaModel) -> None:
    assert calibrate(tiny_llama, lambda _note: None, measure=Machine(), cores=64).threads == 64
    for cores in (3, 64, 128):
        stored = stored_settings(tiny_llama.path, cores=cores)
        assert stored is not None
        assert stored.threads == min(64, cores)
