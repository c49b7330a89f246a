"""Files whose SHA-256 nobody knows: shown at the first pull, recorded if confirmed, and expected from then on."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from local_rag.errors import ModelError
from local_rag.models.registry import ModelEntry, ModelFile, _with_recorded, missing_files, recorded_files, verify
from local_rag.models.sources.pull import pull
from tests.models.test_pull import EMBEDDER, POOLING, REPOSITORY, WEIGHTS, WEIGHTS_PATH, Recorder, use_hub
from tests.support.model_servers import FakeHub

UNKNOWN = replace(EMBEDDER, files=(ModelFile("model.safetensors", 900_000, ""), EMBEDDER.files[1]))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with FakeHub({WEIGHTS_PATH: WEIGHTS, f"{REPOSITORY}/1_Pooling/config.json": POOLING}) as server:
        use_hub(monkeypatch, server.url)
        yield server


def known(directory: Path) -> ModelEntry:
    return _with_recorded(UNKNOWN, recorded_files(directory).get("embedder", {}))


def test_a_confirmed_hash_is_recorded_and_expected(hub: FakeHub, tmp_path: Path) -> None:
    shown: list[ModelFile] = []

    def confirm(files: Sequence[ModelFile]) -> bool:
        shown.extend(files)
        assert not (tmp_path / "embedder/model.safetensors").exists()
        return True

    pull(UNKNOWN, models_directory=tmp_path, progress=Recorder(), confirm=confirm)
    wanted = ModelFile("model.safetensors", len(WEIGHTS), hashlib.sha256(WEIGHTS).hexdigest())
    assert shown == [wanted]
    entry = known(tmp_path)
    assert entry.files[0] == wanted
    assert (missing_files(entry, tmp_path), verify(entry, models_directory=tmp_path)) == ((), ())
    hub.requests.clear()
    pull(entry, models_directory=tmp_path, progress=Recorder())
    assert hub.requests == []
    (tmp_path / "embedder/model.safetensors").unlink()
    hub.files[WEIGHTS_PATH] = WEIGHTS[:-1] + b"?"
    with pytest.raises(ModelError, match=wanted.sha256):
        pull(entry, models_directory=tmp_path, progress=Recorder())


def test_what_is_not_confirmed_is_not_kept(hub: FakeHub, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"SHA-256 of 1 files of embedder is not known and was not confirmed.*--yes"):
        pull(UNKNOWN, models_directory=tmp_path, progress=Recorder())
    assert not (tmp_path / "embedder/model.safetensors").exists()
    assert recorded_files(tmp_path) == {}
    assert missing_files(UNKNOWN, tmp_path) == ("model.safetensors",)


def test_a_file_that_happens_to_lie_there_is_not_trusted(hub: FakeHub, tmp_path: Path) -> None:
    (tmp_path / "embedder/1_Pooling").mkdir(parents=True)
    (tmp_path / "embedder/model.safetensors").write_bytes(b"x" * 900_000)
    assert missing_files(UNKNOWN, tmp_path) == ("model.safetensors", "1_Pooling/config.json")
    assert any("nobody has confirmed" in problem for problem in verify(UNKNOWN, models_directory=tmp_path))


def test_a_file_far_larger_than_estimated_is_cut_off(hub: FakeHub, tmp_path: Path) -> None:
    hub.files[WEIGHTS_PATH] = WEIGHTS * 20
    shown: list[ModelFile] = []
    with pytest.raises(ModelError, match="not confirmed"):
        pull(
            UNKNOWN,
            models_directory=tmp_path,
            progress=Recorder(),
            confirm=lambda files: bool(shown.extend(files)),  # type: ignore[func-returns-value]
        )
    assert shown[0].bytes < 3_000_000


@pytest.mark.parametrize("text", ['{"embedder": 1}', '{"embedder": {"a": {}}}', "{"])
def test_a_damaged_record_is_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / ".recorded.json").write_text(text)
    with pytest.raises(ModelError, match=r"recorded\.json is damaged"):
        recorded_files(tmp_path)
