"""The runs of a text with what marks them, in one record for all formats, and how they are written.

What is raised or lowered becomes superscripts and subscripts, and what is struck out stands between `~~`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from local_rag.reading.converters.notation import subscript, superscript
from local_rag.text.struck import strike


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of text; `raised` is 1 for a superscript and -1 for a subscript."""

    text: str
    raised: int = 0
    struck: bool = False


def write_runs(runs: Iterable[Run]) -> str:
    """Write runs as text; those that are marked alike are written together, whatever else divides them."""
    pieces = []
    for struck, some in groupby(runs, key=lambda run: run.struck):
        text = "".join(_moved("".join(run.text for run in part), raised) for raised, part in groupby(some, key=_raised))
        pieces.append(strike(text) if struck else text)
    return "".join(pieces)


def _raised(run: Run) -> int:
    return run.raised


def _moved(text: str, raised: int) -> str:
    return superscript(text) if raised > 0 else subscript(text) if raised < 0 else text
