"""docs/reliability.md, from docs/measurements/reliability-*.json.

Each file has a title, lines (sentences with figures), perhaps a table (header and rows) and the raw figures.
"""

from typing import Any

from scripts.docs.markdown import measured, prose, table

ORDER = ("crash", "soak", "inputs", "injection")
ROWS = 12  # of a table; the JSON has all
HEAD = """\
# Reliability

How we tried to make local-rag lose or leak something, and what happened. Written by `scripts/write_docs.py` from
`measurements/reliability-*.json`; do not edit it."""


def reliability_page() -> str:
    """Return docs/reliability.md."""
    sections = [part for name in ORDER for part in _section(f"reliability-{name}.json")]
    return "\n\n".join([HEAD, *sections]) + "\n"


def _section(file: str) -> list[str]:
    found = measured(file)
    parts = [f"## {found['title']}", "\n".join(prose(line, "- ") for line in found["lines"])]
    if "table" in found:
        header, rows = found["table"]["header"], found["table"]["rows"]
        parts.append(table(header, [_cells(row) for row in rows[:ROWS]]))
        if len(rows) > ROWS:
            parts.append(f"{len(rows) - ROWS} more rows are in [the JSON](measurements/{file}).")
    return parts


def _cells(row: list[Any]) -> list[str]:
    return [str(cell).replace("|", "\\|") for cell in row]
