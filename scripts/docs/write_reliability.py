"""Render docs/reliability.md from docs/measurements/reliability-*.json.

Each file holds a title, lines (sentences with figures), perhaps a table (header and rows), and the raw figures.
"""

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
_ORDER = ("crash", "soak", "inputs", "injection")


def main() -> None:
    """Write the page."""
    files = sorted((DOCS / "measurements").glob("reliability-*.json"), key=_place)
    sections = [_section(json.loads(path.read_text())) for path in files]
    names = ", ".join(f"`measurements/{path.name}`" for path in files)
    head = (
        "# Reliability\n\nWhat was done to local-rag to make it lose or leak something, and what came of it. This page "
        f"is written by `scripts/docs/write_reliability.py` from {names}, which the scripts that measured have "
        "written.\n"
    )
    (DOCS / "reliability.md").write_text("\n".join([head, *sections]))


def _place(path: Path) -> tuple[int, str]:
    name = path.stem.removeprefix("reliability-")
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)


def _section(measured: dict[str, Any]) -> str:
    parts = [f"## {measured['title']}\n", *(f"- {line}" for line in measured["lines"])]
    if table := measured.get("table"):
        parts += ["", _row(table["header"]), _row(["---"] * len(table["header"])), *map(_row, table["rows"])]
    return "\n".join(parts) + "\n"


def _row(cells: list[Any]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    main()
