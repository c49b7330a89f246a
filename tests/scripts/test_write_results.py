"""scripts/docs/write_results.py and the two scripts that leave it JSON, on small inputs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from local_rag.evaluation.metrics import METRICS

CHECKOUT = Path(__file__).parents[2]


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
        "seconds_per_question": {"fuse": 0.001, "total": 0.0125},
        "per_question": [{"question": str(n), "golden": 1, "ranks": {"fused": [rank]}} for n in range(6)],
    }


def run(module: str, *arguments: str | Path) -> str:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=CHECKOUT).stdout


def test_results_come_from_the_measurements(tmp_path: Path) -> None:
    (tmp_path / "eval-tides-none.json").write_text(json.dumps(report("none", 7)))
    (tmp_path / "eval-tides-headings.json").write_text(json.dumps(report("headings", 1)))
    sizes = ("--sizes", "200", "300", "--keyword-limit", "200")
    run("scripts.benchmarks", "search", *sizes, "--json", tmp_path / "search-latency.json")
    page = tmp_path / "docs" / "results.md"
    run("scripts.docs.write_results", "--measurements", tmp_path, "--output", page)
    text = page.read_text()
    assert "6 questions, 1,234 chunks of 2 documents." in text
    none, headings = text.index("| tiny, none | fused |"), text.index("| tiny, headings | fused |")
    assert none < headings
    assert "| 76.90 |" in text
    assert "| tiny, headings | tiny, none | fused | +100.00 (p = 0.031) |" in text
    assert "| tiny, headings | 1.0 | 12.5 |" in text
    measured = json.loads((tmp_path / "search-latency.json").read_text())["sizes"]
    assert [set(row["milliseconds"]) for row in measured] == [
        {"dense", "keyword", "fuse", "total"},
        {"dense", "fuse", "total"},
    ]
    assert "| 300 |" in text
