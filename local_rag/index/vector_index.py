"""Dense search by inner product over normalised, memory-mapped vectors.

In a large part, FAISS searches codes of two bits per number, a sixteenth of the size of the vectors, for more
candidates than requested, and their exact products rank them. In other parts, and with a filter that passes less than a
fourth of a part, the search is exact.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import DamagedLibraryError
from local_rag.index.arrays import REMEDY, give_back

# The error of float32 products: candidates this close to the last one are compared exactly.
_ROUNDING = 1e-5
_PIECE = 8192  # vectors processed at a time
_SAMPLED = 4096  # vectors for training the codes; FAISS uses no more
_FEW = 4  # gather the rows if they are at most a fourth of all


@dataclass(frozen=True, slots=True)
class VectorTuning:
    """The weight of neighbouring vectors, chosen by scripts/benchmarks/retrieval.py; see docs/results.md."""

    neighbour: float = 0.35


VECTORS = VectorTuning()


@dataclass(frozen=True, slots=True)
class NearTuning:
    """When and how FAISS is used; measured in docs/measurements/near.json.

    Parts of at least `least_rows` have codes. FAISS finds `candidates` times the requested number of rows.
    """

    least_rows: int = 50_000
    candidates: int = 8


NEAR = NearTuning()


def blend_neighbours(vectors: np.ndarray, documents: Sequence[int], tuning: VectorTuning = VECTORS) -> np.ndarray:
    """Move each vector a little towards its neighbours in the same document; all stay normalised.

    A chunk from the middle of a section is then also found by the subject of the section. `vectors` has the shape
    (count, dimension), with the vectors of a document in reading order; `documents` holds the document of each.
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
    """Vectors of shape (rows, dimension), a mask of the rows that are alive (None: all), and a FAISS index if any."""

    vectors: np.ndarray
    alive: np.ndarray | None = None
    near: Any = None


class VectorIndex:
    """Search vectors in any number of parts; the id of a vector is its row in all parts together.

    Scores do not depend on how the rows are divided into parts.
    """

    def __init__(self, parts: Sequence[VectorPart], order: np.ndarray | None = None, tuning: NearTuning = NEAR) -> None:
        """Search these parts; equal scores rank by `order`, lowest first."""
        self._parts, self._order, self._tuning = list(parts), order, tuning
        self._firsts = np.cumsum([0, *(len(part.vectors) for part in parts)])

    def search(self, vector: np.ndarray, top: int, allowed: np.ndarray | None = None) -> list[tuple[int, float]]:
        """Return rows with cosine similarities for one normalised vector of shape (dimension,), best first.

        Only `allowed` rows, int64 and ascending, if given.
        """
        question = np.asarray(vector, dtype=np.float32)
        rows, scores = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.float32)]
        for part, first, end in zip(self._parts, self._firsts, self._firsts[1:], strict=False):
            if first == end:
                continue
            if allowed is not None:
                inside = allowed[np.searchsorted(allowed, first) : np.searchsorted(allowed, end)] - first
                if part.near is None or len(inside) * _FEW < len(part.vectors):
                    found, products = _among(part, question, inside)
                else:
                    found, products = self._near(replace(part, alive=_mask(part, inside)), question, top)
            elif part.near is None:
                found, products = _all(part, question)
            else:
                found, products = self._near(part, question, top)
            rows.append(found + first)
            scores.append(products)
        candidates, about = np.concatenate(rows), np.concatenate(scores)
        if len(candidates) > top:
            candidates = candidates[about >= np.partition(about, -top)[-top] - _ROUNDING]
        return best_rows(candidates, self._exact_scores(candidates, question), top, self._order)

    def _near(self, part: VectorPart, question: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that FAISS finds and that are alive, with their products; all rows if these are too few."""
        total = len(part.vectors)
        wanted = self._tuning.candidates * top
        if part.alive is not None:  # FAISS does not know this, so request more in proportion
            wanted = wanted * total // max(1, int(np.count_nonzero(part.alive)))
        with one_thread():
            _, found = part.near.search(question.reshape(1, -1), min(wanted, total))
        rows: np.ndarray = np.sort(found[0][found[0] >= 0])
        rows = rows if part.alive is None else rows[part.alive[rows]]
        if len(rows) < min(top * self._tuning.candidates // 2, total):
            return _all(part, question)
        return rows, _products(part.vectors, rows, question)

    def _exact_scores(self, rows: np.ndarray, question: np.ndarray) -> np.ndarray:
        """Return the products of rows, float64; each is independent of the other rows."""
        scores = np.zeros(len(rows))
        of_part = np.searchsorted(self._firsts, rows, side="right") - 1
        for number in np.unique(of_part):
            mine = of_part == number
            scores[mine] = exact_products(self._parts[number].vectors, rows[mine] - self._firsts[number], question)
        return scores


def _mask(part: VectorPart, rows: np.ndarray) -> np.ndarray:
    mask = np.zeros(len(part.vectors), dtype=bool)
    mask[rows] = True
    return mask if part.alive is None else mask & part.alive


def _all(part: VectorPart, question: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all rows that are alive with their products, float32."""
    if part.alive is not None:
        return _among(replace(part, alive=None), question, np.flatnonzero(part.alive))
    return np.arange(len(part.vectors)), part.vectors @ question


def _among(part: VectorPart, question: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the given rows that are alive, with their products, float32; other rows are not read if they are many."""
    rows = rows if part.alive is None else rows[part.alive[rows]]
    few = len(rows) * _FEW < len(part.vectors)
    return rows, _products(part.vectors, rows, question) if few else (part.vectors @ question)[rows]


def _products(vectors: np.ndarray, rows: np.ndarray, question: np.ndarray) -> np.ndarray:
    """Return the products of some rows, float32, with rounding errors."""
    pieces = [vectors[rows[start : start + _PIECE]] @ question for start in range(0, len(rows), _PIECE)]
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.float32)


def best_rows(rows: np.ndarray, scores: np.ndarray, top: int, order: np.ndarray | None) -> list[tuple[int, float]]:
    """Return the rows with the best scores, best first; equal scores rank by `order`, then by row."""
    if len(rows) > top:
        # Keep all that equal the last one, so ties at the end of the list are decided by order too.
        kept = scores >= np.partition(scores, -top)[-top]
        rows, scores = rows[kept], scores[kept]
    ranks = rows if order is None else order[rows]
    best = np.lexsort((rows, ranks, -scores))[:top]
    return [(int(rows[one]), float(scores[one])) for one in best]


def exact_products(vectors: np.ndarray, rows: np.ndarray, question: np.ndarray) -> np.ndarray:
    """Return the products of some rows, float64; each sum is computed in the same order."""
    wanted = question.astype(np.float64)
    pieces = [
        (vectors[rows[start : start + _PIECE]].astype(np.float64) * wanted).sum(axis=1)
        for start in range(0, len(rows), _PIECE)
    ]
    return np.concatenate(pieces) if pieces else np.zeros(0)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let FAISS use one thread: there is little work to share, and threads would wait for other programs.

    The number is restored, because torch's threads depend on it too.
    """
    import faiss

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def write_near(vectors: np.ndarray, path: Path, tuning: NearTuning = NEAR) -> bool:
    """Write the FAISS codes of some vectors if there are enough of them; return whether there are.

    Product quantization of pairs of numbers to four bits: André, Kermarrec and Le Scouarnec, "Quicker ADC" (2019).
    """
    rows, dimension = vectors.shape
    if rows < tuning.least_rows:
        return False
    import faiss

    pairs = dimension // 2 if dimension % 2 == 0 else dimension
    index = faiss.index_factory(dimension, f"PQ{pairs}x4fs", faiss.METRIC_INNER_PRODUCT)
    with one_thread():
        index.train(np.ascontiguousarray(vectors[np.linspace(0, rows - 1, min(rows, _SAMPLED)).astype(np.int64)]))
        for start in range(0, rows, _PIECE):
            index.add(np.ascontiguousarray(vectors[start : start + _PIECE]))
            give_back(vectors)
    path.write_bytes(faiss.serialize_index(index).data)  # a full disk raises OSError here; FAISS would ignore it
    return True


def open_near(path: Path) -> Any:
    """Open written codes; raise DamagedLibraryError if they are not whole."""
    import faiss

    try:
        return faiss.read_index(str(path))
    except RuntimeError:  # raised for anything that FAISS cannot read; its message does not help users
        raise DamagedLibraryError(f"{path} is missing or damaged", REMEDY) from None
