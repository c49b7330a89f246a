"""Draw plots with matplotlib, which nothing else needs."""

from pathlib import Path
from typing import Any

from local_rag.errors import DatasetError


def new_figure(size: tuple[float, float]) -> Any:
    """Return an empty figure of this size in inches; raise DatasetError if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise DatasetError("--plot needs matplotlib; install it with `pip install matplotlib`.") from None
    return Figure(figsize=size, layout="constrained")


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format of the file's suffix; raise DatasetError if that fails."""
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise DatasetError(f"The plot cannot be written to {path} ({error}); name a .png, .svg or .pdf file.") from None
