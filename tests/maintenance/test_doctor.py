"""The checks as pure functions, the probe with processes that really die, and the command over a real library."""

import json
import os
import re
import shlex
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from local_rag.llama import probe
from local_rag.maintenance import checks
from local_rag.maintenance.checks import CheckResult, missing_extras, open_ways
from local_rag.models.models_folder import default_models_directory
from local_rag.models.registry import resolve
from tests.conftest import NEEDS_LLAMA, Run
from tests.support.tiny_models import save_model

GB = 1000**3
Results = Callable[..., dict[str, dict[str, str]]]


@pytest.mark.parametrize(
    ("result", "severity", "words"),
    [
        (checks.check_python((3, 11, 4)), "ok", "3.11.4"),
        (checks.check_python((3, 10, 9)), "failed", "older than 3.11"),
        (checks.check_platform("Linux", "x86_64"), "ok", "Linux x86_64"),
        (checks.check_platform("Darwin", "arm64"), "ok", "macOS arm64"),
        (checks.check_platform("Windows", "AMD64"), "failed", "Linux and macOS are supported, Windows is not"),
        (checks.check_platform("FreeBSD", "amd64"), "warning", "Linux and macOS are supported, FreeBSD is untested"),
        (checks.check_packages({"click": "8.1"}, {"click": "8.1"}), "ok", "as pinned"),
        (checks.check_packages({"torch": "2.1+cpu"}, {"torch": "2.1"}), "ok", "as pinned"),
        (checks.check_packages({"click": "8.1"}, {}), "ok", "1 installed"),
        (checks.check_packages({"click": "8.2"}, {"click": "8.1"}), "warning", "click 8.2 instead of 8.1"),
        (checks.check_packages({"click": None}, {"click": "8.1"}), "failed", "missing: click"),
        (checks.check_extras(["ocr", "serve"]), "ok", "not installed: ocr, serve; "),
        (checks.check_extras([]), "ok", "all installed"),
        (checks.check_llama("0.3", "CPU : AVX2 = 1 | FMA = 0", "EPYC", ["avx2"], None), "ok", "0.3 with AVX2"),
        (checks.check_llama("0.3", "CPU : SSE3 = 1", "EPYC", ["avx2", "fma"], None), "warning", "also has AVX2 FMA"),
        (checks.check_llama(None, "", "", [], "llama.cpp dies"), "failed", "llama.cpp dies"),
        (checks.check_offline([]), "ok", "are refused"),
        (checks.check_offline([], ["a daemon may look up names"]), "ok", "are refused; a daemon may look up names"),
        (checks.check_offline(["native code"]), "failed", "through native code"),
        (checks.check_cores(2), "ok", "2 physical"),
        (checks.check_cores(1), "warning", "one physical core"),
        (checks.check_memory("starter", 3 * GB, 8 * GB, 4 * GB), "ok", "about 3.0 GB; 4.0 of 8.0 GB"),
        (checks.check_memory("starter", 3 * GB, 8 * GB, 2 * GB), "warning", "close other programs"),
        (checks.check_memory("laptop", 9 * GB, 8 * GB, 4 * GB), "failed", "needs about 9.0 GB"),
        (checks.check_disk(Path("/x"), 5 * GB, GB), "ok", "5.0 GB free"),
        (checks.check_disk(Path("/x"), GB // 2, GB), "warning", "1.0 GB needed"),
        (checks.check_disk(Path("/x"), GB // 20, GB), "failed", "1.0 GB needed"),
        (checks.check_model("m", ["embed"], "", "pull", hashed=True), "ok", "SHA-256 verified"),
        (checks.check_model("m", ["embed"], "", "pull"), "ok", "your own"),
        (checks.check_model("m", ["embed"], "x is damaged", "pull"), "failed", "x is damaged"),
        (checks.check_decoding("m", None), "ok", "decodes with m"),
        (checks.check_decoding("m", None, "CPU (x): 9 tokens per second read, 3 written"), "ok", "m on CPU (x): 9 tok"),
        (checks.check_decoding("m", "dies with SIGSEGV"), "failed", "SIGSEGV"),
        (checks.check_privacy(Path("lib"), 0o40700), "ok", "private"),
        (checks.check_privacy(Path("lib"), 0o40750), "warning", "mode 750"),
        (checks.check_file_system(Path("lib"), "ext4", False), "ok", "ext4"),
        (checks.check_file_system(Path("lib"), "nfs4", True), "warning", "network file system (nfs4)"),
        (checks.check_integrity(Path("lib"), []), "ok", "whole"),
        (checks.check_integrity(Path("lib"), ["row missing"]), "failed", "row missing"),
        (checks.check_fingerprint([]), "ok", "these settings"),
        (checks.check_fingerprint(["the chunker"]), "failed", "built with different settings (the chunker)"),
        (
            checks.check_fingerprint(["the recipe"], searchable=True),
            "warning",
            "different settings (the recipe)",
        ),
    ],
)
def test_each_check_says_what_it_found_and_how_to_mend_it(result: CheckResult, severity: str, words: str) -> None:
    assert result.severity == severity
    assert words in result.message
    assert bool(result.remedy) == (severity != "ok")


def test_memory_counts_one_generator_at_a_time() -> None:
    weights = {"context": 3 * GB, "answer": 5 * GB, "embed": GB}
    assert checks.memory_needed(weights) - checks.memory_needed({}) == 6 * GB


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setenv("LOCAL_RAG_MODELS", str(folder))
    return folder


def program(code: str) -> tuple[str, ...]:
    """Return what runs in the place of the probe."""
    return sys.executable, "-c", code


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os.kill(os.getpid(), 11)", "crashed with SIGSEGV"),
        ("import os; os.kill(os.getpid(), 4)", "crashed with SIGILL"),
        ("import os; os.kill(os.getpid(), 9)", "out of memory"),
        ("import time; time.sleep(9)", "over 1 seconds"),
        ("raise SystemExit('The file is broken; pull it again.')", "The file is broken; pull it again."),
        ("raise SystemExit(3)", "failed while decoding"),
    ],
)
def test_a_dying_probe_becomes_a_sentence(code: str, words: str) -> None:
    problem = probe.run_probe(Path("m.gguf"), seconds=1, program=program(code))[1]
    assert problem is not None
    assert words in problem


def test_only_a_success_is_remembered_and_only_for_this_file(models: Path) -> None:
    model, dies = models / "m.gguf", program("import os; os.kill(os.getpid(), 11)")
    model.write_bytes(b"GGUF")
    assert "SIGSEGV" in str(probe.probe_model(model, dies))
    assert probe.probe_model(model, program("")) is None
    assert probe.probe_model(model, dies) is None, "it was remembered"
    model.write_bytes(b"GGUF, but another")
    assert probe.probe_model(model, program("raise SystemExit('broken')")) == "broken"


def test_damaged_memory_of_probes_costs_a_probe(models: Path) -> None:
    (models / "m.gguf").write_bytes(b"GGUF")
    for content in ("{", '["of the version before"]'):
        (models / ".probes.json").write_text(content)
        assert probe.probe_model(models / "m.gguf", program("")) is None
        assert len(json.loads((models / ".probes.json").read_text())) == 1


@pytest.mark.slow
def test_the_tiny_model_really_decodes_and_a_truncated_one_does_not(tmp_path: Path) -> None:
    path = resolve("smollm2-135m-instruct", "answer").path
    printed, problem = probe.run_probe(path)
    assert problem is None
    assert "CPU" in printed
    broken = tmp_path / "broken.gguf"
    with path.open("rb") as whole:
        broken.write_bytes(whole.read(100_000))
    assert "local-rag models pull" in str(probe.run_probe(broken)[1])


@pytest.fixture
def indexed(documents: Path, run: Run) -> Path:
    assert run("index", "documents", "--profile", "tiny", "--context", "headings").exit_code == 0
    return documents.parent / ".local-rag"


@pytest.fixture
def quick_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a model of a few layers be measured where the test is about something else."""
    path = save_model(tmp_path / "quick.gguf", "llama")
    for role in ("CONTEXT", "ANSWER"):
        monkeypatch.setenv(f"LOCAL_RAG_{role}_MODEL", str(path))


@pytest.fixture
def results(run: Run) -> Results:
    """Run the command; return its results by name."""

    def doctor(*arguments: str) -> dict[str, dict[str, str]]:
        done = run("doctor", "--json", *arguments)
        found = {result["name"]: result for result in json.loads(done.stdout)}
        assert done.exit_code == int(any(result["severity"] == "failed" for result in found.values()))
        return found

    return doctor


@pytest.mark.slow
def test_a_whole_installation_passes(indexed: Path, results: Results) -> None:
    found = results()
    assert {name for name, result in found.items() if result["severity"] == "failed"} == set()
    wanted = {
        "platform",
        "Python",
        "packages",
        "extras",
        "llama.cpp",
        "offline",
        "cores",
        "memory",
        "context and answer model",
        "decoding",
    }
    assert wanted | {"embed model", "disk", "library", "file system", "integrity", "fingerprint"} == set(found)


@pytest.mark.usefixtures("quick_model")
def test_every_check_is_one_line(indexed: Path, run: Run) -> None:
    done = run("doctor")
    assert done.exit_code == 0
    assert all(line.startswith(("ok      ", "warning ")) for line in done.stdout.splitlines())


def test_missing_and_damaged_models_are_named_with_their_command(
    indexed: Path, results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = tmp_path / "models"
    shutil.copytree(default_models_directory() / "smollm2-135m-instruct", models / "smollm2-135m-instruct")
    (weights,) = models.glob("*/*.gguf")
    with weights.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last ^ 1]))
    monkeypatch.setenv("LOCAL_RAG_MODELS", str(models))
    monkeypatch.setenv("LOCAL_RAG_EMBED_MODEL", "bge-small-en-v1.5")
    found = results()
    assert "is damaged: its SHA-256" in found["context and answer model"]["message"]
    assert found["context and answer model"]["remedy"].startswith("local-rag models pull smollm2-135m-instruct")
    assert "is not pulled" in found["embed model"]["message"]
    assert found["embed model"]["remedy"].startswith("local-rag models pull bge-small-en-v1.5")


@pytest.mark.usefixtures("quick_model")
def test_a_damaged_library_fails(indexed: Path, results: Results) -> None:
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


@pytest.mark.usefixtures("quick_model")
def test_a_damaged_index_fails(indexed: Path, results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = next((indexed / "segments").rglob("vectors.npy"))
    vectors.chmod(0o600)
    vectors.write_bytes(vectors.read_bytes()[:40])
    assert results()["integrity"]["severity"] == "failed"
    # Nothing reads the folder's index where a search engine holds it.
    monkeypatch.setenv("LOCAL_RAG_SEARCH_ENGINE_ADDRESS", "qdrant:http://127.0.0.1:9/x")
    found = results()
    assert found["integrity"]["severity"] == "ok"
    assert found["cluster"]["remedy"] == "local-rag cluster check"


@pytest.mark.usefixtures("quick_model")
def test_an_index_made_otherwise_and_an_open_folder_are_noticed(
    indexed: Path, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexed.chmod(0o755)
    monkeypatch.setenv("LOCAL_RAG_CHUNKER", "fixed")
    found = results()
    assert found["library"]["remedy"] == f"chmod 700 {indexed}"
    assert "the chunker (auto then, fixed now)" in found["fingerprint"]["message"]


@NEEDS_LLAMA
@pytest.mark.usefixtures("quick_model")
def test_without_a_library_or_with_a_wrong_profile(
    tmp_path: Path, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert "makes one" in results("--profile", "tiny")["library"]["message"]
    assert list(Path().iterdir()) == [], "nothing is made"
    assert "Unknown profile 'huge'" in results("--profile", "huge")["settings"]["message"]


def test_the_module_runs_by_itself() -> None:
    done = subprocess.run([sys.executable, "-m", "local_rag.llama.probe"], capture_output=True, text=True, check=True)
    assert "CPU" in done.stdout


def test_sockets_that_whoever_started_it_left_open_are_named() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as left:
        left.bind(("", 0))
        left.set_inheritable(True)
        assert [way for way in open_ways() if way] == [
            f"a socket that was open before (0.0.0.0:{left.getsockname()[1]})"
        ]


HIDE = """
import importlib.abc, sys
class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "{name}":
            raise ModuleNotFoundError(name)
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "{name}" else find(name, *rest)
sys.meta_path.insert(0, Hidden())
from local_rag.cli.main import main
sys.argv = ["local-rag", "doctor"]
main()
"""


@pytest.mark.parametrize(("name", "package"), [("numpy", "numpy"), ("faiss", "faiss-cpu"), ("pydantic_settings", None)])
def test_a_missing_package_is_named_whatever_needs_it(name: str, package: str | None, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HIDE.format(name=name)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 1
    assert re.search(f"packages: missing: .*{package or name.replace('_', '-')}", done.stdout)
    assert done.stderr == ""


def test_outside_a_checkout_packages_are_installed_as_they_are_pinned() -> None:
    pinned = {"click": "8.1", "rich": "14"}
    found = checks.check_packages({"click": None, "rich": "14"}, pinned, in_checkout=False)
    assert shlex.split(found.remedy) == [sys.executable, "-m", "pip", "install", "click==8.1"]
    found = checks.check_packages({"click": "8.1", "rich": "13"}, pinned, in_checkout=False)
    assert shlex.split(found.remedy) == [sys.executable, "-m", "pip", "install", "rich==14"]


def test_an_extra_is_missing_if_one_of_its_packages_is() -> None:
    required = ["click", "click; extra == 'here'", 'click ; extra == "there"', "no-such-package>=1; extra == 'there'"]
    required += ["no-such-package; extra == 'dev'", "no-such-package-2; extra == 'there'"]
    assert missing_extras(required) == ["there"]
