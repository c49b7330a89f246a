"""Run the real command line with models that answer at once and always alike, and keep a journal of what was stored.

A line of the journal (the file CRASH_JOURNAL) is written the moment a context or vector is in the store: whatever it
names may never be lost again. With CRASH_MODELS=real the tiny models run instead of the fakes.
"""

import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import local_rag.indexing.indexer
import local_rag.models.embedder
from local_rag.indexing.contextualize import ContextJob
from local_rag.llama.engine import Counts
from local_rag.records import InstalledModel
from local_rag.store.database import Store

_IN_FLIGHT = 4


class QuickEmbedder:
    """Turn the hash of each word into a direction."""

    def __init__(self, model: InstalledModel) -> None:
        self._seed = model.identity

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> np.ndarray:
        vector = np.full(32, 1e-6, dtype=np.float32)
        for word in text.lower().split():
            vector[hashlib.sha256(f"{self._seed}{word}".encode()).digest()[0] % 32] += 1
        normalised: np.ndarray = vector / np.linalg.norm(vector)
        return normalised


class QuickModel:
    """A language model whose tokens are words."""

    context_length = 2048
    shares_prefix = True

    def __init__(self, path: Path) -> None:
        self.path = path

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        return [0] * len(text.split())

    def close(self) -> None:
        pass


class QuickEngine:
    """An engine that does nothing; `write_quickly` needs none."""

    def __init__(self, model: QuickModel, _settings: object) -> None:
        self.model, self.counts = model, Counts()

    def close(self) -> None:
        pass


def write_quickly(jobs: Iterable[ContextJob], engine: QuickEngine) -> Iterator[tuple[str, str, str]]:
    """Take some jobs at once and end them in another order, as the engine does."""
    waiting = iter(jobs)
    while batch := list(itertools.islice(waiting, _IN_FLIGHT)):
        for job in reversed(batch):
            kind = "llm" if int(job.key[:2], 16) > 20 else "headings"
            yield job.key, f"This chunk belongs to part {job.key[:12]}." if kind == "llm" else "", kind


def install_quick_models() -> None:
    """Put the fakes in the place of everything that loads weights."""
    modules: Any = (local_rag.indexing.indexer, local_rag.models.embedder)
    for module in modules:
        module.SentenceEmbedder = QuickEmbedder
    modules[0].LlamaModel, modules[0].make_engine = QuickModel, QuickEngine
    modules[0].write_contexts = write_quickly
    # The time from one publish to the next: not at all, so that publishes are interrupted too.
    modules[0].PUBLISH_SECONDS = 0.05


def keep_journal(path: str) -> None:
    """Write down each context and vector when the store says that it is in."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    put_context, put_vectors = Store.put_context, Store.put_vectors

    def context(self: Store, key: str, text: str, kind: str) -> None:
        put_context(self, key, text, kind)
        os.write(descriptor, f"contexts {key}\n".encode())

    def vectors(self: Store, keys: Sequence[str], vectors: np.ndarray) -> None:
        put_vectors(self, keys, vectors)
        os.write(descriptor, "".join(f"vectors {key}\n" for key in keys).encode())

    Store.put_context, Store.put_vectors = context, vectors  # type: ignore[method-assign]


def main() -> None:
    """Run the command line that follows."""
    from local_rag.cli.main import main as command_line

    if os.environ.get("CRASH_MODELS") != "real":
        install_quick_models()
    if "CRASH_JOURNAL" in os.environ:
        keep_journal(os.environ["CRASH_JOURNAL"])
    command_line()


if __name__ == "__main__":
    main()
