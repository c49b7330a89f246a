"""Models that other programs have: found by hash, used in place, never changed."""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from local_rag.cli.main import cli
from local_rag.models.models_folder import default_models_directory
from local_rag.models.other_programs import ModelFolder, find_models, model_folders, other_gguf_files
from local_rag.models.registry import HubSource, ModelEntry, load_registry, missing_files
from local_rag.models.sources.pull import Pulled, pull
from tests.models.test_pull import EMBEDDER, POOLING, WEIGHTS, Recorder, model_file, use_hub
from tests.support.model_servers import FakeHub

GGUF = b"GGUF" + bytes(5000)
WRITER = replace(EMBEDDER, name="writer", roles=("answer",), format="gguf", files=(model_file("w.gguf", GGUF),))
WRITER = replace(WRITER, sources=(HubSource("owner/writer", "abc123"),))
SMOLLM = "smollm2-135m-instruct"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def ollama(folder: Path, *contents: bytes) -> ModelFolder:
    for content in contents:
        write(folder / "blobs" / f"sha256-{digest(content)}", content)
    write(folder / f"blobs/sha256-{'0' * 64}-partial", GGUF[:100])
    return ModelFolder("Ollama", folder / "blobs")


def hub_cache(folder: Path) -> ModelFolder:
    """Lay out a repository as huggingface_hub does: blobs, and a snapshot of relative links to them."""
    repository = folder / "models--owner--embedder"
    write(repository / "refs/main", b"abc123")
    for name, content in (("model.safetensors", WEIGHTS), ("1_Pooling/config.json", POOLING)):
        blob = write(repository / "blobs" / digest(content), content)
        link = repository / "snapshots/abc123" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
    return ModelFolder("Hugging Face cache", folder)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with FakeHub({"owner/writer/resolve/abc123/w.gguf": GGUF}) as server:
        use_hub(monkeypatch, server.url)
        yield server


def state(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return inode, size and time of change of everything below a folder."""
    found = ((path, path.lstat()) for path in sorted(folder.rglob("*")))
    return {str(path): (status.st_ino, status.st_size, status.st_mtime_ns) for path, status in found}


def take(entry: ModelEntry, directory: Path, *folders: ModelFolder) -> Pulled:
    return pull(entry, models_directory=directory, progress=Recorder(), folders=folders)


def test_pull_downloads_nothing_that_ollama_and_the_hub_cache_have(hub: FakeHub, tmp_path: Path) -> None:
    folders = ollama(tmp_path / "ollama", GGUF, b"another model"), hub_cache(tmp_path / "hub")
    before = state(tmp_path)
    models = tmp_path / "models"
    assert take(WRITER, models, *folders).sources == ("Ollama (in place)",)
    assert take(EMBEDDER, models, *folders).sources == ("Hugging Face cache (in place)",)
    assert hub.requests == []
    assert (models / "writer/w.gguf").resolve() == tmp_path / "ollama/blobs" / f"sha256-{digest(GGUF)}"
    assert (models / "embedder/1_Pooling/config.json").read_bytes() == POOLING
    assert missing_files(WRITER, models) == missing_files(EMBEDDER, models) == ()
    assert {path: found for path, found in state(tmp_path).items() if path in before} == before
    assert sum(path.stat().st_size for path in models.rglob("*") if not path.is_symlink() and path.is_file()) < 2000


def test_the_name_of_a_blob_is_not_believed(hub: FakeHub, tmp_path: Path) -> None:
    place = ollama(tmp_path / "ollama", GGUF)
    blob = place.folder / f"sha256-{digest(GGUF)}"
    blob.write_bytes(b"GGUF" + b"?" * 5000)
    assert find_models([place], [WRITER], lambda path: digest(path.read_bytes())) == []
    assert take(WRITER, tmp_path / "models", place).sources == ("hub repository owner/writer",)
    assert not (tmp_path / "models/writer/w.gguf").is_symlink()


def test_a_file_that_changes_afterwards_is_not_used_any_more(hub: FakeHub, tmp_path: Path) -> None:
    place, models = ollama(tmp_path / "ollama", GGUF), tmp_path / "models"
    take(WRITER, models, place)
    assert missing_files(WRITER, models) == ()
    blob = place.folder / f"sha256-{digest(GGUF)}"
    changed = b"GGUF" + b"?" * 5000
    blob.write_bytes(changed)
    assert missing_files(WRITER, models) == ("w.gguf",)
    assert take(WRITER, models, place).sources == ("hub repository owner/writer",)
    assert blob.read_bytes() == changed  # only the link was replaced
    assert missing_files(WRITER, models) == ()


def test_a_file_that_goes_away_is_pulled_again(hub: FakeHub, tmp_path: Path) -> None:
    place, models = ollama(tmp_path / "ollama", GGUF), tmp_path / "models"
    take(WRITER, models, place)
    (place.folder / f"sha256-{digest(GGUF)}").unlink()
    assert missing_files(WRITER, models) == ("w.gguf",)
    assert take(WRITER, models, place).sources == ("hub repository owner/writer",)
    assert missing_files(WRITER, models) == ()


def test_other_gguf_files_are_listed_once(tmp_path: Path) -> None:
    own = write(tmp_path / "lmstudio/publisher/model/own.gguf", b"GGUF of another model")
    os.link(own, tmp_path / "second.gguf")
    folders = [
        ollama(tmp_path / "ollama", GGUF),
        ModelFolder("LM Studio", tmp_path / "lmstudio"),
        ModelFolder("llama.cpp", tmp_path / "second.gguf"),
    ]
    (found,) = find_models(folders, [WRITER], lambda path: digest(path.read_bytes()))
    assert (found.entry, found.program, found.missing) == (WRITER, "Ollama", ())
    others = list(other_gguf_files(folders, [found.weights]))
    assert others == [("LM Studio", own)]


def test_programs_keep_their_models_where_their_variables_say(tmp_path: Path) -> None:
    for folder in ("o/blobs", "h/hub", ".lmstudio/models", "l", ".ollama/models/blobs", ".cache/huggingface/hub"):
        (tmp_path / folder).mkdir(parents=True)
    named = {"OLLAMA_MODELS": str(tmp_path / "o"), "HF_HOME": str(tmp_path / "h"), "LLAMA_CACHE": str(tmp_path / "l")}
    found = [(place.program, str(place.folder.relative_to(tmp_path))) for place in model_folders(named, tmp_path)]
    assert found == [
        ("Ollama", "o/blobs"),
        ("Hugging Face cache", "h/hub"),
        ("LM Studio", ".lmstudio/models"),
        ("llama.cpp", "l"),
    ]
    default = [str(place.folder.relative_to(tmp_path)) for place in model_folders({}, tmp_path)]
    assert default == [".ollama/models/blobs", ".cache/huggingface/hub", ".lmstudio/models"]


def test_commands_find_and_use_a_model_of_ollama(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = load_registry().models[SMOLLM]
    blob = tmp_path / "store/blobs" / f"sha256-{entry.weights.sha256}"
    blob.parent.mkdir(parents=True)
    os.link(entry.path(default_models_directory()).resolve(), blob)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "store"))
    directory = str(tmp_path / "models")
    listed = CliRunner().invoke(cli, ["models", "list", "--found", "--models", directory])
    assert (listed.exit_code, listed.stdout) == (0, f"{SMOLLM}: {blob}, Ollama\n")
    assert f"`local-rag models pull {SMOLLM}` uses these files where they are" in listed.stderr
    rows = json.loads(CliRunner().invoke(cli, ["models", "list", "--found", "--json", "--models", directory]).stdout)
    assert [(row["name"], row["pulled"]) for row in rows["found"]] == [(SMOLLM, False)]
    pulled = CliRunner().invoke(cli, ["models", "pull", SMOLLM, "--models", directory])
    assert (pulled.exit_code, pulled.stderr) == (0, "")
    assert pulled.stdout.endswith("(Apache-2.0), from Ollama (in place)\n")
    again = CliRunner().invoke(cli, ["models", "list", "--found", "--models", directory])
    assert again.stderr == ""
