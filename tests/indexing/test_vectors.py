"""What is embedded of a chunk: its headings and text within the embedder's input, its context beside it."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from local_rag.indexing.vectors import TUNING, default_chunk_tokens, embed_with_contexts, embedded_text
from local_rag.model_records import InstalledModel
from local_rag.models.embedder import input_tokens, tokenizer_of
from local_rag.models.registry import resolve
from tests.fakes import FakeEmbedder

MINILM = resolve("all-minilm-l6-v2", "embed")


def tokens(text: str) -> int:
    return len(tokenizer_of(MINILM).encode(text, add_special_tokens=False).ids)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=800), st.text(max_size=400))
def test_headings_never_push_the_chunk_out(headings: str, text: str) -> None:
    assume(tokens(text) <= input_tokens(MINILM))
    composed = embedded_text(headings, text, model=MINILM)
    assert composed.endswith(text)
    assert tokens(composed) <= input_tokens(MINILM)


def test_what_fits_is_not_cut() -> None:
    assert embedded_text("Title > Part", "The chunk.", model=MINILM) == "Title > Part\nThe chunk."
    assert embedded_text("", "The chunk.", model=MINILM) == "The chunk."


@pytest.mark.parametrize(
    ("room", "headings"), [(0, ""), (1, "one\n"), (3, "one two three\n"), (9, "one two three four\n")]
)
def test_headings_are_cut_to_their_share(room: int, headings: str) -> None:
    found = embedded_text("one two three four", "The chunk.", model=MINILM, headings_tokens=room)
    assert found == f"{headings}The chunk."


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200), st.text(max_size=400), st.text(max_size=800))
def test_a_sentence_never_pushes_the_chunk_out(headings: str, sentence: str, text: str) -> None:
    assume(tokens(text) <= input_tokens(MINILM))
    composed = embedded_text(headings, text, sentence, model=MINILM, text_tokens=1)
    assert composed.endswith(text)
    assert tokens(composed) <= input_tokens(MINILM)


@pytest.mark.parametrize(
    ("left", "kept"), [(7, ""), (8, "one two three four\n"), (12, "one two three four fivefold\n")]
)
def test_a_sentence_gets_the_room_that_is_left_and_is_cut_between_words(left: int, kept: str) -> None:
    sentence = "one two three four unrecognisablenesses" if left == 8 else "one two three four fivefold"
    text = " ".join(["chunk"] * (input_tokens(MINILM) - tokens("Title") - left))
    assert embedded_text("Title", text, sentence, model=MINILM) == f"Title\n{kept}{text}"


def test_a_sentence_stands_between_headings_and_chunk() -> None:
    found = embedded_text("Title > Part", "The chunk.", "What it is about.", model=MINILM)
    assert found == "Title > Part\nWhat it is about.\nThe chunk."


def test_chunks_of_the_default_size_leave_room_for_headings(embed_model: InstalledModel) -> None:
    assert default_chunk_tokens(embed_model) == 145
    assert default_chunk_tokens(embed_model) + TUNING.headings_tokens <= input_tokens(embed_model)


@pytest.mark.parametrize("weight", [TUNING.context_weight, 0.1])
def test_a_context_moves_the_vector_of_its_chunk_by_its_weight(weight: float) -> None:
    embedder = FakeEmbedder(MINILM)
    passages = [("the boat leaves", ""), ("the boat leaves", "islands")]
    alone, situated = embed_with_contexts(embedder, passages, weight)
    assert np.allclose(alone, embedder.embed_query("the boat leaves"))
    assert np.isclose(np.linalg.norm(situated), 1)
    wanted = embedder.embed_query("the boat leaves") + weight * embedder.embed_query("islands")
    assert np.allclose(situated, wanted / np.linalg.norm(wanted))


def test_without_contexts_the_vectors_are_those_of_the_texts() -> None:
    embedder = FakeEmbedder(MINILM)
    vectors = embed_with_contexts(embedder, [("a", ""), ("b", "")])
    assert np.array_equal(vectors, embedder.embed_passages(["a", "b"]))
