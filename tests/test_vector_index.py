from pathlib import Path

import numpy as np

from local_rag.vector_index import VectorIndex


def test_exact_inner_product(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    VectorIndex.build(vectors).save(tmp_path / "v")
    index = VectorIndex.load(tmp_path / "v")
    query = vectors[17]
    found = index.search(query, 5)
    assert [row for row, _ in found] == np.argsort(-(vectors @ query))[:5].tolist()
    assert found[0][0] == 17
    assert abs(found[0][1] - 1) < 1e-5


def test_fewer_vectors_than_asked_for() -> None:
    assert len(VectorIndex.build(np.eye(3, dtype=np.float32)).search(np.eye(3)[0], 10)) == 3


def test_empty(tmp_path: Path) -> None:
    assert VectorIndex.build(np.zeros((0, 1), dtype=np.float32)).search(np.ones(1), 3) == []
