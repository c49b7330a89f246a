"""Draw figures with matplotlib, which only plots need."""

from pathlib import Path
from typing import Any

from local_rag.errors import DatasetError


def new_figure(size: tuple[float, float]) -> Any:
    """Return an empty figure of this size in inches; raise DatasetError where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise DatasetError("--plot needs matplotlib; install it with `pip install matplotlib`.") from None
    return Figure(figsize=size, layout="constrained")


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format that the file's name says; raise DatasetError where that cannot be done."""
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise DatasetError(f"The plot cannot be written to {path} ({error}); name a .png, .svg or .pdf.") from None
