"""A harbour of berths whose ropes can be asked for, and a model that is less sure of odd berths and says them wrong."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from local_rag.library import Library, Parts
from local_rag.llama.generator import Request
from tests.fakes import QUICK, FakeGenerator, generating
from tests.support import served

_BERTH = re.compile(r"How many ropes are kept at berth (\d+)")


def question(number: int) -> str:
    return f"How many ropes are kept at berth {number}?"


def _reply(prompt: str) -> str:
    asked = _BERTH.findall(prompt)
    return f"{int(asked[-1]) + 40} ropes are kept at berth {asked[-1]}." if asked else "Nobody knows."


class Wavering(FakeGenerator):
    """A generator that is surer of its answers about even berths."""

    def __init__(self) -> None:
        super().__init__(_reply, context_tokens=100_000)

    def log_probabilities(self, prefix: Sequence[int], suffix: Sequence[int]) -> np.ndarray:
        asked = _BERTH.findall(self._text(Request("", prefix, suffix, 1)))
        sure = 2.0 if asked and int(asked[-1]) % 2 == 0 else 0.3 if asked else -2.0
        probabilities = np.full(256, -30.0)
        probabilities[ord("Y")], probabilities[ord("N")] = -np.log1p(np.exp(-sure)), -np.log1p(np.exp(sure))
        return probabilities


def parts() -> Parts:
    return replace(QUICK, open_engine=generating(Wavering()))


def harbour(place: Path, berths: int = 24) -> Path:
    """Index a document for each berth, and return the folder of the library."""
    documents = place / "documents"
    (documents / "hidden").mkdir(parents=True)
    for number in range(berths):
        text = f"# Berth {number}\n\n{number + 40} ropes are kept at berth {number}.\n"
        (documents / f"berth-{number}.md").write_text(text)
    (documents / "hidden" / "rescue.md").write_text("# Rescue\n\nThe lifeboat Wilhelmina is moored at berth 3.\n")
    served.index(documents, place / "lib")
    return place / "lib"


def opened(folder: Path, **settings: bool) -> Library:
    return Library(folder, parts=parts(), profile="tiny", **settings)  # type: ignore[arg-type]
