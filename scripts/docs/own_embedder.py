"""The section of docs/results.md about an embedder that puts contexts into the vectors."""

from collections.abc import Iterator
from typing import Any

from scripts.docs.markdown import prose, table

_SMALL = 0.01  # a p below it is not given


def own_embedder(reports: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what was tried, and a table of fused recall@5: a row for each set, a column for each way."""
    (report,) = reports
    yield "## An embedder of our own, not adopted"
    yield from map(prose, report["note"])
    rows = [
        [f"{name}, {one['questions']}", *(_recall(one["fused"][way]) for way in report["ways"])]
        for name, one in report["sets"].items()
    ]
    yield table(["set, questions", *report["ways"]], rows)


def _recall(found: dict[str, float] | None) -> str:
    if found is None:
        return "-"
    shown = f"{found['recall@5']:.1f}"
    if "p" not in found:
        return shown
    p = f"p < {_SMALL}" if found["p"] < _SMALL else f"p = {found['p']:.2f}"
    return f"{shown} {found['difference']:+.1f} ({p})"
