"""The protocols of an index, for search and for publishing: chunk ids and document ids go in and out.

`Generations` implements them with files in the folder of a library, `QdrantIndexes` with a search engine. Each engine
passes `tests/index/test_every_index.py`.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from local_rag.asking import Filters
from local_rag.index.scoring import KeywordTuning
from local_rag.index.vector_index import VectorTuning
from local_rag.keys import key_of
from local_rag.passage_records import DocumentFacts, StoredChunk
from local_rag.text.tokens import TOKENS_VERSION


@dataclass(frozen=True, slots=True, eq=False)
class AllowedDocuments:
    """The ids of documents all of whose rows are allowed, int64."""

    ids: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids.tolist())


# Documents, or chunk ids, fastest as an array of int64; None for all chunks. Filters only where `select` returns them.
Allowed: TypeAlias = AllowedDocuments | Filters | np.ndarray | Collection[int] | None


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """What an index is given of a document: its rows in reading order, each with its vector and its keyword text.

    The first row stands for the whole document if `described`; the others are its chunks. `vectors` has the shape
    (rows, dimension). What an index makes of these rows depends on this document alone.
    """

    document_id: int
    chunk_ids: Sequence[int]
    vectors: np.ndarray
    texts: Sequence[str]
    described: bool = False

    @property
    def parts(self) -> list[slice]:
        """Return the rows that are neighbours: the chunks, and by itself the row of the whole document."""
        return [slice(0, 1), slice(1, None)] if self.described else [slice(0, None)]


@dataclass(frozen=True, slots=True)
class Contents:
    """What an index is to hold: documents, in the order of their paths, and the version of their rows.

    Equal scores rank in this order.

    `documents` and `versions` are int64. `rows` yields the rows of the documents with these ids, in any order. An index
    calls it only for documents that it does not yet hold in this version, a few at a time.
    """

    documents: np.ndarray
    versions: np.ndarray
    rows: Callable[[Sequence[int]], Iterator[DocumentRows]]


class PassageStore(Protocol):
    """The passages of a library and the facts of its documents: the store, or a search engine that holds them too."""

    def chunks_by_id(self, ids: Sequence[int]) -> Mapping[int, StoredChunk]:
        """Return the chunks with these ids."""

    def version(self) -> object:
        """Return a value that changes when filters may let other documents of the same index pass."""

    def roots(self) -> Sequence[Path]:
        """Return the paths that `index` was given."""

    def facts(self, documents: Collection[int] | None = None) -> Sequence[DocumentFacts]:
        """Return the facts of all documents, or of these."""

    def library_id(self) -> str:
        """Return what tells the library from every other one."""

    def select(self, filters: Filters) -> Allowed:
        """Return filters that the index itself can apply; None if their documents are to be found by their facts."""

    def chunks_of(self, documents: Collection[int]) -> Allowed:
        """Return the chunks of some documents, in a form that the index of the same library accepts."""


class Index(Protocol):
    """A published index, which never changes."""

    @property
    def stamp(self) -> str:
        """Return a value that differs from that of every other index."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Return what shaped the index."""

    def showing(self, documents: Collection[int]) -> "Index":
        """Return the same index as if it held these documents alone; raise LibraryError if the engine cannot do so."""

    def open(self) -> None:
        """Load what searching needs; raise LibraryError or OSError if it is missing."""

    def chunk_ids(self) -> Sequence[int]:
        """Return the ids of all rows, in the order in which equal scores rank."""

    def documents(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids of all documents and the versions of their rows, both int64."""

    def dense(
        self, vector: np.ndarray, top: int, allowed: Allowed = None, *, documents: bool = False
    ) -> list[tuple[int, float]]:
        """Return the best chunk ids with their cosine similarities to a normalised vector, only those `allowed`.

        With `documents`, rows that stand for whole documents are found too.
        """

    def keywords(
        self,
        terms: Sequence[str],
        top: int,
        allowed: Allowed = None,
        weights: Sequence[float] | None = None,
        *,
        documents: bool = False,
    ) -> list[tuple[int, float]]:
        """Return the best chunk ids with their BM25 scores for terms of `question_terms`, only those `allowed`.

        A term counts as often as it occurs, times its weight if there are `weights`. With `documents`, rows that stand
        for whole documents are found too.
        """

    def vocabulary(self) -> Collection[str]:
        """Return the words of the documents in lower case, and perhaps of removed ones; none if they are not kept."""

    def damage(self, *, hash_all: bool = True) -> list[str]:
        """Describe what differs from what was published; without `hash_all`, only what is quick to find."""

    def passages(self) -> PassageStore | None:
        """Return the passages that the index itself holds, None if they are in the store of the library."""


class Indexes(Protocol):
    """The published indexes of a library, one of which is live."""

    def live_name(self) -> str:
        """Return the name of the live index, empty before the first publish."""

    def live_stamp(self) -> str:
        """Return the stamp of the live index, empty before the first publish."""

    def live(self) -> Index | None:
        """Return the live index, None before the first publish; raise DamagedLibraryError if it is unusable."""

    def over(self, passages: PassageStore) -> "Indexes":
        """Return the same indexes, ready to publish these passages along with their vectors and words."""

    def publish(
        self, contents: Contents, manifest: Mapping[str, Any], *, rebuild: bool = False, replace: bool = False
    ) -> None:
        """Make an index of these contents the live one, all or nothing.

        Only with `replace` it may take the place of another library's.

        Reuse what the live index already holds, but to `rebuild` nothing that is damaged or stored beside what was
        removed.
        """

    def expunge(self) -> None:
        """Leave nothing in the live index of documents that were removed from it; other indexes keep theirs."""

    def prune(self) -> None:
        """Remove every index except the live one, so nothing that was erased is left in any of them."""

    def unused(self, *kept: str) -> list[Path]:
        """Return the folders that no index with one of these names needs."""

    def sizes(self) -> dict[str, int]:
        """Return the size of each index in bytes, by name; what two indexes share counts for both."""


def content_key(manifest: Mapping[str, Any]) -> str:
    """Return a key of what an index holds, and of the settings and models that shaped it."""
    return key_of(json.dumps(dict(manifest), sort_keys=True, default=str))


def index_recipe(keywords: KeywordTuning, vectors: VectorTuning) -> str:
    """Return the key of how an index builds its rows; 4 is the version of the code that writes segments."""
    shaping = replace(keywords, around=0.0)  # which weighs when searching, not when building
    return key_of("rows", 4, TOKENS_VERSION, astuple(shaping), vectors.neighbour)
