"""Read the rows of Markdown tables: their cells between pipes, of which the outer two may be missing."""

import re

CELL_END = re.compile(r"(?<!\\)\|")


def cells_of(row: str) -> list[str]:
    """Return the cells of a row of Markdown, each on one line."""
    text = row.strip().removeprefix("|")
    inner = text[:-1] if text.endswith("|") and not text.endswith("\\|") else text
    return [" ".join(cell.replace("\\|", "|").split()) for cell in CELL_END.split(inner)]
