"""A library made of a few texts by the real command line."""

from collections.abc import Mapping
from pathlib import Path

from tests.conftest import Run


def index_texts(folder: Path, texts: Mapping[str, str], run: Run) -> None:
    """Write texts below `folder`/documents and index them from the current directory with the tiny models."""
    for name, text in texts.items():
        path = folder / "documents" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    result = run("index", "documents", "--profile", "tiny", "--context", "headings")
    assert result.exit_code == 0, result.output
