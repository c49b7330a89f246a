"""Fixtures: fakes for logic, the tiny models for model paths."""

import hashlib
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from local_rag.llama.model import LlamaModel
from local_rag.models.registry import resolve
from local_rag.records import InstalledModel

# A shell starts its background jobs with Ctrl-C ignored, which tests that press it would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)


class FakeEmbedder:
    """Hash the words of a text into a vector, so that texts that share words are near."""

    loaded = 0

    def __init__(self, model: InstalledModel) -> None:
        type(self).loaded += 1

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> np.ndarray:
        vector = np.full(64, 1e-6, dtype=np.float32)
        for word in text.lower().split():
            vector[int(hashlib.sha256(word.encode()).hexdigest(), 16) % 64] += 1
        normalised: np.ndarray = vector / np.linalg.norm(vector)
        return normalised


@pytest.fixture
def fake_embedder(monkeypatch: pytest.MonkeyPatch) -> type[FakeEmbedder]:
    """Replace the embedder, the slowest thing to load, by a fake that counts how often it is loaded."""
    FakeEmbedder.loaded = 0
    monkeypatch.setattr("local_rag.indexing.indexer.SentenceEmbedder", FakeEmbedder)
    monkeypatch.setattr("local_rag.models.embedder.SentenceEmbedder", FakeEmbedder)
    return FakeEmbedder


@pytest.fixture
def quick_models(fake_embedder: type[FakeEmbedder], monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace everything that loads weights by the fakes of the crash harness."""
    from tests.whole.crash.command import QuickEngine, QuickModel, write_quickly

    monkeypatch.setattr("local_rag.indexing.indexer.LlamaModel", QuickModel)
    monkeypatch.setattr("local_rag.indexing.indexer.make_engine", QuickEngine)
    monkeypatch.setattr("local_rag.indexing.indexer.write_contexts", write_quickly)


@pytest.fixture(scope="session")
def embed_model() -> InstalledModel:
    return resolve("all-minilm-l6-v2", "embed")


@pytest.fixture(scope="session")
def tiny_llama() -> Iterator[LlamaModel]:
    model = LlamaModel(resolve("smollm2-135m-instruct", "context").path)
    yield model
    model.close()


@pytest.fixture
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a folder of three documents."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "documents"
    (folder / "norway").mkdir(parents=True)
    (folder / "norway" / "leave.md").write_text(
        "# Leave in Norway\n\n## Parental leave\n\nParents get 49 weeks at full pay.\n\n## Sick leave\n\nA doctor's "
        "note is needed after 3 days.\n"
    )
    (folder / "ireland.md").write_text("# Leave in Ireland\n\n## Parental leave\n\nParents get 26 weeks at half pay.\n")
    (folder / "boat.txt").write_text("The boat leaves the harbour at seven. It carries twelve people.\n")
    return folder
