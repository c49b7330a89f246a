"""Odd questions, terminals, variables and places to write to end in a result or in one sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.errors import DatasetError, LibraryError, QuestionError
from local_rag.evaluation.dataset import load_dataset, write_dataset
from local_rag.evaluation.evaluate import evaluate
from local_rag.settings import resolve_settings
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY

CHECKOUT = Path(__file__).parents[2]
QUICKLY = (
    "import sys; from local_rag.cli.main import main; from tests.fakes import EMBEDS_QUICKLY; main(EMBEDS_QUICKLY)"
)


@pytest.fixture
def indexed(documents: Path, run: Run) -> Path:
    (documents / "tokyo.md").write_text("# Ferry\n\nThe ferry leaves 東京 at seven, with 😀 and é on board.\n", "utf-8")
    assert run("index", "documents", "--profile", "tiny", "--context", "headings").exit_code == 0
    return documents


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    documents = [{"id": "a", "text": "The ferry leaves at seven."}]
    write_dataset(tmp_path / "set", documents, [{"question": "ferry", "golden": ["a"]}])
    return tmp_path / "set"


@pytest.mark.parametrize("command", ["search", "ask"])
def test_a_question_that_is_not_utf8_is_refused(indexed: Path, run: Run, command: str) -> None:
    result = run(command, os.fsdecode(b"caf\xe9"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "is not UTF-8" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    with Library(parts=EMBEDS_QUICKLY) as library, pytest.raises(QuestionError, match="not UTF-8"):
        library.search("\ud800")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems take no such name")
def test_a_folder_whose_name_is_not_utf8_is_refused(run: Run, documents: Path) -> None:
    folder = documents / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    result = run("index", str(folder), "--profile", "tiny", "--context", "none")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "is not UTF-8" in result.stderr


@pytest.mark.parametrize("flag", ["--top=1", "--json"])
@pytest.mark.slow
def test_a_terminal_that_lacks_characters_shows_them_escaped(indexed: Path, flag: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, "-c", QUICKLY, "search", "ferry 東京", flag]
    done = subprocess.run(command, capture_output=True, cwd=indexed.parent, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.decode("latin-1")
    if flag == "--json":
        shown = json.loads(shown)["passages"][0]["text"]
        assert shown.endswith("東京 at seven, with 😀 and é on board.")
    else:
        assert r"\u6771\u4eac at seven, with \ud83d\ude00 and é on board." in shown


def test_an_empty_variable_counts_as_not_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, documents: Path, run: Run
) -> None:
    for name in ("PROFILE", "CONTEXT", "PASSAGES"):
        monkeypatch.setenv(f"LOCAL_RAG_{name}", "")
    settings = resolve_settings(tmp_path)
    assert (settings.profile, settings.context, settings.passages) == ("starter", "auto", 20)
    assert run("index", "documents", "--profile", "tiny", "--context", "headings").exit_code == 0
    assert run("search", "boat").exit_code == 0, "what the library was indexed with is not overruled"


def test_what_is_removed_needs_no_models(
    indexed: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RAG_MODELS", str(tmp_path / "none"))
    would = json.loads(run("remove", "documents/boat.txt", "--dry-run", "--json").stdout)
    assert would["documents"] == [str(indexed / "boat.txt")]
    assert run("remove", "documents/boat.txt").exit_code == 0, "nor does removing need one"


@pytest.mark.parametrize("flag", ["--json", "--plot"])
def test_a_report_that_cannot_be_written_is_refused_before_the_work(dataset: Path, run: Run, flag: str) -> None:
    for place in ("missing/report.png", str(dataset)):
        result = run("eval", dataset, "--profile", "tiny", "--context", "none", flag, place)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "cannot be written" in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
    assert not (dataset / ".local-rag").exists()


@pytest.mark.parametrize("place", ["report.json", "-"])
@pytest.mark.slow
def test_a_failing_plot_loses_no_report(dataset: Path, run: Run, place: str) -> None:
    result = run("eval", dataset, "--profile", "tiny", "--context", "none", "--json", place, "--plot", "plot.poem")
    assert result.exit_code == 1
    assert "plot.poem" in result.stderr
    assert json.loads(result.stdout if place == "-" else Path(place).read_text())["questions"] == 1
    assert place == "-" or "nDCG@10" in result.stdout


@pytest.mark.parametrize("name", ["documents", "questions"])
def test_a_dataset_with_half_a_character_is_named(dataset: Path, name: str) -> None:
    path = dataset / f"{name}.jsonl"
    path.write_text(path.read_text().replace("erry", r"erry \ud800"))
    with pytest.raises(DatasetError, match=rf"{name}.jsonl:1 is malformed .*surrogates"):
        load_dataset(dataset)


def test_a_dataset_is_not_measured_in_a_library_of_documents(indexed: Path, tmp_path: Path) -> None:
    write_dataset(tmp_path / "set", [{"id": "a", "text": "The ferry."}], [{"question": "ferry", "golden": ["a"]}])
    with Library(parts=EMBEDS_QUICKLY) as library:
        before = library.status()
        with pytest.raises(LibraryError, match=r"contains your own documents.*`--library`"):
            evaluate(load_dataset(tmp_path / "set"), library, part="all", rerank=False, progress=lambda _: None)
        assert library.status() == before
        assert library.search("boat harbour")
