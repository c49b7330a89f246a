"""The embedders: the real MiniLM, and a tiny randomly initialised BERT that the test saves, with BGE's conventions."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_rag.errors import ModelError
from local_rag.models.embedder import (
    SentenceEmbedder,
    embed_with_contexts,
    embedder_identity,
    input_tokens,
    load_tokenizer,
    passage_text,
)
from local_rag.models.registry import resolve
from local_rag.records import InstalledModel
from tests.conftest import FakeEmbedder
from tests.support.checkpoints import save_bert


@pytest.fixture(scope="module")
def minilm(embed_model: InstalledModel) -> SentenceEmbedder:
    return SentenceEmbedder(embed_model)


@pytest.fixture(scope="module")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("bge"))


def test_meaning_is_nearer_than_words(minilm: SentenceEmbedder) -> None:
    passages = minilm.embed_passages(["The ship departs at dawn.", "Bread is baked with rye flour."])
    query = minilm.embed_query("When does the boat leave?")
    assert passages.dtype == np.float32
    assert np.allclose(np.linalg.norm(passages, axis=1), 1, atol=1e-5)
    assert passages[0] @ query > passages[1] @ query + 0.2


def test_a_batch_gives_the_vectors_of_its_texts_alone(minilm: SentenceEmbedder) -> None:
    texts = ["short", "a text that is a good deal longer than the other one " * 5, "tide"]
    together = minilm.embed_passages(texts)
    for text, vector in zip(texts, together, strict=True):
        assert minilm.embed_passages([text])[0] @ vector > 0.999


def test_the_first_token_is_pooled_and_the_instruction_stands_before_queries_only(bert_folder: Path) -> None:
    import torch
    from transformers import AutoModel

    instruction = "Represent this sentence: "
    model = InstalledModel("bge", "embed", bert_folder, "id", 64, query_prefix=instruction, pooling="cls")
    embedder = SentenceEmbedder(model)
    tokenizer = load_tokenizer(bert_folder)

    def by_hand(text: str) -> np.ndarray:
        with torch.inference_mode():
            states = AutoModel.from_pretrained(bert_folder)(torch.tensor([tokenizer.encode(text).ids]))
        first: np.ndarray = torch.nn.functional.normalize(states.last_hidden_state[:, 0], dim=1)[0].numpy()
        return first

    assert embedder.embed_passages(["the tide"])[0] @ by_hand("the tide") > 0.995
    assert embedder.embed_query("the tide") @ by_hand(instruction + "the tide") > 0.995
    assert embedder.embed_query("the tide") @ by_hand("the tide") < 0.98


def test_a_users_own_folder_pools_as_it_says(bert_folder: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    transformer = modules.Transformer(str(bert_folder))
    pooling = modules.Pooling(transformer.get_embedding_dimension(), pooling_mode="max")
    own = bert_folder.parent / "own-model"
    SentenceTransformer(modules=[transformer, pooling], device="cpu").save_pretrained(str(own))
    found = resolve(str(own), "embed")
    assert found.pooling is None
    expected = SentenceTransformer(str(own), device="cpu").encode(["tide"], normalize_embeddings=True)[0]
    assert SentenceEmbedder(found).embed_passages(["tide"])[0] @ expected > 0.999


def test_identity_follows_weights_and_prompts(embed_model: InstalledModel) -> None:
    from dataclasses import replace

    others = [
        replace(embed_model, identity="other"),
        replace(embed_model, query_prefix="query: "),
        replace(embed_model, pooling="cls"),
    ]
    assert len({embedder_identity(model) for model in [embed_model, *others]}) == 4
    assert embedder_identity(embed_model) == embedder_identity(replace(embed_model, name="renamed"))


def test_a_damaged_model_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer.json").write_text("{")
    model = InstalledModel("x", "embed", tmp_path, "id", 64, pooling="cls")
    with pytest.raises(ModelError, match="local-rag models pull"):
        load_tokenizer(tmp_path)
    with pytest.raises(ModelError, match="local-rag models pull"):
        SentenceEmbedder(model)


def test_input_leaves_room_for_special_tokens_and_prefix(embed_model: InstalledModel) -> None:
    from dataclasses import replace

    assert input_tokens(embed_model) == 256 - 2
    assert input_tokens(replace(embed_model, passage_prefix="passage: ")) == 256 - 2 - 2


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=800), st.text(max_size=400))
def test_headings_never_push_the_chunk_out(headings: str, text: str) -> None:
    model = resolve("all-minilm-l6-v2", "embed")
    tokenizer = load_tokenizer(model.path)
    room = input_tokens(model)
    if len(tokenizer.encode(text, add_special_tokens=False).ids) > room:
        return
    composed = passage_text(headings, text, model=model)
    assert composed.endswith(text)
    assert len(tokenizer.encode(composed, add_special_tokens=False).ids) <= room


def test_what_fits_is_not_cut(embed_model: InstalledModel) -> None:
    assert passage_text("Title > Part", "The chunk.", model=embed_model) == "Title > Part\nThe chunk."
    assert passage_text("", "The chunk.", model=embed_model) == "The chunk."


def test_a_context_moves_the_vector_of_its_chunk() -> None:
    embedder = FakeEmbedder(resolve("all-minilm-l6-v2", "embed"))
    alone, situated = embed_with_contexts(embedder, [("the boat leaves", ""), ("the boat leaves", "islands")])
    assert np.allclose(alone, embedder.embed_query("the boat leaves"))
    assert np.isclose(np.linalg.norm(situated), 1)
    wanted = embedder.embed_query("the boat leaves") + 0.75 * embedder.embed_query("islands")
    assert np.allclose(situated, wanted / np.linalg.norm(wanted))
    assert embed_with_contexts(embedder, [("a", ""), ("b", "")]).shape == (2, 64)
