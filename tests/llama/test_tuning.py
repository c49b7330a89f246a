import json
from pathlib import Path

import pytest

from local_rag.llama.engine import EngineSettings
from local_rag.llama.model import LlamaModel
from local_rag.llama.optimize import measure_rates, stored_settings, tune
from local_rag.machine import Neighbours
from tests.support.tiny_models import save_model


@pytest.fixture(autouse=True)
def _models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RAG_MODELS", str(tmp_path))


@pytest.fixture
def model(tmp_path: Path) -> LlamaModel:
    return LlamaModel(save_model(tmp_path / "tiny.gguf", "llama"))


def ignore(_note: str) -> None:
    pass


def same_rates(_model: LlamaModel, _settings: EngineSettings, *, decoded: int) -> tuple[float, float]:
    return 100.0, float(decoded)


def test_rates_are_measured(model: LlamaModel) -> None:
    prefill, decode = measure_rates(model, EngineSettings(sequences=2, batch_tokens=64), decoded=2)
    assert min(prefill, decode) > 0  # which is faster depends on what else runs


def test_the_best_trial_is_chosen_and_stored(model: LlamaModel, tmp_path: Path) -> None:
    tried = []

    def rates(_model: LlamaModel, settings: EngineSettings, *, decoded: int) -> tuple[float, float]:
        tried.append(settings)
        assert decoded > 0
        return 100.0 + settings.batch_tokens / 100, 50.0 + settings.sequences - 20 * (not settings.flash_attention)

    assert stored_settings(model.path, cores=4) is None
    notes: list[str] = []
    best = tune(model, notes.append, measure=rates, cores=4)
    assert best == EngineSettings(32, 1024, True, 4)
    assert stored_settings(model.path, cores=4) == best
    assert len(notes) == len(tried)
    assert {settings.threads for settings in tried} == {3, 4}
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF")
    assert stored_settings(other, cores=4) is None


@pytest.mark.parametrize("content", ["{", "[]", "{}"])
def test_damaged_measurements_are_taken_again(content: str, model: LlamaModel, tmp_path: Path) -> None:
    (tmp_path / ".calibration.json").write_text(content)
    assert stored_settings(model.path) is None


@pytest.mark.parametrize("damage", [{"cores": None}, {"cores": "4"}, {"more": 1}])
def test_measurements_of_another_version_are_taken_again(
    damage: dict[str, object], model: LlamaModel, tmp_path: Path
) -> None:
    tune(model, ignore, measure=same_rates, cores=4)
    file = tmp_path / ".calibration.json"
    ((key, found),) = json.loads(file.read_text()).items()
    file.write_text(json.dumps({key: {**found, **damage}}))
    assert stored_settings(model.path, cores=4) is None


def test_never_more_threads_than_cores(model: LlamaModel) -> None:
    assert tune(model, ignore, measure=same_rates, cores=64).threads == 64
    stored = stored_settings(model.path, cores=3)
    assert stored is not None
    assert stored.threads == 3


def test_more_cores_than_it_was_tuned_to_are_measured_again(model: LlamaModel) -> None:
    tune(model, ignore, measure=same_rates, cores=1)
    assert stored_settings(model.path, cores=1) == EngineSettings(threads=1)
    assert stored_settings(model.path, cores=8) is None
    tune(model, ignore, measure=same_rates, cores=8)
    assert stored_settings(model.path, cores=8) == EngineSettings(threads=8)


def test_one_core_of_two_is_not_given_up(model: LlamaModel) -> None:
    tried = []

    def rates(_model: LlamaModel, settings: EngineSettings, *, decoded: int) -> tuple[float, float]:
        tried.append(settings.threads)
        return 100.0, float(decoded)

    tune(model, ignore, measure=rates, cores=2)
    assert set(tried) == {2}


def test_measurements_beside_a_busy_program_are_not_stored(model: LlamaModel) -> None:
    class Busy(Neighbours):
        def threads(self, wanted: int = 0) -> int:
            return wanted - 1

    assert tune(model, ignore, measure=same_rates, cores=4, neighbours=Busy()) == EngineSettings(threads=4)
    assert stored_settings(model.path, cores=4) is None


def test_what_runs_on_a_gpu_is_tuned_by_itself(model: LlamaModel) -> None:
    tune(model, ignore, measure=same_rates, cores=4)
    assert stored_settings(model.path, cores=4, gpu_layers=0) is None
    with LlamaModel(model.path, gpu_layers=0) as on_processor:
        tune(on_processor, ignore, measure=same_rates, cores=2)
    assert stored_settings(model.path, cores=2, gpu_layers=0) == EngineSettings(threads=2)
    assert stored_settings(model.path, cores=4) == EngineSettings(threads=4)
