"""The chunks that documents are compared with are the nearest ones, though few of a library are looked at."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from local_rag.document_records import Chunk, Document
from local_rag.index.vector_index import blend_neighbours
from local_rag.indexing.compare import compare, situate
from local_rag.indexing.similar import Audiences, Near, SimilarChunks
from local_rag.store.context_rows import documents_without_a_plan, plan_code_contexts, put_context
from local_rag.store.database import Store
from local_rag.store.vector_rows import (
    EmbeddingPlan,
    documents_to_embed,
    documents_without_means,
    mark_embedded,
    means_of,
    put_plans,
    put_vectors,
)

DIMENSION, CHUNKS = 24, 20


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path, create=True)) as store:
        yield store


def put(store: Store, name: str, vectors: np.ndarray, text: str = "tide", sha256: str = "") -> int:
    """Store an embedded document with a chunk for each vector."""
    chunks = [Chunk(number, 0, len(text), text) for number in range(len(vectors))]
    document = Document(Path("/d") / name, name, text, "text")
    key = store.put_document(document, chunks, size=1, modified_ns=1, sha256=sha256 or name, split_key="s")
    keys = [(stored.id, f"{key} {stored.chunk.position}") for stored in store.chunks(key)]
    put_vectors(store, [one for _, one in keys], vectors)
    put_plans(store, [EmbeddingPlan(key, keys, key, len(keys), 0)])
    mark_embedded(store, [key], "plan")
    return key


def unit(vectors: np.ndarray) -> np.ndarray:
    normalised: np.ndarray = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return normalised


def library(store: Store, count: int) -> dict[int, np.ndarray]:
    """Store documents about one of five subjects each."""
    random = np.random.default_rng(3)
    subjects = random.normal(size=(5, DIMENSION))
    found = {}
    for number in range(count):
        vectors = unit(subjects[number % 5] + random.normal(size=(CHUNKS, DIMENSION)) * 0.5)
        found[put(store, str(number), vectors)] = vectors
    return found


def nearest(vectors: dict[int, np.ndarray], document: int) -> list[list[Near]]:
    """Compare each chunk of a document with all chunks of all others."""
    others = {key: blend_neighbours(one, [key] * CHUNKS) for key, one in vectors.items() if key != document}
    owners, matrix = [key for key in others for _ in range(CHUNKS)], np.concatenate([*others.values()])
    lines = vectors[document] @ matrix.T
    return [[Near(owners[one], float(line[one])) for one in np.argsort(-line)[:3]] for line in lines]


def test_the_nearest_chunks_are_found_among_few_groups(store: Store) -> None:
    vectors = library(store, 40)
    chunks = SimilarChunks(store, "embedder", Audiences(store))
    hits = 0
    for document, near in zip(store.documents(), chunks.of(store.documents()), strict=True):
        assert sorted(near) == list(range(CHUNKS))
        for position, wanted in enumerate(nearest(vectors, document.id)):
            assert [one.document for one in near[position]] != [document.id] * 3
            hits += abs(near[position][0].similarity - wanted[0].similarity) < 1e-5
    assert hits > 0.95 * 40 * CHUNKS, "of 80 groups, the chunks of 16 were compared"


def test_copies_are_no_neighbours_and_a_chunk_without_a_vector_has_none(store: Store) -> None:
    vectors = unit(np.random.default_rng(1).normal(size=(3, DIMENSION)))
    first, copy = put(store, "a", vectors, sha256="same"), put(store, "b", vectors, sha256="same")
    chunks = SimilarChunks(store, "embedder", Audiences(store))
    assert list(chunks.of(store.documents())) == [{0: [], 1: [], 2: []}] * 2
    other = put(store, "c", vectors)
    store.connection.execute("DELETE FROM vectors WHERE key = ?", (f"{other} 1",))
    *_, of_other = SimilarChunks(store, "embedder", Audiences(store)).of(store.documents())
    assert sorted(of_other) == [0, 2]
    assert {one.document for found in of_other.values() for one in found} <= {first, copy}


def test_words_decide_if_a_context_shifts_the_vector_of_the_other(store: Store) -> None:
    vectors = unit(np.eye(2, DIMENSION) + 1)
    first, other = put(store, "a", vectors[:1], "high tide"), put(store, "b", vectors[1:], "high tide")
    (near,) = SimilarChunks(store, "embedder", Audiences(store)).of(
        [one for one in store.documents() if one.id == first]
    )
    assert near[0][0].similarity == pytest.approx(float(vectors[0] @ vectors[1]))
    put_context(store, "c", "It is about Harrow.", "terms")
    plan_code_contexts(store, other, "plan", [(chunk.id, "c", None) for chunk in store.chunks(other)])
    (near,) = SimilarChunks(store, "embedder", Audiences(store)).of(
        [one for one in store.documents() if one.id == first]
    )
    assert near == {0: [Near(other, 1.0)]}


def test_means_are_made_once_for_an_embedder_and_sampled_evenly(store: Store) -> None:
    library(store, 6)
    SimilarChunks(store, "embedder", Audiences(store))
    assert documents_without_means(store, "embedder") == []
    everything = means_of(store, "embedder")
    assert everything.positions == [0, 16] * 6
    assert np.allclose(np.linalg.norm(everything.vectors, axis=1), 1)
    some = means_of(store, "embedder", most=5)
    assert some.documents == everything.documents[::3]
    assert np.array_equal(some.vectors, everything.vectors[::3])
    assert len(documents_without_means(store, "another")) == 6
    SimilarChunks(store, "another", Audiences(store))
    assert means_of(store, "embedder").vectors.size == 0
    store.supersede(store.documents()[:1])
    assert len(means_of(store, "another").documents) == 10
    store.purge([])
    assert store.connection.execute("SELECT count(*) FROM mean_vectors").fetchone() == (10,)


def test_documents_are_compared_and_situated_in_few_commits_and_not_embedded_again(store: Store) -> None:
    library(store, 100)
    statements = list[str]()
    store.connection.set_trace_callback(statements.append)
    assert list(compare(store, "embedder", store.documents(), Audiences(store))) == [64, 100]
    situate(store, documents_without_a_plan(store, "none"))
    assert statements.count("COMMIT") <= 6
    assert documents_to_embed(store, "plan") == [], "none needs a context, so no vector changes"
