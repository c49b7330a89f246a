"""The seam for search: what an index is given and what it answers, all in ids of chunks and documents.

`Generations` implements it with files in the library's folder; a search engine could do so for many machines.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from local_rag.index.keyword_index import TOKENS_VERSION
from local_rag.index.scoring import KeywordTuning
from local_rag.index.vector_index import VectorTuning
from local_rag.keys import key_of

# Chunk ids, most quickly taken as an array of int64, or None for all.
Allowed: TypeAlias = np.ndarray | Collection[int] | None


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """What a document is found by: its chunks in reading order, each with its vector and its text for keywords.

    `vectors` has the shape (chunks, dimension). All that an index makes of the rows depends on this document alone.
    """

    document_id: int
    chunk_ids: Sequence[int]
    vectors: np.ndarray
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Contents:
    """What an index is to hold: documents, in the order in which equals rank, each with the version of its rows.

    `documents` and `versions` are int64. `rows` yields the documents of some ids, in any order; it is asked for those
    only that the index does not hold in this version yet, some at a time.
    """

    documents: np.ndarray
    versions: np.ndarray
    rows: Callable[[Sequence[int]], Iterator[DocumentRows]]


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
        """Return the ids of all chunks, in the order in which equals rank."""

    def documents(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids of all documents and the versions of their rows, both int64."""

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

    def publish(self, contents: Contents, manifest: Mapping[str, Any], *, anew: bool = False) -> None:
        """Make an index of these contents the live one, whole or not at all.

        What the live one holds already is taken over, unless the index is to be built `anew`.
        """

    def unused(self, *kept: str) -> list[Path]:
        """Return the folders that no index of these names needs."""

    def sizes(self) -> dict[str, int]:
        """Return the size of each index in bytes, by name; what two share counts for both."""


def index_recipe(keywords: KeywordTuning, vectors: VectorTuning) -> str:
    """Name how rows of indexes are built from texts and vectors; 2: the code that lays them down in segments."""
    return key_of("rows", 2, TOKENS_VERSION, keywords.block_texts, vectors.neighbour)
