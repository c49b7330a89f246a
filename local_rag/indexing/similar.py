"""Find the chunks of other documents that are most similar to each chunk of some documents.

Documents are first compared by a few mean vectors each, many in one matrix product; then the chunks of the nearest
groups, one by one. The cost of a document therefore hardly depends on the size of the library, and memory is bounded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from local_rag.index.vector_index import blend_neighbours
from local_rag.keys import key_of
from local_rag.retrieval.filters import document_filter, limits_key, outermost
from local_rag.retrieval.version_families import shared
from local_rag.store.database import Store, StoredDocument
from local_rag.store.people_file import limits_of_people
from local_rag.store.vector_rows import GROUP, GroupVectors, documents_without_means, group_vectors, means_of, put_means
from local_rag.text.tokens import keyword_tokens

_NEAREST_GROUPS = 16  # whose chunks are compared one by one
_MOST_MEANS = 1 << 16  # mean vectors to compare with: those of about a million chunks; 100 MB with 384 dimensions
_COUNTED = 3  # of the nearest chunks
_WORDS_FROM = 0.5  # the cosine from which on two chunks may have most words in common
_TOGETHER = 256  # documents whose mean vectors are stored in one commit
_REMEMBERED_BYTES, _REMEMBERED_WORDS = 1 << 27, 1 << 15  # of the vectors of groups, and chunks whose words are kept


class Audiences:
    """Which of a library's people with limits see each document, as their file says now."""

    def __init__(self, store: Store) -> None:
        limits, roots = limits_of_people(store.folder), outermost(store.roots())
        by_key = {limits_key(one): document_filter(one, roots, are_limits=True) for one in limits}
        self.limits = sorted(by_key)
        facts = store.facts() if by_key else []
        self._of = {one.id: frozenset(key for key in self.limits if by_key[key](one)) for one in facts}

    def key(self, document: int) -> str:
        """Return a key of who sees a document, empty if everybody who does sees everything."""
        audience = self._of.get(document, frozenset())
        return key_of(*sorted(audience)) if audience else ""

    def seen_with(self, document: int, others: Sequence[int]) -> Sequence[int]:
        """Return those of the others that everybody sees who sees a document."""
        audience = self._of.get(document)
        return [one for one in others if audience <= self._of[one]] if audience else others


@dataclass(frozen=True, slots=True)
class Near:
    """The document of a near chunk, and how similar that chunk is."""

    document: int
    similarity: float


class SimilarChunks:
    """The chunks of a library's embedded documents; `embedder` is the identity of what made their vectors.

    A document is compared only with those that its audience sees.
    """

    def __init__(self, store: Store, embedder: str, audiences: Audiences) -> None:
        self._store, self._embedder, self._audiences = store, embedder, audiences
        self._make_means()
        self._means = means_of(store, embedder, most=_MOST_MEANS)
        numbers: dict[str, int] = {}
        self._contents = np.array([numbers.setdefault(one, len(numbers)) for one in self._means.sha256], dtype=np.int64)
        self._numbers = numbers
        groups = _REMEMBERED_BYTES // (GROUP * 4 * max(1, self._means.vectors.shape[1]))
        self._blended = lru_cache(groups)(self._read_blended)
        self._words = lru_cache(_REMEMBERED_WORDS)(self._read_words)

    def _make_means(self) -> None:
        waiting = documents_without_means(self._store, self._embedder)
        for start in range(0, len(waiting), _TOGETHER):
            with self._store.transaction():
                for document in waiting[start : start + _TOGETHER]:
                    put_means(
                        self._store, self._embedder, document, _mean_vectors(group_vectors(self._store, document))
                    )

    def of(self, documents: Sequence[StoredDocument]) -> Iterator[dict[int, list[Near]]]:
        """Yield, for each document, the nearest chunks of documents of other content, by the position of its chunk."""
        own = [means_of(self._store, self._embedder, document=one.id) for one in documents]
        wanted = [mean for means in own for mean in means.vectors]
        others = [self._others(one) for one in documents]
        others = [one for one, means in zip(others, own, strict=True) for _ in means.positions]
        nearest = iter(self._nearest(np.array(wanted), others))
        for document, means in zip(documents, own, strict=True):
            found: dict[int, list[Near]] = {}
            for position in means.positions:
                found |= self._near(group_vectors(self._store, document.id, position, position + GROUP), next(nearest))
            yield found

    def _others(self, document: StoredDocument) -> np.ndarray:
        """Return a mask of the mean vectors of other content that the document's audience sees."""
        others: np.ndarray = self._contents != self._numbers.get(document.sha256, -1)
        if self._audiences.key(document.id):
            seen = set(self._audiences.seen_with(document.id, self._means.documents))
            others &= np.fromiter((one in seen for one in self._means.documents), dtype=bool, count=len(others))
        return others

    def _nearest(self, wanted: np.ndarray, others: Sequence[np.ndarray]) -> list[list[int]]:
        """Return the rows of the mean vectors nearest to each one, among the others of each."""
        if not len(wanted) or not len(self._contents):
            return [[] for _ in wanted]
        products = wanted @ self._means.vectors.T
        for row, mask in enumerate(others):
            products[row, ~mask] = -np.inf
        last = max(0, products.shape[1] - _NEAREST_GROUPS)
        best = np.sort(np.argpartition(products, last, axis=1)[:, last:], axis=1)
        return [[int(one) for one in rows if line[one] > -np.inf] for rows, line in zip(best, products, strict=True)]

    def _near(self, group: GroupVectors, nearest: Sequence[int]) -> dict[int, list[Near]]:
        """Return the chunks of some groups that are nearest to each chunk of a group."""
        others = list[tuple[int, int, bool]]()
        products = [np.zeros((len(group.ids), 0), dtype=np.float32)]
        for row in nearest:
            document = self._means.documents[row]
            other = self._blended(document, self._means.positions[row])
            others += [(chunk, document, shifted) for chunk, shifted in zip(other.ids, other.shifted, strict=True)]
            if group.ids and other.ids:
                products.append(group.vectors @ other.vectors.T)  # so small that one thread is quicker than several
        found = {}
        for position, chunk, line in zip(group.positions, group.ids, np.concatenate(products, axis=1), strict=True):
            best = np.argsort(-line, kind="stable")[:_COUNTED]
            found[int(position)] = [self._compared(chunk, *others[int(one)], float(line[one])) for one in best]
        return found

    def _compared(self, chunk: int, other: int, document: int, shifted: bool, cosine: float) -> Near:
        """Return a chunk with its cosine, or with the share of common words if a context shifts its vector."""
        if not shifted or cosine < _WORDS_FROM:
            return Near(document, cosine)
        return Near(document, max(cosine, shared(self._words(chunk), self._words(other))))

    def _read_blended(self, document: int, position: int) -> GroupVectors:
        """Return the vectors of a group, as they are indexed."""
        found = group_vectors(self._store, document, position - 1, position + GROUP + 1)
        vectors = blend_neighbours(found.vectors, [document] * len(found.ids)) if found.ids else found.vectors
        inside = np.flatnonzero((found.positions >= position) & (found.positions < position + GROUP))
        ids, shifted = [found.ids[one] for one in inside], [found.shifted[one] for one in inside]
        return GroupVectors(ids, found.positions[inside], vectors[inside], shifted)

    def _read_words(self, chunk: int) -> frozenset[str]:
        return frozenset(keyword_tokens(self._store.chunk_text(chunk)))


def _mean_vectors(chunks: GroupVectors) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the position of the first chunk of each group, and the normalised mean of the group's vectors."""
    of_group = chunks.positions // GROUP
    for group in np.unique(of_group):
        mean = chunks.vectors[of_group == group].sum(axis=0)
        yield int(group) * GROUP, mean / max(float(np.linalg.norm(mean)), 1e-9)
