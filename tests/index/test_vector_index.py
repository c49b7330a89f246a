import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.errors import DamagedLibraryError, LibraryError
from local_rag.index.arrays import open_array, write_array
from local_rag.index.generations import Generations
from local_rag.index.keyword_index import contenders
from local_rag.index.vector_index import VectorIndex, VectorPart, VectorTuning, best_rows, blend_neighbours
from tests.fakes import contents_of
from tests.support.indexes import vector_index


def test_exact_inner_product(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    write_array(tmp_path / "v", vectors)
    index = VectorIndex([VectorPart(open_array(tmp_path / "v"))])
    query = vectors[17]
    found = index.search(query, 5)
    assert [row for row, _ in found] == np.argsort(-(vectors @ query))[:5].tolist()
    assert found[0][0] == 17
    assert abs(found[0][1] - 1) < 1e-5


def test_fewer_vectors_than_asked_for() -> None:
    assert len(vector_index(np.eye(3, dtype=np.float32)).search(np.eye(3)[0], 10)) == 3


def test_only_allowed_rows_are_found() -> None:
    index = vector_index(np.array([[1, 0], [0.8, 0.6], [0, 1]], dtype=np.float32))
    query = np.array([1, 0])
    assert [row for row, _ in index.search(query, 5, np.array([1, 2]))] == [1, 2]
    assert [row for row, _ in index.search(query, 1, np.array([2]))] == [2], "although it is not among the best of all"
    assert index.search(query, 5, np.array([], dtype=np.int64)) == []


def test_of_equal_vectors_the_first_rows_are_found() -> None:
    index = vector_index(np.tile(np.array([0.6, 0.8], dtype=np.float32), (50, 1)))
    assert [row for row, _ in index.search(np.array([1, 0]), 7)] == list(range(7))
    assert [row for row, _ in index.search(np.array([1, 0]), 3, np.array([4, 9, 12, 30]))] == [4, 9, 12]


def test_nothing_to_search() -> None:
    assert vector_index(np.zeros((0, 1), dtype=np.float32)).search(np.ones(1), 3) == []


@pytest.mark.parametrize("content", [None, b"", b"IxFI" + bytes(20)])
def test_a_file_that_is_missing_or_damaged_is_named(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "v"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DamagedLibraryError, match=rf"^{path} is missing or damaged; run `local-rag repair`"):
        open_array(path)


@pytest.mark.parametrize("name", ["chunk_ids.npy", "vectors.npy", "keywords"])
def test_a_generation_that_goes_while_it_is_opened_is_no_surprise(name: str, tmp_path: Path) -> None:
    generations = Generations(tmp_path)
    generations.publish(contents_of([1], [1], np.ones((1, 1), dtype=np.float32), ["a boat"]), {})
    live = generations.live()
    assert live is not None
    live.open()
    removed = tmp_path / "segments" / "000001" / name
    shutil.rmtree(removed) if removed.is_dir() else removed.unlink()
    with pytest.raises((LibraryError, OSError)):
        live.open()


def test_neighbours_of_the_same_document_draw_a_vector_near() -> None:
    vectors = np.eye(4, dtype=np.float32)
    blended = blend_neighbours(vectors, [1, 1, 1, 2], VectorTuning(neighbour=0.35))
    assert np.allclose(np.linalg.norm(blended, axis=1), 1)
    assert np.allclose(blended[0] / blended[0, 0], [1, 0.35, 0, 0])
    assert np.allclose(blended[1] / blended[1, 1], [0.35, 1, 0.35, 0])
    assert np.allclose(blended[3], [0, 0, 0, 1]), "alone in its document"
    assert blend_neighbours(np.zeros((0, 1), dtype=np.float32), []).shape == (0, 1)


def test_a_search_leaves_the_number_of_threads_alone() -> None:
    import faiss

    before = faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(3)
        vector_index(np.eye(3, dtype=np.float32)).search(np.eye(3)[0], 1)
        assert faiss.omp_get_max_threads() == 3
    finally:
        faiss.omp_set_num_threads(before)


@given(st.integers(0, 2000), st.integers(1, 40), st.integers(1, 6), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_looking_at_contenders_alone_ranks_as_looking_at_all(
    rows: int, top: int, values: int, silent: float, seed: int
) -> None:
    """Few different scores, so that many are equal; `silent` is the share of the rows that score nothing."""
    random = np.random.default_rng(seed)
    scores = random.integers(1, values + 1, rows) * (random.random(rows) >= silent).astype(np.float64)
    order = random.permutation(rows)
    scored, few = np.flatnonzero(scores > 0), contenders(scores, top)
    assert set(few) <= set(scored)
    assert best_rows(few, scores[few], top, order) == best_rows(scored, scores[scored], top, order)


def test_of_many_rows_only_few_are_contenders() -> None:
    scores = np.random.default_rng(1).random(100_000)
    assert len(contenders(scores, 50)) < 200
