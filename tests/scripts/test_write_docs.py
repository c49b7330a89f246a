"""scripts/write_docs.py: what is generated in the documentation is what the program and the measurements say today."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local_rag.evaluation.answer_figures import summarize_answers
from local_rag.evaluation.ranking_metrics import METRICS
from scripts import write_docs
from scripts.docs.results import answers, results_page, size_sections

CHECKOUT = Path(__file__).parents[2]


def copy_docs(folder: Path) -> Path:
    shutil.copy(CHECKOUT / "README.md", folder)
    shutil.copytree(CHECKOUT / "docs", folder / "docs", ignore=shutil.ignore_patterns("measurements"))
    return folder


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        write_docs.main(arguments)
    return int(ended.value.code or 0)


@pytest.mark.slow
def test_nothing_is_stale() -> None:
    assert [path for path, _ in write_docs.stale_pages(CHECKOUT)] == []


def test_the_command_runs_from_a_checkout() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/write_docs.py", "--help"], capture_output=True, text=True, check=False, cwd=CHECKOUT
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_what_is_stale_is_named_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = copy_docs(tmp_path)
    (root / "docs" / "commands.md").unlink()
    readme = root / "README.md"
    readme.write_text(readme.read_text().replace("On two cores without a GPU", "On one core"))
    assert run("--check", "--root", str(root)) == 1
    command = "run `.venv/bin/python scripts/write_docs.py`."
    named = [f"docs/commands.md is out of date; {command}", f"README.md is out of date; {command}"]
    assert capsys.readouterr().out.splitlines() == named
    assert not (root / "docs" / "commands.md").exists()
    assert run("--root", str(root)) == 0
    assert readme.read_text() == (CHECKOUT / "README.md").read_text()
    assert (root / "docs" / "commands.md").read_text() == (CHECKOUT / "docs" / "commands.md").read_text()


@pytest.mark.slow
def test_a_page_without_its_comments_is_refused(tmp_path: Path) -> None:
    page = copy_docs(tmp_path) / "docs" / "engine.md"
    page.write_text(page.read_text().replace("<!-- end of speed -->", ""))
    with pytest.raises(SystemExit, match="The page has 0 pairs of comments for `speed`"):
        write_docs.main(["--root", str(tmp_path)])


def report(context: str, rank: int) -> dict[str, Any]:
    return {
        "dataset": "tides",
        "part": "all",
        "questions": 6,
        "documents": 2,
        "chunks": 1234,
        "profile": "tiny",
        "context": context,
        "stages": {"fused": dict.fromkeys(METRICS, 76.9)},
        "intervals": {"fused": {metric: [70.0, 80.0] for metric in METRICS}},
        "per_question": [{"question": str(n), "golden": 1, "ranks": {"fused": [rank]}} for n in range(6)],
    }


def test_answers_come_from_a_report_of_eval(tmp_path: Path) -> None:
    names = ("right", "quoted_right", "facts_shown", "cited_right", "flagged")
    plain = dict.fromkeys(names, False) | {"golden_documents": 1, "read_documents": 1, "seconds": 2.0, "tokens": 1234}

    def row(outcome: str, probability: float, **fields: Any) -> dict[str, Any]:
        told = {"outcome": outcome, "answered": outcome == "answered", "probability": probability}
        return plain | told | {"answerable": True, "mistake": None} | fields

    rows = [row("answered", 1.0, right=True, facts_shown=True), row("answered", 1.0, mistake="incomplete")]
    rows += [row("quoted", 0.1, quoted_right=True), row("answered", 1.0, answerable=False)]
    rows += [row("refused", 0.0), row("refused", 0.0, answerable=False)]
    report = {"note": "Measured.", "sets": {"tides": {"answers": summarize_answers(rows, 6)}}}
    (tmp_path / "answers.json").write_text(json.dumps(report))
    text = answers(tmp_path)
    assert text.startswith("Measured.")
    assert (
        "| tides: 4 answerable, 2 not | 1 (5 to 70 %) | 1 (5 to 70 %) | 1 (5 to 70 %) | 1, 1 of them right | 1 |"
        in text
    )


@pytest.mark.slow
def test_results_come_from_the_measurements(tmp_path: Path) -> None:
    (tmp_path / "eval-tides-headings.json").write_text(json.dumps(report("headings", 11)))
    (tmp_path / "eval-tides-llm.json").write_text(json.dumps(report("llm", 1)))
    sizes = ("--sizes", "200", "300", "--keyword-limit", "200", "--json", str(tmp_path / "search-latency.json"))
    command = [sys.executable, "-m", "scripts.benchmarks", "search", *sizes]
    subprocess.run(command, capture_output=True, check=True, cwd=CHECKOUT)
    text = results_page(tmp_path)
    headings = text.index("| tides | tiny, headings | 6 | fused | 76.9 |")
    llm = text.index("| tides | tiny, llm | 6 | fused | 76.9 |")
    assert headings < llm
    assert "| 70.0 to 80.0 | +100.0 (p = 0.03) |" in text
    measured = json.loads((tmp_path / "search-latency.json").read_text())["sizes"]
    assert [set(row["milliseconds"]) for row in measured] == [
        {"dense", "keyword", "fuse", "total"},
        {"dense", "fuse", "total"},
    ]
    assert "| 300 |" in "\n".join(size_sections(tmp_path))
