"""Open a library that keeps the vectors of questions, so that a question asked again is not embedded again."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.keys import key_of
from local_rag.library import Library, Parts
from local_rag.model_records import InstalledModel
from local_rag.models.embedder import Embedder
from local_rag.store.history_file import QuestionVectors


class CachingEmbedder:
    """Embed with another embedder, and keep the vectors of questions in a library's history."""

    def __init__(self, embedder: Embedder, model: InstalledModel, library: Path) -> None:
        self._embedder = embedder
        # Another copy of the same model gives other digits.
        made_with = key_of(model.identity, model.query_prefix, model.pooling, type(embedder).__name__)
        self._vectors = QuestionVectors(library, made_with)

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Return normalised float32 vectors, shape (len(texts), dimension)."""
        return self._embedder.embed_passages(texts)

    def embed_query(self, text: str) -> np.ndarray:
        """Return one normalised float32 vector, shape (dimension,)."""
        if kept := self._vectors.get(text):
            return np.frombuffer(kept, dtype=np.float32)
        vector = np.ascontiguousarray(self._embedder.embed_query(text), dtype=np.float32)
        self._vectors.put(text, vector.tobytes())
        return vector


def open_library(folder: Path, parts: Parts, **settings: Any) -> Library:
    """Open a library that keeps the vectors of questions, if the settings allow it."""

    def load(model: InstalledModel) -> Embedder:
        embedder = parts.load_embedder(model)
        return CachingEmbedder(embedder, model, library.folder) if library.settings.retention.caches else embedder

    library = Library(folder, parts=replace(parts, load_embedder=load), **settings)
    return library
