"""Read a question and passages together: how relevant each passage is, whether it answers, and which sentences do."""

import functools
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np

from local_rag.model_records import InstalledModel
from local_rag.models.onnx.session import OnnxSession
from local_rag.models.reranker import Reranker, pairs_per_second

_KEPT = 256  # readings of the last passages: what is ranked is then read for its sentences


class Reading(Protocol):
    """What a reader says of a passage, as logits: its relevance, and whether it answers the question."""

    @property
    def relevance(self) -> float:
        """Return the logit that orders passages."""

    @property
    def answers(self) -> float:
        """Return the logit that the passage answers the question."""

    def sentence(self, start: int, end: int) -> float | None:
        """Return the logit of the text between two offsets; None if the passage was cut off before it."""


@dataclass(frozen=True, slots=True)
class PassageReading:
    """The reading of a model that only scores passages: a sentence is as likely as its passage."""

    relevance: float

    @property
    def answers(self) -> float:
        """Return the same logit."""
        return self.relevance

    def sentence(self, _start: int, _end: int) -> float:
        """Return the same logit."""
        return self.relevance


@dataclass(frozen=True, slots=True, eq=False)
class TokenReading:
    """A reading with one logit for each token; `starts` and `ends` are the character offsets of the tokens."""

    relevance: float
    answers: float
    starts: np.ndarray
    ends: np.ndarray
    tokens: np.ndarray

    def sentence(self, start: int, end: int) -> float | None:
        """Return the mean logit of the tokens between two offsets; None if the passage was cut off before them."""
        if not len(self.ends) or start >= self.ends[-1]:
            return None
        first, last = np.searchsorted(self.ends, start, side="right"), np.searchsorted(self.starts, end)
        return float(self.tokens[first:last].mean() if first < last else self.tokens.min())


class Reader(Protocol):
    """The interface of a reader; `fused_weight` as in model_records.InstalledModel."""

    fused_weight: float

    @property
    def pairs_per_second(self) -> float:
        """Return how many passages this machine reads per second."""

    def score(self, question: str, passages: Sequence[str]) -> Sequence[Reading]:
        """Return what each passage says about the question."""


R = TypeVar("R", bound=Reading)


class _KeepingReader(ABC, Generic[R]):
    """Keep the readings of the last passages: what was ranked is read again for its sentences."""

    def __init__(self, fused_weight: float) -> None:
        self.fused_weight = fused_weight
        self._kept = OrderedDict[tuple[str, str], R]()

    @abstractmethod
    def _read(self, question: str, texts: Sequence[str]) -> Sequence[R]:
        """Read passages that are not kept."""

    def score(self, question: str, passages: Sequence[str]) -> list[R]:
        """Return what each passage says about the question."""
        found = {text: self._kept[question, text] for text in passages if (question, text) in self._kept}
        new = [text for text in dict.fromkeys(passages) if text not in found]
        found |= zip(new, self._read(question, new), strict=True)
        self._kept |= {(question, text): reading for text, reading in found.items()}
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return [found[text] for text in passages]


class OnnxReader(_KeepingReader[TokenReading]):
    """Read with an ONNX model of three outputs on the CPU."""

    OUTPUTS = ("relevance", "answers", "tokens")

    def __init__(self, model: InstalledModel, path: Path, session: OnnxSession) -> None:
        super().__init__(model.fused_weight)
        self._session, self._path = session, path

    @functools.cached_property
    def pairs_per_second(self) -> float:
        """Return how many passages this machine reads per second."""
        return pairs_per_second(self._path, self._read)

    def _read(self, question: str, texts: Sequence[str]) -> list[TokenReading]:
        readings = []
        for encoding, (relevance, answers, tokens) in self._session.run_all([(question, text) for text in texts]):
            inside = np.array([part == 1 for part in encoding.sequence_ids])
            places = np.array(encoding.offsets)[inside]
            readings.append(
                TokenReading(float(relevance.item()), float(answers.item()), places[:, 0], places[:, 1], tokens[inside])
            )
        return readings


class RerankerReader(_KeepingReader[PassageReading]):
    """Read with a cross-encoder, which has one score for a passage and none for its sentences."""

    def __init__(self, reranker: Reranker) -> None:
        super().__init__(reranker.fused_weight)
        self._reranker = reranker

    @property
    def pairs_per_second(self) -> float:
        """Return how many passages this machine reads per second."""
        return self._reranker.pairs_per_second

    def _read(self, question: str, texts: Sequence[str]) -> list[PassageReading]:
        return [PassageReading(score) for score in self._reranker.score(question, texts)]
