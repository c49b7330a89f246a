"""Which documents there are to choose from, and which chunks are theirs: what filters are held against."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from local_rag.index.protocol import Allowed
from local_rag.store.database import Store


@dataclass(frozen=True, slots=True)
class DocumentFacts:
    """What a document is chosen by; `date` is its own, empty where it has none."""

    id: int
    path: str
    modified_ns: int
    date: str
    tags: tuple[str, ...]


class Catalogue(Protocol):
    """What filters are held against: a store's, or that of an index which stands for itself."""

    def version(self) -> object:
        """Return what is another one as soon as filters may pass other documents."""

    def roots(self) -> Sequence[Path]:
        """Return the paths that `index` was given."""

    def facts(self) -> Sequence[DocumentFacts]:
        """Return the facts of all documents."""

    def chunks_of(self, documents: Collection[int]) -> Allowed:
        """Name the chunks of some documents, so that an index of the same library allows them alone."""


class StoreCatalogue:
    """The catalogue of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def version(self) -> int:
        """Return a number that is another one as soon as somebody else has written to the store."""
        return store_version(self._store)

    def roots(self) -> list[Path]:
        """Return the paths that `index` was given."""
        return self._store.roots()

    def facts(self) -> list[DocumentFacts]:
        """Return the facts of all documents."""
        return document_facts(self._store)

    def chunks_of(self, documents: Collection[int]) -> np.ndarray:
        """Return the ids of all chunks of some documents."""
        return chunk_ids_of(self._store, documents)


def store_version(store: Store) -> int:
    """Return a number that is another one as soon as somebody else has written to the store."""
    return int(store.connection.execute("PRAGMA data_version").fetchone()[0])


def document_facts(store: Store) -> list[DocumentFacts]:
    """Return the facts of all documents, superseded ones too: the live index may still name their chunks.

    No column that stands behind the text is read, since SQLite would have to pass over all texts to get there.
    """
    rows = store.connection.execute(
        "SELECT id, path, modified_ns, coalesce(date, ''), coalesce(tags, '[]') "
        "FROM documents LEFT JOIN provenance ON document_id = id"
    )
    return [
        DocumentFacts(key, path, modified_ns, day, () if tags == "[]" else tuple(json.loads(tags)))
        for key, path, modified_ns, day, tags in rows
    ]


def chunk_ids_of(store: Store, documents: Collection[int]) -> np.ndarray:
    """Return the ids of all chunks of some documents, int64."""
    query = "SELECT id FROM chunks WHERE document_id = ?"
    ids = [row[0] for document in documents for row in store.connection.execute(query, (document,))]
    return np.asarray(ids, dtype=np.int64)


def beginning_of(store: Store, document: int, characters: int = 4000) -> str:
    """Return how the text of a document begins."""
    query = "SELECT substr(text, 1, ?2) FROM documents WHERE id = ?1"
    return str(store.connection.execute(query, (document, characters)).fetchone()[0])
