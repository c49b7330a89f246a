"""The design that local-rag began with, word for word: the profile `card`, with tiny random models of its families.

A small Llama situates each chunk, BERT embeds, an XLM-RoBERTa cross-encoder reranks 150 passages to 20, and a larger
Llama answers.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import local_rag
from local_rag import Library
from local_rag.files import file_sha256
from local_rag.llama.models_in_use import load_embedder, load_reader
from local_rag.models.choice import find
from local_rag.models.embedder import OnnxEmbedder, SentenceEmbedder
from local_rag.models.models_folder import shipped_models
from local_rag.models.reader import CrossEncoderReader, OnnxReader
from local_rag.models.registry import HubSource, load_registry
from local_rag.store.database import Store
from tests.support.checkpoints import add_makers_onnx, save_bert, save_xlm_roberta
from tests.support.model_servers import FakeHub
from tests.support.tiny_models import save_model

REGISTRY = load_registry()
CARD = REGISTRY.profiles["card"]
POSITIONS = 512  # as BGE has
QUESTION = "When does the boat leave the harbour?"
CHUNKS = 3  # of the documents
OUTCOMES = {"answered", "quoted", "refused"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each model of the profile, with all files that its maker publishes."""
    folder = tmp_path_factory.mktemp("makers")
    for role in ("context", "answer"):
        (folder / role).mkdir()
        save_model(folder / role / REGISTRY.models[CARD[role]].weights.name, "llama")
    for role, save in (("embed", save_bert), ("rerank", save_xlm_roberta)):
        (folder / role).mkdir()
        add_makers_onnx(save(folder / role, POSITIONS))
    return folder


def contexts_in(library: Path) -> Counter[str]:
    with closing(Store(library.resolve())) as store:
        return Counter(kind for (kind,) in store.connection.execute("SELECT kind FROM contexts"))


def test_the_profile_is_the_design() -> None:
    models = {role: REGISTRY.models[name] for role, name in CARD.items()}
    assert {role: model.name for role, model in models.items()} == {
        "context": "llama-3.2-1b-instruct",
        "answer": "llama-3.2-3b-instruct",
        "embed": "bge-base-en-v1.5",
        "rerank": "bge-reranker-base",
    }
    assert "situate the last chunk within the overall document" in models["context"].context_form.request
    assert models["rerank"].fused_weight == 0, "the order of the cross-encoder alone counts"
    settings = Library("nowhere", profile="card").settings
    assert (settings.rerank_candidates, settings.passages, settings.context) == (150, 20, "auto")
    assert (settings.rrf_k, settings.dense_weight, settings.keyword_weight) == (60, 1.0, 1.0)


def test_what_the_user_sets_counts_more_than_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Library("nowhere", profile="small").settings.rerank_candidates == 0
    assert Library("nowhere", profile="card", rerank_candidates=7).settings.rerank_candidates == 7
    monkeypatch.setenv("LOCAL_RAG_RERANK_CANDIDATES", "0")
    assert Library("nowhere", profile="card").settings.rerank_candidates == 0


def publish(folders: Path, program: Path) -> dict[str, bytes]:
    """Copy the program with a registry that knows the stand-ins; return what a hub has, by its paths."""
    shutil.copytree(Path(local_rag.__file__).parent, program, ignore=shutil.ignore_patterns("__pycache__"))
    text, files = (Path(local_rag.__file__).parents[1] / "models/registry.toml").read_text(), dict[str, bytes]()
    for role, name in CARD.items():
        entry = REGISTRY.models[name]
        (hub,) = entry.sources
        assert isinstance(hub, HubSource)
        for file in entry.files:
            stand_in = folders / role / file.name
            files[f"{hub.repository}/resolve/{hub.revision}/{file.name}"] = stand_in.read_bytes()
            known = f'name = "{file.name}", bytes = {file.bytes}, sha256 = "{file.sha256}"'
            begin = text.index(f'[models."{name}"]')
            assert known in text[begin:]
            there = f'name = "{file.name}", bytes = {stand_in.stat().st_size}, sha256 = "{file_sha256(stand_in)}"'
            text = text[:begin] + text[begin:].replace(known, there, 1)
    (program / "registry.toml").write_text(text)
    for name in ("minilm-l6-questions", "minilm-l6-rows", "minilm-l6-reader"):  # what comes with the program
        shutil.copytree(shipped_models() / name, program / "shipped_models" / name)
    return files


def test_it_is_pulled_from_a_hub_and_indexes_searches_and_answers(
    folders: Path, documents: Path, tmp_path: Path
) -> None:
    files = publish(folders, tmp_path / "program" / "local_rag")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCAL_RAG_")}
    environment |= {"PYTHONPATH": str(tmp_path / "program"), "HOME": str(tmp_path), "LOCAL_RAG_CONTEXT_MINUTES": "9"}
    environment |= {"LOCAL_RAG_MODELS": str(tmp_path / "models")}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-P", "-c", "from local_rag.cli.start import main; main()", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with FakeHub(files) as hub:
        environment["HF_ENDPOINT"] = hub.url
        pulled = run("models", "pull", "card").splitlines()
        assert {path for path, _ in hub.requests} == files.keys()
    assert [line.partition(":")[0] for line in pulled] == list(CARD.values())
    assert all("from hub repository" in line for line in pulled)
    run("index", documents.name, "--profile", "card", "--contexts")
    written = contexts_in(tmp_path / ".local-rag")
    assert written["model"] + written["dropped"] == CHUNKS, "one for each, by the small Llama"
    passages = json.loads(run("search", QUESTION, "--json"))["passages"]
    assert len(passages) == CHUNKS
    assert all("rerank" in passage["ranks"] for passage in passages)
    assert json.loads(run("ask", QUESTION, "--json"))["outcome"] in OUTCOMES
    listed = json.loads(run("models", "list", "--json"))
    assert listed["settings"]["card"] == {"rerank_candidates": 150, "rrf_k": 60, "dense_weight": 1.0}


@pytest.mark.parametrize("onnx", [True, False])
def test_it_can_be_made_of_folders_of_ones_own(folders: Path, documents: Path, tmp_path: Path, onnx: bool) -> None:
    models = Path(shutil.copytree(folders, tmp_path / "models"))
    for role in ("embed", "rerank"):
        if not onnx:
            shutil.rmtree(models / role / "onnx")
    paths: Mapping[str, Any] = {
        f"{role}_model": str(next((models / role).glob("*.gguf"), models / role)) for role in CARD
    }
    library = Library("lib", profile="card", context_minutes=9, **paths)
    embedder, reader = load_embedder(find(library.settings, "embed")), load_reader(find(library.settings, "rerank"))
    assert isinstance(embedder, OnnxEmbedder if onnx else SentenceEmbedder)
    assert isinstance(reader, OnnxReader if onnx else CrossEncoderReader)
    with library:
        library.index([documents], contexts=True)
        written = contexts_in(Path("lib"))
        assert written["model"] + written["dropped"] == CHUNKS
        passages = library.search(QUESTION)
        assert [passage.hits[-1].list_name for passage in passages] == ["rerank"] * CHUNKS
        assert library.ask(QUESTION).outcome in OUTCOMES
