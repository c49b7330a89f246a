"""Turn texts into vectors with a sentence-transformers model."""

import functools
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from local_rag.errors import ModelError
from local_rag.records import InstalledModel

# Part of an index's fingerprint: raise it whenever the same chunk would be embedded as another text.
TEXT_VERSION = 3
_HEADINGS_SHARE = 48  # tokens that title and headings may take beside a chunk
# Chosen by measurement, see docs/results.md: in one text, a context dilutes what its chunk says itself.
_CONTEXT_WEIGHT = 0.75


class Embedder(Protocol):
    """What the pipeline needs of an embedder."""

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Return normalised float32 vectors, shape (len(texts), dimension)."""

    def embed_query(self, text: str) -> np.ndarray:
        """Return one normalised float32 vector, shape (dimension,)."""


def embedder_identity(model: InstalledModel) -> str:
    """Return what two vectors must have in common to be comparable."""
    return hashlib.sha256(
        json.dumps([model.identity, model.query_prefix, model.passage_prefix, model.pooling, TEXT_VERSION]).encode()
    ).hexdigest()


def vector_key(identity: str, passage: str, context: str) -> str:
    """Return what a vector is stored under: all that it depends on."""
    return hashlib.sha256(json.dumps([identity, passage, context]).encode()).hexdigest()


@functools.lru_cache(maxsize=4)
def load_tokenizer(folder: Path) -> Any:
    """Load an embedder's tokenizer alone, in milliseconds, with truncation and padding switched off."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # noqa: BLE001  the library raises bare Exception
        raise ModelError(
            f"{folder} has no usable tokenizer.json ({error}); pull it again with `local-rag models pull`."
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def input_tokens(model: InstalledModel) -> int:
    """Return how many tokens of text the embedder takes beside its special tokens and passage prefix."""
    tokenizer = load_tokenizer(model.path)
    special = tokenizer.num_special_tokens_to_add(False)
    prefix = len(tokenizer.encode(model.passage_prefix, add_special_tokens=False).ids)
    return int(model.context_length - special - prefix)


def default_chunk_tokens(model: InstalledModel) -> int:
    """Return how large chunks are by default: four sevenths of the input, 145 of MiniLM's 254 tokens, at most 256.

    The rest leaves room for title and headings.
    """
    return min(256, input_tokens(model) * 4 // 7)


def passage_text(headings: str, text: str, *, model: InstalledModel) -> str:
    """Put headings before a chunk, cut so that the whole fits the embedder's input.

    The chunk itself is never cut: the splitter keeps it within its share.
    """
    tokenizer = load_tokenizer(model.path)
    room = input_tokens(model) - len(tokenizer.encode(text, add_special_tokens=False).ids)
    room = max(0, min(room, _HEADINGS_SHARE))
    encoding = tokenizer.encode(headings, add_special_tokens=False)
    if len(encoding.ids) > room:
        headings = headings[: encoding.offsets[room - 1][1]] if room else ""
    return "\n".join(part for part in (headings, text) if part)


def embed_with_contexts(embedder: Embedder, passages: Sequence[tuple[str, str]]) -> np.ndarray:
    """Return a normalised vector for each passage and its context, shape (len(passages), dimension).

    The two are embedded apart and added, the context with three quarters of the weight; an empty context adds nothing.
    """
    vectors = embedder.embed_passages([text for text, _ in passages])
    situated = [row for row, (_, context) in enumerate(passages) if context]
    if situated:
        vectors[situated] += _CONTEXT_WEIGHT * embedder.embed_passages([passages[row][1] for row in situated])
        vectors[situated] /= np.linalg.norm(vectors[situated], axis=1, keepdims=True)
    return vectors


class SentenceEmbedder:
    """Embed with a sentence-transformers folder on the CPU."""

    def __init__(self, model: InstalledModel) -> None:
        # The library would otherwise look for updates of a model it already has.
        os.environ["HF_HUB_OFFLINE"] = "1"
        import torch
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer import modules
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()
        self._model_record = model
        try:
            if model.pooling is None:
                self._model = SentenceTransformer(str(model.path), device="cpu", local_files_only=True)
            else:
                transformer = modules.Transformer(str(model.path))
                pooling = modules.Pooling(transformer.get_embedding_dimension(), pooling_mode=model.pooling)
                self._model = SentenceTransformer(modules=[transformer, pooling], device="cpu")
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(
                f"The embedder in {model.path} cannot be loaded ({error}); "
                f"pull it again with `local-rag models pull {model.name}`."
            ) from None
        self._model.max_seq_length = model.context_length
        # bfloat16 is two to four times faster where the processor computes in it, and slower elsewhere.
        self._half = torch.cpu._is_avx512_bf16_supported()

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Return normalised float32 vectors, shape (len(texts), dimension)."""
        return self._embed([self._model_record.passage_prefix + text for text in texts])

    def embed_query(self, text: str) -> np.ndarray:
        """Return one normalised float32 vector, shape (dimension,)."""
        vector: np.ndarray = self._embed([self._model_record.query_prefix + text])[0]
        return vector

    def _embed(self, texts: list[str]) -> np.ndarray:
        import torch

        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self._half):
            vectors = self._model.encode(texts, batch_size=32, convert_to_tensor=True, show_progress_bar=False)
        normalised: np.ndarray = torch.nn.functional.normalize(vectors.float(), dim=1).numpy()
        return normalised
