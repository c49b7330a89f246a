"""scripts/measure/tune_contexts.py: other ways to ask, and that none finds what another wrote."""

import importlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from local_rag.evaluation.dataset import load_dataset, write_dataset
from local_rag.evaluation.evaluate import index_dataset
from local_rag.indexing.contextualize import plan_contexts, prompt_requests
from local_rag.library import Library, Parts
from local_rag.records import Chunk
from local_rag.store.connect import STORE_FILE
from tests.fakes import FakeEmbedder, FakeGenerator, FakeVocabulary, generating

SCRIPTS = Path(__file__).parents[2] / "scripts" / "measure"
SENTENCES = [
    f"Boat number {number} leaves the harbour at seven and carries mail to the islands." for number in range(16)
]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(SCRIPTS)
    return importlib.import_module("tune_contexts")


@contextmanager
def fake_vocabulary(path: Path) -> Iterator[FakeVocabulary]:
    yield FakeVocabulary(path)


def open_way(script: Any, folder: Path, way: Any, generator: FakeGenerator) -> Library:
    parts = Parts(load_embedder=FakeEmbedder, open_engine=generating(generator), open_vocabulary=fake_vocabulary)
    if way is None:
        return Library(folder, parts=parts, context="llm", profile="tiny")
    library: Library = script.AskingLibrary(folder, way, parts, profile="tiny")
    return library


def keys(folder: Path) -> set[str]:
    with closing(sqlite3.connect(folder / STORE_FILE)) as connection:
        return {row[0] for row in connection.execute("SELECT key FROM contexts")}


def test_the_shipped_texts_make_the_shipped_prompts(script: Any) -> None:
    text = " ".join(SENTENCES)
    chunks = [Chunk(0, 0, 300, text[:300]), Chunk(1, 300, len(text), text[300:])]
    jobs = plan_contexts("Boats", text, chunks, vocabulary=FakeVocabulary(), plan="")
    way = script.Way()
    assert list(way.prompts(jobs, FakeVocabulary())) == list(prompt_requests(jobs, FakeVocabulary()))


def test_each_way_asks_otherwise_and_keeps_its_contexts_apart(script: Any, tmp_path: Path) -> None:
    write_dataset(tmp_path / "boats", [{"id": "boats.txt", "title": "Boats", "text": "\n\n".join(SENTENCES)}], [])
    dataset, folder = load_dataset(tmp_path / "boats"), tmp_path / "library"
    known: set[str] = set()
    prompts: dict[str, str] = {}
    for name, way in script.WAYS.items():
        generator = FakeGenerator(lambda _prompt: " tells when the boats leave the harbour.", context_tokens=100_000)
        with open_way(script, folder, way, generator) as library:
            chunks = index_dataset(dataset, library, lambda _progress: None)
            assert library.manifest()["generated_contexts"] == len(chunks)
            assert library.search("When does the boat leave?")[0].context.startswith("This chunk tells when")
        # One more than chunks, for what is said of the whole document.
        assert len(keys(folder) - known) == len(generator.prompts) == len(chunks) + 1
        known |= keys(folder)
        prompts[name] = max(generator.prompts, key=len)
        with open_way(script, folder, way, generator) as library:
            index_dataset(dataset, library, lambda _progress: None)
        assert len(generator.prompts) == len(chunks) + 1, "a second run finds what the first one wrote"
    # Of one document alone nothing is told that sets it apart.
    others = [prompt for name, prompt in prompts.items() if name != "told what sets the document apart"]
    assert len(set(others)) == len(others) == len(prompts) - 1
    assert [name for name, prompt in prompts.items() if "[...]" in prompt] == [
        name for name in prompts if "windows" in name
    ]
    assert script.SHORTER in prompts["shorter instruction"]
    assert script.NAMES in prompts["names asked for"]
    repeated, ends = prompts["chunk repeated"], prompts["first and last words repeated"]
    assert repeated.count(SENTENCES[1]) == 2
    assert ends.count(SENTENCES[1]) == 1
    assert "to the islands." in ends.partition("Here is a chunk of this document:")[2]
