"""Search an index of before there were segments; the next `index` publishes the library anew, from what is stored."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import DamagedLibraryError
from local_rag.index.arrays import REMEDY
from local_rag.index.protocol import Allowed
from local_rag.index.ranking import best_rows
from local_rag.index.scoring import KEYWORDS
from local_rag.index.segment import damaged_files
from local_rag.index.vector_index import exact_products


class OlderGeneration:
    """A published index in a folder: row `i` of its vectors and texts is the chunk `chunk_ids()[i]`."""

    def __init__(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest
        self.stamp = stamp_of(folder)

    def open(self) -> None:
        """Load ids and both indexes."""
        import bm25s
        import faiss

        self._ids = np.load(self.folder / "chunk_ids.npy")
        try:
            self._vectors = faiss.read_index(str(self.folder / "vectors.faiss"))
        except RuntimeError:  # for all that FAISS cannot read, and its words are not for users
            raise DamagedLibraryError(f"{self.folder / 'vectors.faiss'} is missing or damaged", REMEDY) from None
        keywords = self.folder / "keywords"
        self._block_of = np.load(keywords / "blocks.npy")
        self._own, self._around = (  # both are there, or neither
            bm25s.BM25.load(str(keywords / name), mmap=True) if (keywords / name).is_dir() else None
            for name in ("own", "around")
        )

    def chunk_ids(self) -> list[int]:
        """Return the chunk ids by row."""
        ids: list[int] = np.load(self.folder / "chunk_ids.npy").tolist()
        return ids

    def documents(self) -> tuple[np.ndarray, np.ndarray]:
        """Return no documents: whatever this index holds is in no version that can be taken over."""
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)

    def dense(self, vector: np.ndarray, top: int, allowed: Allowed = None) -> list[tuple[int, float]]:
        """Return chunk ids with cosine similarities, best first."""
        count, question = self._vectors.ntotal, np.asarray(vector, dtype=np.float32)
        vectors = self._vectors.reconstruct_n(0, count) if count else np.zeros((0, len(question)), dtype=np.float32)
        products = exact_products(vectors, np.arange(count), question)
        return self._best(products, np.ones(count, dtype=bool), top, allowed)

    def keywords(
        self, terms: Sequence[str], top: int, allowed: Allowed = None, weights: Sequence[float] | None = None
    ) -> list[tuple[int, float]]:
        """Return chunk ids with BM25 scores, best first."""
        scores = np.zeros(len(self._block_of), dtype=np.float32)
        for term, weight in zip(terms, weights or [1.0] * len(terms), strict=True):
            if self._own and self._around and term in self._own.vocab_dict:
                scores += weight * self._own.get_scores([term])
                scores += weight * KEYWORDS.around * self._around.get_scores([term])[self._block_of]
        return self._best(scores, scores > 0, top, allowed)

    def _best(self, scores: np.ndarray, found: np.ndarray, top: int, allowed: Allowed) -> list[tuple[int, float]]:
        if allowed is not None:
            found = found & np.isin(self._ids, np.fromiter(allowed, dtype=np.int64))
        rows = np.flatnonzero(found)
        return [(int(self._ids[row]), score) for row, score in best_rows(rows, scores[rows], top, None)]

    def damage(self, *, hash_all: bool = True) -> list[str]:
        """Compare every file with the manifest and name those that are missing, cut short or changed."""
        return damaged_files(self.folder, self.manifest, hash_all=hash_all)


def stamp_of(folder: Path) -> str:
    """Return what tells a generation's folder from every other one, also from one of the same name made later."""
    try:
        status = (folder / "manifest.json").stat()
    except (OSError, ValueError):
        return ""
    return f"{folder.name} {status.st_ino} {status.st_mtime_ns}"
