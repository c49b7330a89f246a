"""The checks as pure functions, the probe with processes that really die, and the command over a real library."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from local_rag.cli.main import cli
from local_rag.llama import probe
from local_rag.models.registry import default_models_directory, resolve
from local_rag.upkeep import doctor
from local_rag.upkeep.doctor import CheckResult

GB = 1000**3
REAL_RUN = subprocess.run


@pytest.mark.parametrize(
    ("result", "severity", "words"),
    [
        (doctor.check_python((3, 11, 4)), "ok", "3.11.4"),
        (doctor.check_python((3, 10, 9)), "failed", "older than 3.11"),
        (doctor.check_packages({"click": "8.1"}, {"click": "8.1"}), "ok", "as pinned"),
        (doctor.check_packages({"torch": "2.1+cpu"}, {"torch": "2.1"}), "ok", "as pinned"),
        (doctor.check_packages({"click": "8.1"}, {}), "ok", "1 installed"),
        (doctor.check_packages({"click": "8.2"}, {"click": "8.1"}), "warning", "click 8.2 instead of 8.1"),
        (doctor.check_packages({"click": None}, {"click": "8.1"}), "failed", "missing: click"),
        (doctor.check_llama("0.3", "CPU : AVX2 = 1 | FMA = 0", ["avx2"], None), "ok", "0.3 with AVX2"),
        (doctor.check_llama("0.3", "CPU : SSE3 = 1", ["avx2", "fma"], None), "warning", "also has AVX2 FMA"),
        (doctor.check_llama(None, "", [], "llama.cpp dies"), "failed", "llama.cpp dies"),
        (doctor.check_offline([]), "ok", "refused"),
        (doctor.check_offline(["native code"]), "failed", "through native code"),
        (doctor.check_cores(2), "ok", "2 physical"),
        (doctor.check_cores(1), "warning", "one physical core"),
        (doctor.check_memory("starter", 3 * GB, 8 * GB, 4 * GB), "ok", "about 3.0 GB; 4.0 of 8.0 GB"),
        (doctor.check_memory("starter", 3 * GB, 8 * GB, 2 * GB), "warning", "close other programs"),
        (doctor.check_memory("laptop", 9 * GB, 8 * GB, 4 * GB), "failed", "needs about 9.0 GB"),
        (doctor.check_disk(Path("/x"), 5 * GB, GB), "ok", "5.0 GB free"),
        (doctor.check_disk(Path("/x"), GB // 2, GB), "warning", "1.0 GB needed"),
        (doctor.check_disk(Path("/x"), GB // 20, GB), "failed", "1.0 GB needed"),
        (doctor.check_model("m", ["embed"], "", "pull", hashed=True), "ok", "SHA-256 verified"),
        (doctor.check_model("m", ["embed"], "", "pull"), "ok", "your own"),
        (doctor.check_model("m", ["embed"], "x is damaged", "pull"), "failed", "x is damaged"),
        (doctor.check_decoding("m", None), "ok", "decodes with m"),
        (doctor.check_decoding("m", "dies with SIGSEGV"), "failed", "SIGSEGV"),
        (doctor.check_privacy(Path("lib"), 0o40700), "ok", "private"),
        (doctor.check_privacy(Path("lib"), 0o40750), "warning", "mode 750"),
        (doctor.check_integrity(Path("lib"), []), "ok", "whole"),
        (doctor.check_integrity(Path("lib"), ["row missing"]), "failed", "row missing"),
        (doctor.check_fingerprint([]), "ok", "these settings"),
        (doctor.check_fingerprint(["the chunker"]), "failed", "made otherwise: the chunker"),
    ],
)
def test_each_check_says_what_it_found_and_how_to_mend_it(result: CheckResult, severity: str, words: str) -> None:
    assert result.severity == severity
    assert words in result.message
    assert bool(result.remedy) == (severity != "ok")


def test_memory_counts_one_generator_at_a_time() -> None:
    weights = {"context": 3 * GB, "answer": 5 * GB, "embed": GB}
    assert doctor.memory_needed(weights) - doctor.memory_needed({}) == 6 * GB


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setenv("LOCAL_RAG_MODELS", str(folder))
    return folder


def stand_in(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let the probe's process run this code instead."""

    def run(command: list[str], **options: object) -> object:
        return REAL_RUN([command[0], "-c", code], **options)  # type: ignore[call-overload]

    monkeypatch.setattr("local_rag.llama.probe.subprocess.run", run)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os.kill(os.getpid(), 11)", "dies with SIGSEGV"),
        ("import os; os.kill(os.getpid(), 4)", "dies with SIGILL"),
        ("import os; os.kill(os.getpid(), 9)", "want of memory"),
        ("import time; time.sleep(9)", "for over 1 seconds"),
        ("raise SystemExit('The file is broken; pull it again.')", "The file is broken; pull it again."),
        ("raise SystemExit(3)", "fails when it decodes"),
    ],
)
def test_a_dying_probe_becomes_a_sentence(monkeypatch: pytest.MonkeyPatch, code: str, words: str) -> None:
    stand_in(monkeypatch, code)
    problem = probe.run_probe(Path("m.gguf"), seconds=1)[1]
    assert problem is not None
    assert words in problem


def test_only_a_success_is_remembered_and_only_for_this_file(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = models / "m.gguf"
    model.write_bytes(b"GGUF")
    stand_in(monkeypatch, "import os; os.kill(os.getpid(), 11)")
    assert "SIGSEGV" in str(probe.probe_model(model))
    stand_in(monkeypatch, "")
    assert probe.probe_model(model) is None
    stand_in(monkeypatch, "import os; os.kill(os.getpid(), 11)")
    assert probe.probe_model(model) is None, "it was remembered"
    monkeypatch.setattr(probe, "processor", lambda: "another")
    assert "SIGSEGV" in str(probe.probe_model(model)), "another processor, another probe"
    monkeypatch.setattr(probe, "processor", lambda: "")
    stand_in(monkeypatch, "raise SystemExit('broken')")
    model.write_bytes(b"GGUF, but another")
    assert probe.probe_model(model) == "broken"


def test_damaged_memory_of_probes_costs_a_probe(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (models / "m.gguf").write_bytes(b"GGUF")
    (models / ".probes.json").write_text("{")
    stand_in(monkeypatch, "")
    assert probe.probe_model(models / "m.gguf") is None
    assert len(json.loads((models / ".probes.json").read_text())) == 1


def test_the_tiny_model_really_decodes_and_a_truncated_one_does_not(tmp_path: Path) -> None:
    path = resolve("smollm2-135m-instruct", "answer").path
    printed, problem = probe.run_probe(path)
    assert problem is None
    assert "CPU" in printed
    broken = tmp_path / "broken.gguf"
    with path.open("rb") as whole:
        broken.write_bytes(whole.read(100_000))
    assert "local-rag models pull" in str(probe.run_probe(broken)[1])


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["doctor", *arguments])


@pytest.fixture
def indexed(documents: Path, fake_embedder: object) -> Path:
    arguments = ["index", "documents", "--profile", "tiny", "--context", "headings"]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    return documents.parent / ".local-rag"


def results(*arguments: str) -> dict[str, dict[str, str]]:
    done = run("--json", *arguments)
    found = {result["name"]: result for result in json.loads(done.stdout)}
    assert done.exit_code == int(any(result["severity"] == "failed" for result in found.values()))
    return found


def test_a_whole_installation_passes(indexed: Path) -> None:
    found = results()
    assert {name for name, result in found.items() if result["severity"] == "failed"} == set()
    wanted = {"Python", "packages", "llama.cpp", "offline", "cores", "memory", "context and answer model", "decoding"}
    assert wanted | {"embed model", "disk", "library", "integrity", "fingerprint"} == set(found)


def test_every_check_is_one_line(indexed: Path) -> None:
    done = run()
    assert done.exit_code == 0
    assert all(line.startswith(("ok      ", "warning ")) for line in done.stdout.splitlines())


def test_missing_and_damaged_models_are_named_with_their_command(
    indexed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = tmp_path / "models"
    shutil.copytree(default_models_directory() / "all-minilm-l6-v2", models / "all-minilm-l6-v2")
    weights = models / "all-minilm-l6-v2" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    monkeypatch.setenv("LOCAL_RAG_MODELS", str(models))
    found = results()
    assert "is not pulled" in found["context and answer model"]["message"]
    assert found["context and answer model"]["remedy"].startswith("local-rag models pull smollm2-135m-instruct")
    assert "is damaged: its SHA-256" in found["embed model"]["message"]
    assert found["embed model"]["remedy"].startswith("local-rag models pull all-minilm-l6-v2")


def test_a_damaged_library_fails(indexed: Path) -> None:
    store = indexed / "library.sqlite3"
    connection = sqlite3.connect(store)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    data = bytearray(store.read_bytes())
    data[4096:12288] = os.urandom(8192)
    store.write_bytes(data)
    found = results()["integrity"]
    assert found["severity"] == "failed"
    assert "repair" in found["remedy"]


def test_a_damaged_index_fails(indexed: Path) -> None:
    vectors = next((indexed / "generations").rglob("vectors.faiss"))
    vectors.chmod(0o600)
    vectors.write_bytes(vectors.read_bytes()[:40])
    assert results()["integrity"]["severity"] == "failed"


def test_an_index_made_otherwise_and_an_open_folder_are_noticed(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    indexed.chmod(0o755)
    monkeypatch.setenv("LOCAL_RAG_CHUNKER", "fixed")
    found = results()
    assert found["library"]["remedy"] == f"chmod 700 {indexed}"
    assert "the chunker (auto then, fixed now)" in found["fingerprint"]["message"]


def test_without_a_library_or_with_a_wrong_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "makes one" in results("--profile", "tiny")["library"]["message"]
    assert list(tmp_path.iterdir()) == [], "nothing is made"
    assert "no profile 'huge'" in results("--profile", "huge")["settings"]["message"]


def test_the_module_runs_by_itself() -> None:
    done = subprocess.run([sys.executable, "-m", "local_rag.llama.probe"], capture_output=True, text=True, check=True)
    assert "CPU" in done.stdout
