"""The seam for search: what an index is given and what it answers, all in ids of chunks and documents.

`Generations` implements it with files in the library's folder; a search engine could do so for many machines.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from local_rag.keys import recipe
from local_rag.store.keyword_index import TOKENS_VERSION
from local_rag.store.scoring import KeywordTuning
from local_rag.store.vector_index import VectorTuning

# Chunk ids, most quickly taken as an array of int64, or None for all.
Allowed: TypeAlias = np.ndarray | Collection[int] | None


@dataclass(frozen=True, slots=True)
class IndexRows:
    """What an index is made of: for each chunk its id, its document's id, its vector and its text for keywords.

    The chunks of a document follow each other in reading order. `vectors` has the shape (chunks, dimension).
    """

    chunk_ids: Sequence[int]
    document_ids: Sequence[int]
    vectors: np.ndarray
    texts: Sequence[str]


class Index(Protocol):
    """A published index, which never changes; `manifest` says what shaped it."""

    @property
    def stamp(self) -> str:
        """Return what tells this index from every other one."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Return what shaped the index."""

    def open(self) -> None:
        """Load what searching needs; raise LibraryError or OSError where it is not there."""

    def chunk_ids(self) -> Sequence[int]:
        """Return the ids of all chunks."""

    def dense(self, vector: np.ndarray, top: int, allowed: Allowed = None) -> list[tuple[int, float]]:
        """Return chunk ids with cosine similarities to a normalised vector, best first; only those `allowed`."""

    def keywords(
        self, terms: Sequence[str], top: int, allowed: Allowed = None, weights: Sequence[float] | None = None
    ) -> list[tuple[int, float]]:
        """Return chunk ids with BM25 scores for terms of `keyword_tokens`, best first; only those `allowed`.

        A term scores as often as it is named, times its weight where `weights` has one for each.
        """

    def damage(self, *, hash_all: bool = True) -> list[str]:
        """Name what is not as it was published; without `hash_all` what was not written to since is taken as whole."""


class Indexes(Protocol):
    """The published indexes of a library, of which one is live."""

    def live_name(self) -> str:
        """Return the name of the live index, empty before the first publish."""

    def live_stamp(self) -> str:
        """Return the stamp of the live index, empty where there is none."""

    def live(self) -> Index | None:
        """Return the live index, or None before the first publish; raise DamagedLibraryError if it is unusable."""

    def publish(self, rows: IndexRows, manifest: Mapping[str, Any]) -> None:
        """Build an index and make it the live one, whole or not at all."""


def index_recipe(keywords: KeywordTuning, vectors: VectorTuning) -> int | str:
    """Name how indexes are built from texts and vectors."""
    return recipe("index", TOKENS_VERSION, keywords.k1, keywords.b, keywords.block_texts, vectors.neighbour)
