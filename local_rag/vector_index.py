"""Dense search: exact inner product over normalised vectors, by FAISS."""

from pathlib import Path
from typing import Any

import numpy as np


class VectorIndex:
    """Search vectors; an id is a vector's row in the matrix the index was built from."""

    def __init__(self, index: Any) -> None:
        self._index = index

    @classmethod
    def build(cls, vectors: np.ndarray) -> "VectorIndex":
        """Build an index from normalised float32 vectors of shape (count, dimension)."""
        import faiss

        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        return cls(index)

    def save(self, path: Path) -> None:
        """Write the index to one file."""
        import faiss

        faiss.write_index(self._index, str(path))

    @classmethod
    def load(cls, path: Path) -> "VectorIndex":
        """Open a saved index."""
        import faiss

        return cls(faiss.read_index(str(path)))

    def search(self, vector: np.ndarray, top: int) -> list[tuple[int, float]]:
        """Return rows with cosine similarities for one normalised vector of shape (dimension,), best first."""
        if self._index.ntotal == 0:
            return []
        scores, rows = self._index.search(vector.reshape(1, -1).astype(np.float32), min(top, self._index.ntotal))
        return [(int(row), float(score)) for row, score in zip(rows[0], scores[0], strict=True)]
