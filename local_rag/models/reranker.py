"""Score question and passage together with a cross-encoder."""

import functools
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from local_rag.errors import ModelError
from local_rag.machine import physical_cores
from local_rag.models.embedder import tokenizer_of
from local_rag.models.measurements import TIMED_TEXT, recall, remember
from local_rag.models.onnx import Session
from local_rag.records import InstalledModel, Passage

ONNX_FILE = "model.onnx"
_TEXT = TIMED_TEXT * 8
_PAIRS = 16


class Reranker(Protocol):
    """What the pipeline needs of a reranker; `fused_weight` as in records.InstalledModel."""

    fused_weight: float

    @property
    def pairs_per_second(self) -> float:
        """Say how many pairs this machine scores in a second."""

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text; a higher one fits the question better."""


def pairs_per_second(path: Path, score: Callable[[str, list[str]], list[float]]) -> float:
    """Return how many pairs this machine scores in a second, as measured when a model was first asked on it.

    The processor's time is measured, which other programs do not change, so that the same question is always reranked
    the same way.
    """
    if isinstance(known := recall("reranking", path, version("onnxruntime")), float) and known > 0:
        return known
    score(_TEXT, [_TEXT])
    started = time.process_time()
    score(_TEXT, [_TEXT] * _PAIRS)
    found = _PAIRS * physical_cores() / (time.process_time() - started)
    remember("reranking", path, found, version("onnxruntime"))
    return found


class OnnxReranker:
    """Rerank with a cross-encoder in ONNX form on the CPU."""

    def __init__(self, model: InstalledModel, path: Path) -> None:
        self._session, self._path = Session(path, tokenizer_of(model), model.context_length), path
        self.fused_weight = model.fused_weight

    @functools.cached_property
    def pairs_per_second(self) -> float:
        """Measure how fast this machine is, where that is not known."""
        return pairs_per_second(self._path, self.score)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one raw logit for each text."""
        return [float(output.item()) for output in self._session.run([(question, text) for text in texts])]


class CrossEncoderReranker:
    """Rerank with a sentence-transformers cross-encoder on the CPU; `half` as for the embedder."""

    def __init__(self, model: InstalledModel, *, half: bool = True) -> None:
        import torch
        from sentence_transformers import CrossEncoder
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()
        try:
            # Raw logits: a sigmoid in half precision ties the best candidates.
            self.model = CrossEncoder(
                str(model.path),
                device="cpu",
                max_length=model.context_length,
                activation_fn=torch.nn.Identity(),
                local_files_only=True,
            )
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(
                f"The reranker in {model.path} cannot be loaded ({error}); "
                f"pull it again with `local-rag models pull {model.name}`."
            ) from None
        self.fused_weight = model.fused_weight
        self._half = half and torch.cpu._is_avx512_bf16_supported()
        self._path = model.path

    @functools.cached_property
    def pairs_per_second(self) -> float:
        """Measure how fast this machine is, where that is not known."""
        return pairs_per_second(self._path, self.score)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one raw logit for each text."""
        import torch

        if not texts:
            return []
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self._half):
            scores = self.model.predict([(question, text) for text in texts], batch_size=16, show_progress_bar=False)
        return [float(score) for score in scores]


def reranked_text(passage: Passage) -> str:
    """Return what a reranker reads of a passage."""
    return "\n".join(part for part in (passage.title, passage.context, passage.text) if part)
