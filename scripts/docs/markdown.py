"""Markdown for the generated pages, and the measurements that they show."""

import json
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

MEASUREMENTS = Path(__file__).parents[2] / "docs" / "measurements"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows))


def prose(text: str, bullet: str = "") -> str:
    """Wrap a text; a bullet starts it where it is an item of a list."""
    return textwrap.fill(text, 120, initial_indent=bullet, subsequent_indent=" " * len(bullet), break_on_hyphens=False)


def fill(page: str, name: str, text: str) -> str:
    """Put a text between the two comments of its name, which must be in the page once."""
    pattern = rf"(<!-- {name}: .*? -->\n).*?(<!-- end of {name} -->)"
    filled, count = re.subn(pattern, lambda found: f"{found[1]}{text}\n\n{found[2]}", page, flags=re.DOTALL)
    if count != 1:
        sys.exit(f"The page has {count} pairs of comments for `{name}` instead of one; restore them.")
    return filled


def measured(pattern: str, folder: Path = MEASUREMENTS) -> Any:
    """Read the first measurement whose file name matches a pattern."""
    path = min(folder.glob(pattern), default=None)
    if path is None:
        sys.exit(f"{folder} has no {pattern}; restore it, or measure it again.")
    return json.loads(path.read_text(encoding="utf-8"))
