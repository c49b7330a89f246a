"""The embedders: the shipped MiniLM, and a tiny randomly initialised BERT with the conventions of BGE."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from local_rag.errors import ModelError
from local_rag.llama.models_in_use import load_embedder
from local_rag.model_records import InstalledModel
from local_rag.models.embedder import Embedder, SentenceEmbedder, input_tokens, tokenizer_of
from local_rag.models.registry import resolve
from tests.support.checkpoints import save_bert

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def minilm(embed_model: InstalledModel) -> Embedder:
    return load_embedder(embed_model)


@pytest.fixture(scope="module")
def bge(tmp_path_factory: pytest.TempPathFactory) -> InstalledModel:
    folder = save_bert(tmp_path_factory.mktemp("bge"))
    return InstalledModel(
        name="bge",
        role="embed",
        path=folder,
        identity="id",
        context_length=64,
        query_prefix="Represent this sentence: ",
        pooling="cls",
    )


def test_meaning_is_nearer_than_words(minilm: Embedder) -> None:
    passages = minilm.embed_passages(["The ship departs at dawn.", "Bread is baked with rye flour."])
    query = minilm.embed_query("When does the boat leave?")
    assert passages.dtype == np.float32
    assert np.allclose(np.linalg.norm(passages, axis=1), 1, atol=1e-5)
    assert passages[0] @ query > passages[1] @ query + 0.2


def test_a_batch_gives_the_vectors_of_its_texts_alone(bge: InstalledModel) -> None:
    embedder = SentenceEmbedder(bge)
    texts = ["short", "a text that is a good deal longer than the other one " * 5, "tide"]
    together = embedder.embed_passages(texts)
    for text, vector in zip(texts, together, strict=True):
        assert embedder.embed_passages([text])[0] @ vector > 0.999


def test_the_first_token_is_pooled_and_the_instruction_stands_before_queries_only(bge: InstalledModel) -> None:
    import torch
    from transformers import AutoModel

    embedder, tokenizer = SentenceEmbedder(bge), tokenizer_of(bge)

    def by_hand(text: str) -> np.ndarray:
        with torch.inference_mode():
            states = AutoModel.from_pretrained(bge.path)(torch.tensor([tokenizer.encode(text).ids]))
        first: np.ndarray = torch.nn.functional.normalize(states.last_hidden_state[:, 0], dim=1)[0].numpy()
        return first

    assert embedder.embed_passages(["the tide"])[0] @ by_hand("the tide") > 0.995
    assert embedder.embed_query("the tide") @ by_hand(bge.query_prefix + "the tide") > 0.995
    assert embedder.embed_query("the tide") @ by_hand("the tide") < 0.98


def test_a_users_own_folder_pools_as_it_says(bge: InstalledModel) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    transformer = modules.Transformer(str(bge.path))
    pooling = modules.Pooling(transformer.get_embedding_dimension(), pooling_mode="max")
    own = bge.path.parent / "own-model"
    SentenceTransformer(modules=[transformer, pooling], device="cpu").save_pretrained(str(own))
    found = resolve(str(own), "embed")
    assert found.pooling is None
    expected = SentenceTransformer(str(own), device="cpu").encode(["tide"], normalize_embeddings=True)[0]
    assert SentenceEmbedder(found).embed_passages(["tide"])[0] @ expected > 0.999


def test_a_damaged_model_is_one_sentence(tmp_path: Path, bge: InstalledModel) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer.json").write_text("{")
    damaged = replace(bge, path=tmp_path)
    with pytest.raises(ModelError, match="local-rag models pull"):
        tokenizer_of(damaged)
    with pytest.raises(ModelError, match="local-rag models pull"):
        SentenceEmbedder(damaged)


def test_input_leaves_room_for_special_tokens_and_prefix(embed_model: InstalledModel) -> None:
    assert input_tokens(embed_model) == 256 - 2
    assert input_tokens(replace(embed_model, passage_prefix="passage: ")) == 256 - 2 - 2


@pytest.mark.parametrize(("pooling", "place"), [("cls", 0), ("lasttoken", -1), ("mean", None)])
def test_an_onnx_file_without_pooling_is_pooled(
    bge: InstalledModel, tmp_path: Path, pooling: Literal["mean", "cls", "lasttoken"], place: int | None
) -> None:
    from onnx import TensorProto, helper, numpy_helper, save

    table = np.random.default_rng(0).normal(size=(100, 8)).astype(np.float32)
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "tokens"])
    states = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", 8])
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "embedder",
        [ids],
        [states],
        [numpy_helper.from_array(table, "table")],
    )
    opsets = [helper.make_opsetid("", 17)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path / "model.onnx")
    (tmp_path / "tokenizer.json").write_bytes((bge.path / "tokenizer.json").read_bytes())
    model = replace(bge, path=tmp_path, pooling=pooling, query_prefix="")
    rows = table[tokenizer_of(model).encode("the tide").ids]
    wanted = rows.mean(axis=0) if place is None else rows[place]
    found = load_embedder(model).embed_query("the tide")
    assert np.allclose(found, wanted / np.linalg.norm(wanted), atol=1e-5)
