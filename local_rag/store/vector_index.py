"""Dense search by inner product over normalised vectors, memory-mapped: exact, or by FAISS and exact where many are.

Where a part is large, an inverted file of FAISS over 8-bit vectors finds more candidates than are asked for, and their
exact products rank them. Among a part of the chunks the search is always exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import DamagedLibraryError
from local_rag.store.arrays import REMEDY, open_array, write_array
from local_rag.store.ranking import best_rows

# What float32 products may be off by: whatever is so near to the last one is compared exactly.
_ROUNDING = 1e-5
_PIECE = 8192  # vectors that are looked at one by one at a time
_SAMPLED, _ROUNDS = 40, 10  # vectors a list, and rounds, that lists are found with
_FEW = 4  # a part of the rows is gathered where it is a fourth of all, or less


@dataclass(frozen=True, slots=True)
class VectorTuning:
    """How far a vector leans to its neighbours: chosen by scripts/measure/tune_retrieval.py, see docs/results.md."""

    neighbour: float = 0.35


VECTORS = VectorTuning()


@dataclass(frozen=True, slots=True)
class NearTuning:
    """When and how FAISS is asked: chosen by scripts/measure/near.py.

    Parts of at least `least_rows` have an inverted file, of `lists` times the root of their number. Every `probed`th
    list is looked at, and so many times the number asked for are compared exactly.
    """

    least_rows: int = 50_000
    lists: float = 4.0
    probed: int = 16
    candidates: int = 3


NEAR = NearTuning()


def blend_neighbours(vectors: np.ndarray, documents: Sequence[int], tuning: VectorTuning = VECTORS) -> np.ndarray:
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


@dataclass(frozen=True, slots=True, eq=False)
class VectorPart:
    """Vectors of shape (rows, dimension), which rows are alive, None for all, and FAISS's index of them if any."""

    vectors: np.ndarray
    alive: np.ndarray | None = None
    near: Any = None


class VectorIndex:
    """Search vectors in any number of parts; an id is a vector's row behind those of the parts before.

    Scores are the same however the rows are cut into parts.
    """

    def __init__(self, parts: Sequence[VectorPart], order: np.ndarray | None = None, tuning: NearTuning = NEAR) -> None:
        """Search these parts; of equal rows that of the lowest `order` is first."""
        self._parts, self._order, self._tuning = list(parts), order, tuning
        self._firsts = np.cumsum([0, *(len(part.vectors) for part in parts)])

    @classmethod
    def build(cls, vectors: np.ndarray) -> "VectorIndex":
        """Build an index from normalised float32 vectors of shape (count, dimension)."""
        return cls([VectorPart(np.ascontiguousarray(vectors, dtype=np.float32))])

    def save(self, path: Path) -> None:
        """Write an index of one part to a file."""
        (part,) = self._parts
        write_array(path, part.vectors)

    @classmethod
    def load(cls, path: Path) -> "VectorIndex":
        """Open a saved index; raise DamagedLibraryError where it is not there or not whole."""
        return cls([VectorPart(open_array(path))])

    def search(self, vector: np.ndarray, top: int, allowed: np.ndarray | None = None) -> list[tuple[int, float]]:
        """Return rows with cosine similarities for one normalised vector of shape (dimension,), best first.

        Only `allowed` rows, int64 and ascending, where they are given.
        """
        question = np.asarray(vector, dtype=np.float32)
        rows, scores = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.float32)]
        for part, first, end in zip(self._parts, self._firsts, self._firsts[1:], strict=False):
            if first == end:
                continue
            if allowed is not None:
                inside = allowed[np.searchsorted(allowed, first) : np.searchsorted(allowed, end)] - first
                found, products = _among(part, question, inside)
            elif part.near is None:
                found, products = _all(part, question)
            else:
                found, products = self._near(part, question, top), None
            if products is None:
                products = exact_products(part.vectors, found, question).astype(np.float32)
            rows.append(found + first)
            scores.append(products)
        candidates, about = np.concatenate(rows), np.concatenate(scores)
        if len(candidates) > top:
            candidates = candidates[about >= np.partition(about, -top)[-top] - _ROUNDING]
        return best_rows(candidates, self._exact_scores(candidates, question), top, self._order)

    def _near(self, part: VectorPart, question: np.ndarray, top: int) -> np.ndarray:
        """Ask FAISS for rows that are alive."""
        import faiss

        lists = faiss.extract_index_ivf(part.near)
        bits, selector = None, None
        if part.alive is not None:
            bits = np.packbits(part.alive, bitorder="little")
            selector = faiss.IDSelectorBitmap(len(bits), faiss.swig_ptr(bits))
        how = faiss.SearchParametersIVF(sel=selector, nprobe=max(1, lists.nlist // self._tuning.probed))  # type: ignore[call-arg]
        # One question gives threads nothing to share out: a second one only delays the first. The number is put back,
        # because torch's threads depend on it too.
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            _, found = part.near.search(question.reshape(1, -1), self._tuning.candidates * top, params=how)
        finally:
            faiss.omp_set_num_threads(threads)
        rows: np.ndarray = np.sort(found[0][found[0] >= 0])
        return rows

    def _exact_scores(self, rows: np.ndarray, question: np.ndarray) -> np.ndarray:
        """Return the products of rows, float64, each the same whatever stands beside it."""
        scores = np.zeros(len(rows))
        of_part = np.searchsorted(self._firsts, rows, side="right") - 1
        for number in np.unique(of_part):
            mine = of_part == number
            scores[mine] = exact_products(self._parts[number].vectors, rows[mine] - self._firsts[number], question)
        return scores


def _all(part: VectorPart, question: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all rows that are alive with their products, float32."""
    products = part.vectors @ question
    rows = np.arange(len(products)) if part.alive is None else np.flatnonzero(part.alive)
    return rows, products if part.alive is None else products[rows]


def _among(part: VectorPart, question: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return those of some rows that are alive, with their products unless they are few."""
    rows = rows if part.alive is None else rows[part.alive[rows]]
    return (rows, None) if len(rows) * _FEW < len(part.vectors) else (rows, (part.vectors @ question)[rows])


def exact_products(vectors: np.ndarray, rows: np.ndarray, question: np.ndarray) -> np.ndarray:
    """Return the products of some rows, float64, each added up in the same way whatever stands beside it."""
    wanted = question.astype(np.float64)
    pieces = [
        (vectors[rows[start : start + _PIECE]].astype(np.float64) * wanted).sum(axis=1)
        for start in range(0, len(rows), _PIECE)
    ]
    return np.concatenate(pieces) if pieces else np.zeros(0)


def write_near(vectors: np.ndarray, path: Path, tuning: NearTuning = NEAR) -> bool:
    """Write FAISS's index of some vectors, where they are so many that one is worth while; say whether they are."""
    if len(vectors) < tuning.least_rows:
        return False
    import faiss

    lists = int(tuning.lists * len(vectors) ** 0.5)
    index = faiss.index_factory(vectors.shape[1], f"IVF{lists},SQ8", faiss.METRIC_INNER_PRODUCT)
    sample = np.linspace(0, len(vectors) - 1, min(len(vectors), _SAMPLED * lists)).astype(np.int64)
    faiss.extract_index_ivf(index).cp.niter = _ROUNDS
    index.train(np.ascontiguousarray(vectors[sample]))
    for start in range(0, len(vectors), _PIECE):
        index.add(np.ascontiguousarray(vectors[start : start + _PIECE]))
    path.write_bytes(faiss.serialize_index(index).data)  # a full disk is an OSError here; FAISS would carry on
    return True


def open_near(path: Path) -> Any:
    """Open a written index of FAISS, memory-mapped; raise DamagedLibraryError where it is not whole."""
    import faiss

    try:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
    except RuntimeError:  # for all that FAISS cannot read, and its words are not for users
        raise DamagedLibraryError(f"{path} is missing or damaged", REMEDY) from None
