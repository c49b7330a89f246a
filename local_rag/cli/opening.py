"""Open a library for a command."""

from pathlib import Path
from typing import Any

import click

from local_rag.library import Library, Parts


def current_parts() -> Parts:
    """Return what libraries are put together from: what the command line was started with, or the usual."""
    return click.get_current_context().obj.parts or Parts()


def open_library(folder: Path, **settings: Any) -> Library:
    """Open a library under the settings that flags give."""
    return Library(folder, parts=current_parts(), **settings)
