"""Embed texts with a sentence-transformers model."""

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from local_rag.errors import ModelError
from local_rag.files import extra_command
from local_rag.model_records import InstalledModel
from local_rag.models.onnx_session import OnnxSession
from local_rag.models.own_models import TOKENIZER_FILE, pooling_of
from local_rag.reading.ruler import load_tokenizer, read_tokenizer

_WORD_BEGINS = "\u2581\u0120"  # what SentencePiece and byte-level BPE put before the first token of a word


class Embedder(Protocol):
    """The interface of an embedder."""

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Return normalised float32 vectors, shape (len(texts), dimension)."""

    def embed_query(self, text: str) -> np.ndarray:
        """Return one normalised float32 vector, shape (dimension,)."""


def tokenizer_of(model: InstalledModel) -> Any:
    """Load only a model's tokenizer, which takes milliseconds."""
    return load_tokenizer(model.path / TOKENIZER_FILE)


def is_frequent_word(model: InstalledModel, word: str) -> bool:
    """Return whether a word in lower case, or with a capital, is one token of a model: a frequent word, spelt right."""
    encode = tokenizer_of(model).encode
    found = (encode(form, add_special_tokens=False).tokens for form in (word, word.capitalize()))
    return any(len(tokens) == 1 and tokens[0].lstrip(_WORD_BEGINS).lower() == word for tokens in found)


def truncating_tokenizer(model: InstalledModel) -> Any:
    """Read a model's tokenizer anew, to truncate what is longer than its context."""
    tokenizer = read_tokenizer(model.path / TOKENIZER_FILE)
    tokenizer.enable_truncation(model.context_length)
    return tokenizer


@cache
def input_tokens(model: InstalledModel) -> int:
    """Return how many tokens of text fit into the embedder besides its special tokens and passage prefix."""
    tokenizer = tokenizer_of(model)
    special = tokenizer.num_special_tokens_to_add(False)
    prefix = len(tokenizer.encode(model.passage_prefix, add_special_tokens=False).ids)
    return int(model.context_length - special - prefix)


def require_sentence_transformers(model: InstalledModel) -> None:
    """Raise ModelError with the command that installs what runs a model without an ONNX file, if it is missing."""
    if find_spec("sentence_transformers") is None:
        raise ModelError(
            f"The model in {model.path} has no ONNX file, so it needs the extra sentence-transformers, which is not "
            f"installed; run `{extra_command('sentence-transformers')}`, or choose a model of `local-rag models list`."
        )


@cache
def is_half_faster() -> bool:
    """Return whether PyTorch computes clearly faster in bfloat16 than in float32 on this processor, as measured.

    What a processor says of itself does not tell: with AVX-512 alone, models took 1.6 times as long on one maker's, and
    with a matrix unit a quarter.
    """
    import torch

    def seconds(kind: torch.dtype) -> float:
        left, right = torch.ones(512, 768, dtype=kind), torch.ones(768, 768, dtype=kind)
        taken = list[float]()
        for _ in range(4):  # the first one prepares
            started = time.perf_counter()
            torch.mm(left, right)
            taken.append(time.perf_counter() - started)
        return min(taken)

    return torch.cpu._is_avx512_bf16_supported() and seconds(torch.bfloat16) < 0.8 * seconds(torch.float32)


class PrefixingEmbedder(ABC):
    """Put the model's prefixes before questions and passages."""

    def __init__(self, model: InstalledModel) -> None:
        self._use = model

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Return normalised float32 vectors, shape (len(texts), dimension)."""
        return self._embed([self._use.passage_prefix + text for text in texts])

    def embed_query(self, text: str) -> np.ndarray:
        """Return one normalised float32 vector, shape (dimension,)."""
        vector: np.ndarray = self._embed([self._use.query_prefix + text])[0]
        return vector

    @abstractmethod
    def _embed(self, texts: list[str]) -> np.ndarray: ...


def _pooled(output: np.ndarray, pooling: str | None) -> np.ndarray:
    """Return the vector of a text from its output, or from the outputs for its tokens, shape (tokens, dimension)."""
    if output.ndim == 1:
        return output
    vector: np.ndarray = (
        output[0] if pooling == "cls" else output[-1] if pooling == "lasttoken" else output.mean(axis=0)
    )
    return vector


class OnnxEmbedder(PrefixingEmbedder):
    """Embed with an ONNX file on the CPU, which may leave out the pooling."""

    def __init__(self, model: InstalledModel, path: Path) -> None:
        super().__init__(model)
        self._pooling = model.pooling or pooling_of(model.path)
        self._session = OnnxSession(path, truncating_tokenizer(model))

    def _embed(self, texts: list[str]) -> np.ndarray:
        outputs = [_pooled(output, self._pooling) for _, (output, *_) in self._session.run(texts)]
        vectors = np.array(outputs, dtype=np.float32)
        normalised: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return normalised


class SentenceEmbedder(PrefixingEmbedder):
    """Embed with a sentence-transformers folder on the CPU: any model folder that has no ONNX file.

    Use bfloat16 if it is faster on this processor, unless `half` is False.
    """

    def __init__(self, model: InstalledModel, *, half: bool = True) -> None:
        require_sentence_transformers(model)
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer import modules
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()
        super().__init__(model)
        try:
            if model.pooling is None:
                self.model = SentenceTransformer(str(model.path), device="cpu", local_files_only=True)
            else:
                transformer = modules.Transformer(str(model.path))
                pooling = modules.Pooling(transformer.get_embedding_dimension(), pooling_mode=model.pooling)
                self.model = SentenceTransformer(modules=[transformer, pooling], device="cpu")
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(
                f"Cannot load the embedder in {model.path} ({error}); "
                f"pull it again with `local-rag models pull {model.name}`."
            ) from None
        self.model.max_seq_length = model.context_length
        self._half = half and is_half_faster()

    def _embed(self, texts: list[str]) -> np.ndarray:
        import torch

        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self._half):
            vectors = self.model.encode(texts, batch_size=32, convert_to_tensor=True, show_progress_bar=False)
        normalised: np.ndarray = torch.nn.functional.normalize(vectors.float(), dim=1).numpy()
        return normalised
