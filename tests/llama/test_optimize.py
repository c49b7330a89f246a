import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from gguf import LlamaFileType

from local_rag.cli.main import cli
from local_rag.errors import ModelError
from local_rag.llama.model import LlamaModel
from local_rag.llama.optimize import (
    Optimization,
    damaged_gguf_copies,
    fastest_file,
    file_for_many,
    optimize,
    optimized_copy,
)
from local_rag.model_records import InstalledModel
from local_rag.models.registry import resolve
from tests.support.tiny_models import save_model


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InstalledModel:
    model = resolve("smollm2-135m-instruct", "context")
    folder = tmp_path / "models"
    (folder / model.name).mkdir(parents=True)
    shutil.copy(model.path, folder / model.name)
    monkeypatch.setenv("LOCAL_RAG_MODELS", str(folder))
    return resolve("smollm2-135m-instruct", "context")


@pytest.fixture
def smaller(tiny: InstalledModel) -> InstalledModel:
    """A model of random weights under the name of the tiny one: a copy of it is written at once."""
    save_model(tiny.path, "llama")
    return tiny


def reads_a_copy(times: float) -> Callable[[Path], tuple[float, float]]:
    """Pretend to measure that a copy is read so many times as fast as its original, and written as fast."""
    return lambda path: (100.0 * (times if path.suffix == ".tmp" else 1), 50.0)


def test_a_faster_copy_is_kept_used_and_verified(tiny: InstalledModel) -> None:
    assert fastest_file(tiny) == tiny.path
    leftover = optimized_copy(tiny).with_suffix(".99999.tmp")  # of a run that was killed
    leftover.parent.mkdir()
    leftover.touch()
    copy = optimized_copy(tiny)
    optimized = optimize(tiny, rates=reads_a_copy(3))
    assert optimized == Optimization(copy, (100.0, 50.0), (300.0, 50.0))
    assert optimized.gain == pytest.approx((200 / 100 + 40 / 50) / (200 / 300 + 40 / 50))
    assert fastest_file(tiny) == copy
    assert [path.name for path in copy.parent.iterdir() if path.suffix == ".tmp"] == []
    model = LlamaModel(copy)  # llama.cpp reads what it wrote, and it is another file than the one it is made from
    assert model.vocabulary_size == 49152
    model.close()
    assert copy.stat().st_size != tiny.path.stat().st_size

    assert fastest_file(replace(tiny, identity="another model")) == tiny.path
    folder = copy.parent.parent
    assert damaged_gguf_copies(folder) == []
    checksum = copy.with_suffix(".gguf.sha256")
    for written in (b"", b"\xff\xfe\x00", b"0" * 64):
        kept, _ = checksum.read_bytes(), checksum.write_bytes(written)
        assert damaged_gguf_copies(folder) == [copy], "a checksum that cannot be read vouches for nothing"
        checksum.write_bytes(kept)
    with copy.open("r+b") as handle:
        handle.seek(1000)
        handle.write(b"\xff\x00\xff")
    assert damaged_gguf_copies(folder) == [copy]
    result = CliRunner().invoke(cli, ["models", "verify", tiny.name])
    assert f"{copy}: damaged, so it was deleted" in result.stdout
    assert fastest_file(tiny) == tiny.path


def test_a_copy_that_is_not_faster_is_not_kept(smaller: InstalledModel) -> None:
    assert optimize(smaller, rates=reads_a_copy(1.05)).copy is None
    assert list(optimized_copy(smaller).parent.iterdir()) == []
    assert fastest_file(smaller) == smaller.path


def test_the_command_tells_what_it_measured_in_json(smaller: InstalledModel) -> None:
    result = CliRunner().invoke(cli, ["models", "optimize", str(smaller.path), "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["model"] == str(smaller.path)
    assert told["copy"] is None or Path(told["copy"]).is_file()
    assert len(told["rates"]) == len(told["copy_rates"]) == 2
    assert told["gain"] > 0


def test_before_many_contexts_the_copy_is_tried_once(smaller: InstalledModel) -> None:
    notes = list[str]()
    assert file_for_many(smaller, notes.append, rates=reads_a_copy(1.05)) == smaller.path
    assert file_for_many(smaller, notes.append, rates=reads_a_copy(3)) == smaller.path, "known not to be faster here"
    assert len(notes) == 1
    other = replace(smaller, path=smaller.path.with_name("other.gguf"), identity="other")
    shutil.copy(smaller.path, other.path)
    assert file_for_many(other, notes.append, rates=reads_a_copy(3)) == optimized_copy(other)
    assert file_for_many(other, notes.append) == optimized_copy(other)
    assert len(notes) == 2


def test_what_can_be_repacked_is_not_copied(smaller: InstalledModel) -> None:
    save_model(smaller.path, "llama", file_type=LlamaFileType.MOSTLY_Q4_0)
    assert file_for_many(smaller, pytest.fail, rates=reads_a_copy(3)) == smaller.path


def test_without_a_copy_contexts_are_written_with_the_original(tiny: InstalledModel) -> None:
    tiny.path.write_bytes(b"GGUF and nothing else")
    assert file_for_many(tiny, lambda _note: None) == tiny.path


def test_a_file_that_cannot_be_requantized_is_named(tiny: InstalledModel) -> None:
    tiny.path.write_bytes(b"GGUF and nothing else")
    with pytest.raises(ModelError, match=r"cannot requantize .*SmolLM2"):
        optimize(tiny)
    assert list(optimized_copy(tiny).parent.iterdir()) == []


def test_ctrl_c_ends_the_copying_and_leaves_nothing(tiny: InstalledModel, tmp_path: Path) -> None:
    script = tmp_path / "optimize.py"
    script.write_text(
        "from local_rag.llama.optimize import optimize\n"
        "from local_rag.models.registry import resolve\n"
        f"optimize(resolve({tiny.name!r}, 'context'))\n"
    )
    process = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.DEVNULL)
    folder = optimized_copy(tiny).parent
    while process.poll() is None and not list(folder.glob("*.tmp")):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait() != 0
    assert list(folder.iterdir()) == []


def test_missing_disk_space_is_reported_before_anything_is_written(
    tiny: InstalledModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        free = 4096

    monkeypatch.setattr("shutil.disk_usage", lambda _path: Full)
    with pytest.raises(ModelError, match="Not enough disk space"):
        optimize(tiny)


def test_a_model_with_an_adapter_shares_the_copy_of_the_model_that_it_changes(tiny: InstalledModel) -> None:
    adapted = replace(tiny, identity="another", adapter=Path("adapter.gguf"), base=tiny.identity)
    assert optimized_copy(adapted) == optimized_copy(tiny)
    assert optimized_copy(replace(adapted, base="")) != optimized_copy(tiny)
