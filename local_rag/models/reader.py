"""Read a question and passages together: how relevant each passage is, whether it answers, and which sentences do."""

import functools
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import numpy as np

from local_rag.errors import ModelError
from local_rag.machine import physical_cores
from local_rag.model_records import InstalledModel
from local_rag.models.embedder import is_half_faster, require_sentence_transformers, truncating_tokenizer
from local_rag.models.models_folder import TIMED_TEXT, load_measurement, store_measurement
from local_rag.models.onnx_session import OnnxSession
from local_rag.passage_records import Passage

_TEXT = TIMED_TEXT * 8
_PAIRS = 16
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
    """The interface of a reader; `fused_weight` as in records.InstalledModel."""

    fused_weight: float

    @property
    def pairs_per_second(self) -> float:
        """Return how many passages this machine reads per second."""

    def score(self, question: str, passages: Sequence[str]) -> Sequence[Reading]:
        """Return what each passage says about the question."""


class KeepingReader(ABC):
    """Keep the readings of the last passages: what was ranked is read again for its sentences.

    `weights` is the file or folder whose speed is measured, once with each `build` of what runs it.
    """

    def __init__(self, model: InstalledModel, weights: Path, build: str | None = None) -> None:
        self.fused_weight = model.fused_weight
        self._weights, self._build = weights, build or version("onnxruntime")
        self._kept = OrderedDict[tuple[str, str], Reading]()

    @functools.cached_property
    def pairs_per_second(self) -> float:
        """Return how many passages this machine reads per second; measure it the first time a model is used.

        CPU time is measured, because other programs do not change it: the same question is always ranked the same way.
        """
        if isinstance(known := load_measurement("reranking", self._weights, self._build), float) and known > 0:
            return known
        self.read(_TEXT, [_TEXT])
        started = time.process_time()
        self.read(_TEXT, [_TEXT] * _PAIRS)
        found = _PAIRS * physical_cores() / (time.process_time() - started)
        store_measurement("reranking", self._weights, found, self._build)
        return found

    @abstractmethod
    def read(self, question: str, texts: Sequence[str]) -> Sequence[Reading]:
        """Read passages that are not kept."""

    def score(self, question: str, passages: Sequence[str]) -> list[Reading]:
        """Return what each passage says about the question."""
        found = {text: self._kept[question, text] for text in passages if (question, text) in self._kept}
        new = [text for text in dict.fromkeys(passages) if text not in found]
        found |= zip(new, self.read(question, new), strict=True)
        self._kept |= {(question, text): reading for text, reading in found.items()}
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return [found[text] for text in passages]


class OnnxReader(KeepingReader):
    """Read with an ONNX model on the CPU: one of three outputs, or a cross-encoder, which has one."""

    def __init__(self, model: InstalledModel, path: Path) -> None:
        super().__init__(model, path)
        self._session = OnnxSession(path, truncating_tokenizer(model))
        self._reads_tokens = self._session.outputs == ("relevance", "answers", "tokens")

    def read(self, question: str, texts: Sequence[str]) -> list[Reading]:
        """Read passages that are not kept."""
        readings = list[Reading]()
        for encoding, outputs in self._session.run([(question, text) for text in texts]):
            if not self._reads_tokens:
                readings.append(PassageReading(float(outputs[0].item())))
                continue
            relevance, answers, tokens = outputs
            inside = np.array([part == 1 for part in encoding.sequence_ids])
            places = np.array(encoding.offsets)[inside]
            readings.append(
                TokenReading(float(relevance.item()), float(answers.item()), places[:, 0], places[:, 1], tokens[inside])
            )
        return readings


class CrossEncoderReader(KeepingReader):
    """Read with a sentence-transformers cross-encoder on the CPU; `half` as for the embedder."""

    def __init__(self, model: InstalledModel, *, half: bool = True) -> None:
        super().__init__(model, model.path)
        require_sentence_transformers(model)
        import torch
        from sentence_transformers import CrossEncoder
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()
        try:
            # Use raw logits, because a sigmoid in half precision makes the best candidates equal.
            self.model = CrossEncoder(
                str(model.path),
                device="cpu",
                max_length=model.context_length,
                activation_fn=torch.nn.Identity(),
                local_files_only=True,
            )
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(
                f"Cannot load the reranker in {model.path} ({error}); "
                f"pull it again with `local-rag models pull {model.name}`."
            ) from None
        self._half = half and is_half_faster()

    def read(self, question: str, texts: Sequence[str]) -> list[Reading]:
        """Read passages that are not kept."""
        import torch

        if not texts:
            return []
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self._half):
            scores = self.model.predict([(question, text) for text in texts], batch_size=16, show_progress_bar=False)
        return [PassageReading(float(score)) for score in scores]


def reranked_text(passage: Passage) -> str:
    """Return the text of a passage that is scored: title, what distinguishes its document, header of its table, text.

    The sentence by a model gains nothing here, as docs/how-it-works.md shows.
    """
    parts = (" ".join(passage.names), passage.title, passage.terms, passage.table_header, passage.text)
    return "\n".join(part for part in parts if part)
