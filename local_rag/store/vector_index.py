"""Dense search: exact inner product over normalised vectors, by FAISS."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import DamagedLibraryError

_ROUNDING = 1e-6  # of a similarity


@dataclass(frozen=True, slots=True)
class VectorTuning:
    """How far a vector leans to its neighbours: chosen by scripts/measure/tune_retrieval.py, see docs/results.md."""

    neighbour: float = 0.35


def blend_neighbours(
    vectors: np.ndarray, documents: Sequence[int], tuning: VectorTuning = VectorTuning()
) -> np.ndarray:
    """Move each vector a little towards those before and after it in the same document; all stay normalised.

    A chunk from the midst of a section is then also found by what the section is about. Shape (count, dimension), the
    vectors of a document in reading order; `documents` names the document of each.
    """
    same = (np.asarray(documents)[1:] == np.asarray(documents)[:-1]).astype(np.float32)[:, None]
    blended = vectors.copy()
    blended[1:] += tuning.neighbour * same * vectors[:-1]
    blended[:-1] += tuning.neighbour * same * vectors[1:]
    lengths = np.linalg.norm(blended, axis=1, keepdims=True)
    normalised: np.ndarray = blended / np.maximum(lengths, np.finfo(np.float32).tiny)
    return normalised


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
        """Write the index to one file; a full disk is an OSError here, where FAISS itself would print and carry on."""
        import faiss

        path.write_bytes(faiss.serialize_index(self._index).data)

    @classmethod
    def load(cls, path: Path) -> "VectorIndex":
        """Open a saved index; raise DamagedLibraryError where it is not there or not whole."""
        import faiss

        try:
            return cls(faiss.read_index(str(path)))
        except RuntimeError:  # for all that FAISS cannot read, and its words are not for users
            remedy = "run `local-rag repair` to build the index again"
            raise DamagedLibraryError(f"{path} is missing or damaged", remedy) from None

    def search(self, vector: np.ndarray, top: int, allowed: np.ndarray | None = None) -> list[tuple[int, float]]:
        """Return rows with cosine similarities for one normalised vector of shape (dimension,), best first.

        Only `allowed` rows, int64, where they are given.
        """
        import faiss

        if self._index.ntotal == 0 or (allowed is not None and not len(allowed)):
            return []
        # One question gives threads nothing to share out: a second one only delays the first, by half on idle cores and
        # by 20 ms on busy ones. The number is put back, because torch's threads depend on it too.
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            only, found = None, self._index.ntotal
            if allowed is not None:
                # A bit for each row is looked up in less time than a row's product takes.
                bits = np.zeros(found, dtype=bool)
                bits[allowed] = True
                packed, found = np.packbits(bits, bitorder="little"), len(allowed)
                selector = faiss.IDSelectorBitmap(len(packed), faiss.swig_ptr(packed))
                only = faiss.SearchParameters(sel=selector)  # type: ignore[call-arg]
            query = vector.reshape(1, -1).astype(np.float32)
            found_scores, found_rows = self._index.search(query, min(top + 1, found), params=only)
            scores, rows = found_scores[0], found_rows[0]
            if len(scores) > top and scores[top] == scores[top - 1]:
                # Which of equal ones stand on FAISS's list is chance: all are compared, and the first rows win.
                _, scores, rows = self._index.range_search(query, float(scores[top]) - _ROUNDING, params=only)
        finally:
            faiss.omp_set_num_threads(threads)
        best = np.lexsort((rows, -scores))[:top]
        return [(int(row), float(score)) for row, score in zip(rows[best], scores[best], strict=True)]
