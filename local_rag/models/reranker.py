"""Score question and passage together with a cross-encoder."""

import functools
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from local_rag.errors import ModelError
from local_rag.machine import physical_cores
from local_rag.model_records import InstalledModel
from local_rag.models.embedder import require_sentence_transformers, truncating_tokenizer
from local_rag.models.measurements import TIMED_TEXT, load_measurement, store_measurement
from local_rag.models.onnx.session import OnnxSession
from local_rag.records import Passage

_TEXT = TIMED_TEXT * 8
_PAIRS = 16


class Reranker(Protocol):
    """The interface of a reranker; `fused_weight` as in model_records.InstalledModel."""

    fused_weight: float

    @property
    def pairs_per_second(self) -> float:
        """Return how many pairs this machine scores per second."""

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score per text; higher fits the question better."""


def pairs_per_second(path: Path, score: Callable[[str, list[str]], object], build: str | None = None) -> float:
    """Return how many pairs this machine scores per second; measure it the first time a model is used with a build.

    CPU time is measured, because other programs do not change it: the same question is always reranked the same way.
    """
    build = build or version("onnxruntime")
    if isinstance(known := load_measurement("reranking", path, build), float) and known > 0:
        return known
    score(_TEXT, [_TEXT])
    started = time.process_time()
    score(_TEXT, [_TEXT] * _PAIRS)
    found = _PAIRS * physical_cores() / (time.process_time() - started)
    store_measurement("reranking", path, found, build)
    return found


class OnnxReranker:
    """Rerank with a cross-encoder in ONNX form on the CPU."""

    def __init__(self, model: InstalledModel, path: Path) -> None:
        self.session, self._path = OnnxSession(path, truncating_tokenizer(model)), path
        self.fused_weight = model.fused_weight

    @functools.cached_property
    def pairs_per_second(self) -> float:
        """Return how many pairs this machine scores per second."""
        return pairs_per_second(self._path, self.score)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one raw logit per text."""
        return [float(output.item()) for output in self.session.run([(question, text) for text in texts])]


class CrossEncoderReranker:
    """Rerank with a sentence-transformers cross-encoder on the CPU; `half` as for the embedder."""

    def __init__(self, model: InstalledModel, *, half: bool = True) -> None:
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
        self.fused_weight = model.fused_weight
        self._half = half and torch.cpu._is_avx512_bf16_supported()
        self._path = model.path

    @functools.cached_property
    def pairs_per_second(self) -> float:
        """Return how many pairs this machine scores per second."""
        return pairs_per_second(self._path, self.score)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one raw logit per text."""
        import torch

        if not texts:
            return []
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self._half):
            scores = self.model.predict([(question, text) for text in texts], batch_size=16, show_progress_bar=False)
        return [float(score) for score in scores]


def reranked_text(passage: Passage) -> str:
    """Return the text of a passage that is scored: title, what distinguishes its document, header of its table, text.

    The sentence by a model gains nothing here, as docs/how-it-works.md shows.
    """
    parts = (passage.title, passage.terms, passage.table_header, passage.text)
    return "\n".join(part for part in parts if part)
