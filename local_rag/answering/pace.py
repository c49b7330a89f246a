"""How fast the answer model reads and writes on this machine, as far as its earlier answers tell."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

from local_rag.llama.generator import Counts
from local_rag.llama.native import llama_build
from local_rag.model_records import InstalledModel
from local_rag.models.models_folder import load_measurement, store_measurement

_PROMPT_TOKENS = 80  # beside the sources: the question twice, the request and its frame; the rest is kept
_ANSWER_TOKENS = 25  # of most answers
_FEWEST_READ, _FEWEST_WRITTEN = 64, 4  # tokens that tell something
_NAME = "pace"
_CHANGED = 0.1  # of a rate: less is not stored again


@dataclass(frozen=True, slots=True)
class Rates:
    """Tokens per second that are read and written, at first those of a slow machine."""

    read: float = 40.0
    written: float = 10.0


class Pace:
    """Measure the rates of a model while it works, beginning with those `known`; `keep` stores those that changed."""

    def __init__(self, known: Any = None, keep: Callable[[dict[str, float]], None] = lambda _rates: None) -> None:
        try:
            self.rates = Rates(**known) if known else Rates()
        except TypeError:  # stored by another version
            self.rates = Rates()
        self._kept, self._keep = self.rates, keep

    @property
    def is_known(self) -> bool:
        """Return whether anything was measured."""
        return self.rates != Rates()

    def tokens_in(self, seconds: float) -> int:
        """Return how many tokens of sources can be read in a time that is to be enough for the answer too."""
        reading = seconds - _ANSWER_TOKENS / self.rates.written
        return int(max(0.0, reading) * self.rates.read) - _PROMPT_TOKENS

    def seconds_for(self, tokens: int) -> float:
        """Return how long it takes to read so many tokens of sources and to answer from them."""
        return (tokens + _PROMPT_TOKENS) / self.rates.read + _ANSWER_TOKENS / self.rates.written

    @contextmanager
    def measuring(self, counts: Counts) -> Iterator[None]:
        """Learn from what is read and written inside the context."""
        before, started = replace(counts), perf_counter()
        yield
        seconds = perf_counter() - started
        read, written = counts.evaluated - before.evaluated, counts.generated - before.generated
        if read >= _FEWEST_READ and not written:
            self._learn("read", read / seconds)
        elif written >= _FEWEST_WRITTEN and read < _FEWEST_READ:
            self._learn("written", written / seconds)

    def _learn(self, name: str, rate: float) -> None:
        """Take the mean with what was known: the first time, a model is still being read from the disk."""
        before = getattr(self.rates, name)
        found = replace(self.rates, **{name: rate if before == getattr(Rates(), name) else (before + rate) / 2})
        self.rates = found
        changes = zip(asdict(found).values(), asdict(self._kept).values(), strict=True)
        if any(abs(new - old) > _CHANGED * old for new, old in changes):
            self._kept = found
            self._keep(asdict(found))


def pace_of(model: InstalledModel) -> Pace:
    """Return the pace of an answer model, which is stored with its file; that of an engine elsewhere is not stored."""
    if not model.path.is_file():
        return Pace()
    build = llama_build()
    known = load_measurement(_NAME, model.path, build)
    return Pace(known, lambda rates: store_measurement(_NAME, model.path, rates, build))
