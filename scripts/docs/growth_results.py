"""Write the part of docs/results.md on large libraries, for write_results.py.

It reads grow-*.json (grow.py), near.json (near.py) and search-while-indexing.json (the script of that name).
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from scripts.docs.tables import table

_GROWTH = {
    "chunks": "chunks",
    "index_seconds": "index s",
    "index_peak_mb": "peak MB",
    "unchanged_seconds": "unchanged s",
    "one_change_seconds": "one change s",
    "one_removal_seconds": "one removal s",
    "open_seconds": "open s",
    "search_ms": "search ms",
    "resident_mb": "memory MB",
    "same_order": "same order",
}


def write_growth(measurements: Path) -> Iterator[str]:
    """Yield what libraries of several sizes cost to keep and to search."""
    if reports := [json.loads(path.read_text()) for path in measurements.glob("grow-*.json")]:
        yield "## As a library grows"
        yield (
            "Varied copies of the pages in `corpus/`, with headings, vectors that cost nothing, 2 cores: each step is "
            "a process of its own, whose start counts. The keyword order is compared with that of a library indexed "
            "from nothing, where that was waited for."
        )
        reports.sort(key=lambda one: int(one["chunks"]))
        yield table(list(_GROWTH.values()), [[_figure(one[name]) for name in _GROWTH] for one in reports])
        yield from (one["note"] for one in reports if "note" in one)
        if (measurements / "grow.png").exists():
            yield "![Each figure against the number of chunks](measurements/grow.png)"
    if (path := measurements / "near.json").exists():
        yield from _near(json.loads(path.read_text()))
    if (path := measurements / "search-while-indexing.json").exists():
        yield from _searching(json.loads(path.read_text()))


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 2):,}"


def _near(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield how FAISS finds the nearest of many vectors."""
    yield "### Many vectors"
    yield (
        "One question against the vectors of one segment, 150 wanted, one thread: vectors of all-MiniLM-L6-v2 of three "
        "sets' passages, and beyond their number jittered copies, asked by these sets' questions. Recall is the share "
        "of what exact search finds; all but `exact` compare their candidates exactly at the end. Codes of pairs of "
        "numbers in 4 bits with 8 times as many candidates are what is used, from 50,000 vectors on."
    )
    cells = [
        [
            f"{row['rows']:,}",
            row["index"],
            f"{100 * row['recall']:.2f}",
            f"{100 * row.get('lowest_recall', 1):.0f}",
            f"{row['ms']:.1f}",
            _figure(row.get("build_seconds")),
        ]
        for row in rows
    ]
    yield table(["vectors", "index", "recall@150, %", "worst question, %", "ms", "build s"], cells)


def _searching(report: dict[str, Any]) -> Iterator[str]:
    """Yield how searches fare while the index is published."""
    yield "### Searching while indexing"
    yield (
        f"{report['chunks']:,} chunks, nothing reranked; meanwhile the command indexes revision after revision of all "
        "documents. `mixed` counts searches whose passages are of no single state of the library."
    )
    names = ("searches", "median_ms", "p95_ms", "longest_ms", "errors", "mixed")
    rows = [
        [title, *(_figure(report[part][name]) for name in names)]
        for title, part in (("at rest", "rest"), ("while `index` runs", "while_indexing"))
    ]
    yield table(["", "searches", "median ms", "95 % ms", "longest ms", "errors", "mixed"], rows)
