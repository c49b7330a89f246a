"""Score question and passage together with a cross-encoder."""

import os
from collections.abc import Sequence
from typing import Protocol

from local_rag.errors import ModelError
from local_rag.records import InstalledModel


class Reranker(Protocol):
    """What the pipeline needs of a reranker."""

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text; a higher one fits the question better."""


class CrossEncoderReranker:
    """Rerank with a sentence-transformers cross-encoder on the CPU."""

    def __init__(self, model: InstalledModel) -> None:
        os.environ["HF_HUB_OFFLINE"] = "1"
        import torch
        from sentence_transformers import CrossEncoder
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()
        try:
            # Raw logits: a sigmoid in half precision ties the best candidates.
            self._model = CrossEncoder(
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
        self._half = torch.cpu._is_avx512_bf16_supported()

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one raw logit for each text."""
        import torch

        if not texts:
            return []
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self._half):
            scores = self._model.predict([(question, text) for text in texts], batch_size=16, show_progress_bar=False)
        return [float(score) for score in scores]
