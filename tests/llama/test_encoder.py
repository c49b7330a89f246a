"""GGUF embedders and rerankers: vectors and scores are those that the weights say, whatever else is in the batch."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from local_rag.errors import ModelError
from local_rag.llama.encoder import LlamaEmbedder, LlamaReader
from local_rag.llama.models_in_use import load_embedder, load_reader
from local_rag.model_records import InstalledModel
from local_rag.models.embedder import tokenizer_of
from local_rag.models.registry import resolve
from local_rag.models.sources.wheel_files import unpack
from tests.support.tiny_encoders import PIECES, hidden_states, save_embedder, save_reranker
from tests.support.tiny_models import save_model

TEXTS = ["the boat", "a boat leaves the harbour at seven", "q", "the " * 60, "mail and milk"]
CLOSE = 0.995  # four bits times eight bits


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> InstalledModel:
    folder = save_embedder(tmp_path_factory.mktemp("embedder"))
    return InstalledModel(name="tiny", role="embed", path=folder, identity="id", context_length=64, pooling="mean")


def reference(model: InstalledModel, text: str) -> np.ndarray:
    tokens = tokenizer_of(model).encode(text).ids[: model.context_length - 1]
    tokens = [*tokens, 2] if tokens[-1] != 2 else tokens
    states = hidden_states(tokens)
    vector = {"mean": states.mean(axis=0), "cls": states[0], "lasttoken": states[-1]}[str(model.pooling)]
    normalised: np.ndarray = vector / np.linalg.norm(vector)
    return normalised


def test_the_tokenizer_takes_whole_words_and_marks_both_ends(model: InstalledModel) -> None:
    tokens = [PIECES[token] for token in tokenizer_of(model).encode("the  boat\ta\u00e9").ids]
    assert tokens == ["<s>", "\u2581the", "\u2581boat", "\u2581", "a", "<unk>", "</s>"]


@pytest.mark.parametrize("pooling", ["mean", "cls", "lasttoken"])
def test_vectors_are_those_of_the_weights(model: InstalledModel, pooling: Literal["mean", "cls", "lasttoken"]) -> None:
    pooled = replace(model, pooling=pooling)
    vectors = LlamaEmbedder(pooled).embed_passages(TEXTS)
    assert vectors.dtype == np.float32
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert vector @ reference(pooled, text) > CLOSE, text


def test_a_batch_gives_the_vectors_of_its_texts_alone(model: InstalledModel) -> None:
    texts = [f"{TEXTS[number % 5]} {'boat ' * (number % 7)}" for number in range(150)]
    embedder = LlamaEmbedder(model)
    together = embedder.embed_passages(texts)
    assert together.shape == (150, 64)
    for number in range(0, 150, 13):
        assert embedder.embed_query(texts[number]) @ together[number] > CLOSE
    assert embedder.embed_passages([]).shape == (0, 64)


def test_prefixes_stand_before_questions_and_passages(model: InstalledModel) -> None:
    plain, prefixed = (
        LlamaEmbedder(one) for one in (model, replace(model, query_prefix="query: ", passage_prefix="passage: "))
    )
    assert prefixed.embed_query("boat") @ plain.embed_query("query: boat") > CLOSE
    assert prefixed.embed_passages(["boat"])[0] @ plain.embed_query("passage: boat") > CLOSE


def test_scores_of_a_reranker_are_those_of_its_head(tmp_path: Path) -> None:
    folder, dense, output = save_reranker(tmp_path)
    model = InstalledModel(name="tiny", role="rerank", path=folder, identity="id", context_length=64, fused_weight=2.0)
    reader = LlamaReader(model)
    assert reader.fused_weight == 2.0
    tokenizer = tokenizer_of(model)
    for text, reading in zip(TEXTS[:3], reader.score("a boat", TEXTS[:3]), strict=True):
        tokens = tokenizer.encode("a boat", text).ids
        assert tokens.count(2) == 3
        wanted = output @ np.tanh(dense @ hidden_states(tokens)[0])
        assert abs(reading.relevance - wanted[0]) < 0.1, text
    assert reader.score("a boat", []) == []


def test_a_folder_with_a_gguf_file_is_loaded_through_llama_cpp(model: InstalledModel, tmp_path: Path) -> None:
    own = resolve(str(model.path), "embed")
    assert own.path == model.path
    assert isinstance(load_embedder(replace(own, context_length=64)), LlamaEmbedder)
    folder, _, _ = save_reranker(tmp_path / "ranks")
    assert isinstance(load_reader(resolve(str(folder), "rerank")), LlamaReader)


def test_what_cannot_be_loaded_is_one_sentence(model: InstalledModel, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"is a file, .*GGUF file and its tokenizer\.json; pass the folder\.$"):
        resolve(str(model.path / "model.gguf"), "embed")
    save_model(tmp_path / "writer.gguf", "llama")
    with pytest.raises(ModelError, match=r"does not contain the tokenizer\.json of writer\.gguf; copy it there"):
        resolve(str(tmp_path), "embed")
    (tmp_path / "tokenizer.json").write_bytes((model.path / "tokenizer.json").read_bytes())
    with pytest.raises(ModelError, match=r"writer\.gguf generates text and does not embed it"):
        load_embedder(replace(resolve(str(tmp_path), "embed"), context_length=64))
    save_model(tmp_path / "second.gguf", "llama")
    with pytest.raises(ModelError, match=r"must contain one GGUF file, not 2"):
        resolve(str(tmp_path), "embed")


def test_a_tokenizer_of_another_model_is_noticed(model: InstalledModel) -> None:
    embedder = LlamaEmbedder(model)
    with pytest.raises(ModelError, match=r"tokenizer\.json does not belong to model\.gguf"):
        embedder._encoding._encoder.run([[0, 10_000, 2]])


@pytest.mark.parametrize("content", [b"", b"E5S1", b"GGUF" + bytes(200), b"E5S1" + b"\xff" * 200])
def test_another_file_is_not_unpacked(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "packed.bin").write_bytes(content)
    with pytest.raises(ModelError, match=r"packed\.bin cannot be read \(.+\); pull the model again"):
        unpack(tmp_path / "packed.bin", tmp_path)
