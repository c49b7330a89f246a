"""The runs of a text with what marks them, in one record for all formats, and how they are written.

What is raised or lowered becomes superscripts and subscripts, what is struck out stands between `~~`, and what is
hidden is left out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
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
    hidden: bool = False


def write_runs(runs: Iterable[Run], left_out: Counter[str] | None = None) -> str:
    """Write runs as text; those that are marked alike are written together, whatever else divides them.

    The words that are hidden are counted in `left_out`.
    """
    pieces = []
    for struck, some in groupby(_shown(runs, left_out), key=lambda run: run.struck):
        text = "".join(_moved("".join(run.text for run in part), raised) for raised, part in groupby(some, key=_raised))
        pieces.append(strike(text) if struck else text)
    return "".join(pieces)


def _shown(runs: Iterable[Run], left_out: Counter[str] | None) -> Iterator[Run]:
    for hidden, some in groupby(runs, key=lambda run: run.hidden):
        if not hidden:
            yield from some
        elif left_out is not None:
            left_out["hidden word*"] += len("".join(run.text for run in some).split())


def _raised(run: Run) -> int:
    return run.raised


def _moved(text: str, raised: int) -> str:
    return superscript(text) if raised > 0 else subscript(text) if raised < 0 else text
