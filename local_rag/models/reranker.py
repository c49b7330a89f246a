"""Score question and passage together with a cross-encoder."""

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from local_rag.errors import ModelError
from local_rag.machine import physical_cores
from local_rag.models.embedder import tokenizer_of
from local_rag.records import InstalledModel

ONNX_FILE = "model.onnx"
_FIRST_ROUND = 16


class Reranker(Protocol):
    """What the pipeline needs of a reranker; `fused_weight` as in records.InstalledModel."""

    fused_weight: float

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text; a higher one fits the question better."""


def load_reranker(model: InstalledModel) -> Reranker:
    """Load a reranker: onnxruntime where the folder holds an ONNX model, else sentence-transformers."""
    return OnnxReranker(model) if (model.path / ONNX_FILE).is_file() else CrossEncoderReranker(model)


def score_within(
    seconds: float,
    reranker: Reranker,
    question: str,
    texts: Sequence[str],
    *,
    clock: Callable[[], float] = perf_counter,
) -> list[float]:
    """Score the first texts, as many as fit the time on this machine, and at least the first sixteen.

    The number doubles as long as the next round is expected to end in time: a fast machine scores them all, and the
    same machine scores the same number however its speed varies a little.
    """
    scores: list[float] = []
    started = clock()
    while len(scores) < len(texts):
        end = min(len(texts), max(_FIRST_ROUND, 2 * len(scores)))
        if scores and (clock() - started) / len(scores) * end > seconds:
            break
        scores += reranker.score(question, texts[len(scores) : end])
    return scores


class OnnxReranker:
    """Rerank with a cross-encoder in ONNX form on the CPU.

    Every pair is a run of its own, on as many threads as there are cores. That measured a sixth faster than batches of
    like length; nothing is padded, and as int8 activations have one scale a run, the score of a passage does not depend
    on which others it is scored with.
    """

    def __init__(self, model: InstalledModel) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors, which are raised as well
        try:
            self._session = onnxruntime.InferenceSession(
                str(model.path / ONNX_FILE), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # noqa: BLE001  the classes that onnxruntime raises have no common name
            raise ModelError(
                f"The reranker in {model.path} cannot be loaded ({error}); "
                f"restore it, or check it with `local-rag models verify {model.name}`."
            ) from None
        self.fused_weight = model.fused_weight
        self._tokenizer = copy.deepcopy(tokenizer_of(model))
        self._tokenizer.enable_truncation(model.context_length)
        self._threads = ThreadPoolExecutor(physical_cores())

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one raw logit for each text."""
        encodings = self._tokenizer.encode_batch([(question, text) for text in texts])
        return list(self._threads.map(self._logit, encodings))

    def _logit(self, encoding: Any) -> float:
        inputs = np.array([[encoding.ids], [encoding.attention_mask], [encoding.type_ids]], dtype=np.int64)
        names = ("input_ids", "attention_mask", "token_type_ids")
        return float(self._session.run(None, dict(zip(names, inputs, strict=True)))[0].item())


class CrossEncoderReranker:
    """Rerank with a sentence-transformers cross-encoder on the CPU."""

    def __init__(self, model: InstalledModel) -> None:
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
        self.fused_weight = model.fused_weight
        self._half = torch.cpu._is_avx512_bf16_supported()

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one raw logit for each text."""
        import torch

        if not texts:
            return []
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self._half):
            scores = self._model.predict([(question, text) for text in texts], batch_size=16, show_progress_bar=False)
        return [float(score) for score in scores]
