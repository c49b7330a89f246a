import hashlib
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from local_rag.cli.main import cli
from local_rag.errors import ModelError
from local_rag.models.models_folder import default_models_directory
from local_rag.models.registry import Registry, load_registry, missing_files, verify
from local_rag.models.sources.pull import add
from tests.models.test_pull import EMBEDDER, POOLING, WEIGHTS, WRITER, model_file

GGUF = b"GGUF and the rest"
OWN = replace(WRITER, files=(model_file("writer.gguf", GGUF),))
OTHER = replace(EMBEDDER, name="other", files=(model_file("model.safetensors", b"x"), EMBEDDER.files[1]))
REGISTRY = Registry({"embedder": EMBEDDER, "writer": OWN, "other": OTHER}, {})


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_file_is_recognised_by_its_hash_alone(tmp_path: Path) -> None:
    carried = write(tmp_path / "stick/whatever.bin", GGUF)
    assert add(carried, REGISTRY, models_directory=tmp_path / "models") == [(OWN, ())]
    assert verify(OWN, models_directory=tmp_path / "models") == ()
    assert carried.read_bytes() == GGUF
    shutil.rmtree(tmp_path / "stick")
    assert verify(OWN, models_directory=tmp_path / "models") == ()


def test_another_file_with_the_right_name_and_size_is_refused(tmp_path: Path) -> None:
    false = write(tmp_path / "writer.gguf", b"GGUF and the resT")
    digest = hashlib.sha256(b"GGUF and the resT").hexdigest()
    with pytest.raises(ModelError, match=rf"SHA-256 {digest}\) holds no weights of a model .*--answer-model PATH"):
        add(false, REGISTRY, models_directory=tmp_path / "models")
    assert missing_files(OWN, tmp_path / "models") == ("writer.gguf",)


def test_a_folder_is_added_whole(tmp_path: Path) -> None:
    write(tmp_path / "carried/a/1", WEIGHTS)
    write(tmp_path / "carried/b/2", POOLING)
    write(tmp_path / "carried/notes.txt", b"not a model")
    write(tmp_path / "elsewhere", GGUF)
    (tmp_path / "carried/link").symlink_to(tmp_path / "elsewhere")
    directory = tmp_path / "models"
    assert add(tmp_path / "carried", REGISTRY, models_directory=directory) == [(EMBEDDER, ()), (OWN, ())]
    assert not (directory / "writer/writer.gguf").is_symlink()
    assert not (directory / "other").exists()  # shares a small file, but its weights are not there
    assert list((directory / ".partial").iterdir()) == []


def test_what_is_missing_is_named_and_can_be_added_later(tmp_path: Path) -> None:
    weights, pooling = write(tmp_path / "1", WEIGHTS), write(tmp_path / "2", POOLING)
    directory = tmp_path / "models"
    assert add(weights, REGISTRY, models_directory=directory) == [(EMBEDDER, ("1_Pooling/config.json",))]
    assert add(pooling, REGISTRY, models_directory=directory) == [(EMBEDDER, ())]


def test_on_another_disk_the_file_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    carried = write(tmp_path / "file", GGUF)
    add(carried, REGISTRY, models_directory=tmp_path / "models")
    assert (tmp_path / "models/writer/writer.gguf").stat().st_ino != carried.stat().st_ino
    assert verify(OWN, models_directory=tmp_path / "models") == ()


def test_a_damaged_model_is_mended_without_writing_into_it(tmp_path: Path) -> None:
    damaged = write(tmp_path / "models/writer/writer.gguf", b"damaged")
    os.link(damaged, tmp_path / "second name")
    add(write(tmp_path / "file", GGUF), REGISTRY, models_directory=tmp_path / "models")
    assert damaged.read_bytes() == GGUF
    assert (tmp_path / "second name").read_bytes() == b"damaged"


def test_command_adds_a_real_model(tmp_path: Path) -> None:
    name = "smollm2-135m-instruct"
    entry = load_registry().models[name]
    os.link(entry.path(default_models_directory()), tmp_path / "model")
    result = CliRunner().invoke(cli, ["models", "add", str(tmp_path / "model"), "--models", str(tmp_path / "models")])
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"{name}: {entry.path(tmp_path / 'models')} (Apache-2.0)\n"
    arguments = ["models", "add", str(tmp_path / "model"), "--models", str(tmp_path / "models"), "--json"]
    path = str(entry.path(tmp_path / "models"))
    (told,) = json.loads(CliRunner().invoke(cli, arguments).stdout)
    assert told == {"name": name, "path": path, "licence": "Apache-2.0", "missing": []}
    refused = CliRunner().invoke(cli, ["models", "add", str(tmp_path / "nothing")])
    assert refused.exit_code == 2


def test_a_file_that_others_may_change_is_copied(tmp_path: Path) -> None:
    own, open_to_all = write(tmp_path / "own.gguf", GGUF), write(tmp_path / "stick" / "writer.gguf", GGUF)
    own.chmod(0o600)
    open_to_all.chmod(0o666)
    for number, (path, links) in enumerate(((own, 2), (open_to_all, 1))):
        models = tmp_path / f"models{number}"
        add(path, REGISTRY, models_directory=models)
        assert (OWN.folder(models) / OWN.weights.name).stat().st_nlink == links
    open_to_all.write_bytes(b"X" * len(GGUF))
    assert verify(OWN, models_directory=models) == ()
