"""The models of libraries that are served.

Each is loaded once for several libraries, and does one job at a time. The vectors of questions are kept, so that a
question asked again is not embedded again.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from local_rag.keys import key_of
from local_rag.library import Library, Parts
from local_rag.llama.generator import Generator
from local_rag.model_records import InstalledModel
from local_rag.models.embedder import Embedder
from local_rag.store.history_file import QuestionVectors


@dataclass(slots=True)
class _Engine:
    """An open engine, and by how many libraries it is used."""

    generator: Generator
    opened: ExitStack = field(default_factory=ExitStack)
    users: int = 0


class SharedModels:
    """Load each model for the first library that needs it, and free it with the last one; `turn` keeps jobs apart."""

    def __init__(self, parts: Parts) -> None:
        self.turn = threading.RLock()
        self._parts, self._lock = parts, threading.RLock()
        self._loaded: WeakValueDictionary[tuple[str, Path, str], Any] = WeakValueDictionary()
        self._engines: dict[tuple[Any, ...], _Engine] = {}

    def parts(self) -> Parts:
        """Return the parts of a library that shares its models."""
        parts = self._parts
        return replace(
            parts,
            load_embedder=lambda model: self._load("embed", model, parts.load_embedder),
            load_reader=lambda model: self._load("rerank", model, parts.load_reader),
            open_engine=self._open_engine,
        )

    def _load(self, role: str, model: InstalledModel, load: Callable[[InstalledModel], Any]) -> Any:
        with self._lock:
            key = role, model.path, model.identity
            loaded = self._loaded.get(key)
            if loaded is None:
                self._loaded[key] = loaded = load(model)
            return loaded

    @contextmanager
    def _open_engine(self, path: Path, **how: Any) -> Iterator[Generator]:
        """Open an engine, or use the one that another library has opened in the same way."""
        key = (path, *sorted(how.items(), key=lambda item: item[0]))
        with self._lock:
            engine = self._engines.get(key)
            if engine is None:
                stack = ExitStack()
                engine = _Engine(stack.enter_context(self._parts.open_engine(path, **how)), stack)
                self._engines[key] = engine
            engine.users += 1
        try:
            yield engine.generator
        finally:
            with self._lock:
                engine.users -= 1
                if not engine.users:
                    del self._engines[key]
                    engine.opened.close()


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
