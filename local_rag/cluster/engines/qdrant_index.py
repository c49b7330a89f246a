"""A published index in Qdrant. Any number of machines can search it; they need no store.

A generation is two collections. In the first, each chunk is a point with its vector, a sparse vector of its own words
and those of its surroundings, and everything that a passage shows. The second holds the manifest, the facts of each
document, to which filters apply, and the number of chunks that hold each token. An alias names the live generation.
"""

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.cluster.engines.client import Client, NothingThereError
from local_rag.cluster.engines.sparse_vectors import question_vector
from local_rag.errors import DamagedLibraryError
from local_rag.index.protocol import Allowed, AllowedDocuments
from local_rag.index.scoring import Statistics, TextCounts, token_number
from local_rag.records import UNKNOWN, Chunk, DocumentFacts, Provenance, StoredChunk

DENSE, WORDS = "dense", "words"  # names of the vectors of a point
MANIFEST = str(uuid.uuid5(uuid.NAMESPACE_OID, "manifest"))
_MORE = 64  # results than needed, so ties at the end of a list are decided by our order too
_SCROLLED = 2048
_KNOWN_TOKENS = 100_000


def facts_of(collection: str) -> str:
    """Return the name of the collection of facts that belongs to a collection of chunks."""
    return f"{collection}_facts"


class QdrantIndex:
    """An index that also holds the passages of its chunks; its collections never change."""

    def __init__(self, client: Client, collection: str) -> None:
        self._client, self._collection = client, collection
        self.stamp = collection
        about = self._facts([MANIFEST])
        if not about:
            reason = f"the index {collection} has no manifest"
            raise DamagedLibraryError(reason, "run `local-rag cluster copy` to publish it again")
        self._about: dict[str, Any] = about[0]
        self.manifest: Mapping[str, Any] = self._about["manifest"]
        self._statistics = Statistics(*(TextCounts(**self._about[name]) for name in ("own", "around")))
        self._holding: dict[int, tuple[int, int]] = {}

    def open(self) -> None:
        """Do nothing: what searching needs is in the engine."""

    def passages(self) -> "QdrantIndex":
        """Return the index itself: it holds its passages."""
        return self

    def chunk_ids(self) -> list[int]:
        """Return the ids of all rows, in the order in which equal scores rank."""
        points = self._scroll(self._collection, payload=["order"])
        return [int(point.id) for point in sorted(points, key=lambda point: int(point.payload["order"]))]

    def documents(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids of all documents and the versions of their rows, both int64."""
        rows = np.array([(said["id"], said["version"]) for said in self._documents()], dtype=np.int64).reshape(-1, 2)
        return rows[:, 0], rows[:, 1]

    def dense(
        self, vector: np.ndarray, top: int, allowed: Allowed = None, *, documents: bool = False
    ) -> list[tuple[int, float]]:
        """Return chunk ids with cosine similarities, best first."""
        return self._search(vector.astype(float).tolist(), DENSE, top, allowed, documents)

    def keywords(
        self,
        terms: Sequence[str],
        top: int,
        allowed: Allowed = None,
        weights: Sequence[float] | None = None,
        *,
        documents: bool = False,
    ) -> list[tuple[int, float]]:
        """Return chunk ids with BM25 scores, best first: the scores of the index in a folder."""
        self._look_up({token_number(term): term for term in terms})
        asked = question_vector(terms, weights, self._statistics, lambda term: self._holding[token_number(term)])
        if not asked:
            return []
        sparse = self._client.models.SparseVector(indices=list(asked), values=list(asked.values()))
        return self._search(sparse, WORDS, top, allowed, documents)

    def _look_up(self, tokens: Collection[int]) -> None:
        """Fetch how many chunks hold these tokens, unless that is already known."""
        if len(self._holding) > _KNOWN_TOKENS:
            self._holding.clear()
        unknown = [number for number in tokens if number not in self._holding]
        if unknown:
            self._holding |= dict.fromkeys(unknown, (0, 0))
            points = self._client.call("retrieve", facts_of(self._collection), unknown, with_payload=True)
            self._holding |= {int(point.id): (point.payload["own"], point.payload["around"]) for point in points}

    def _search(self, query: Any, using: str, top: int, allowed: Allowed, documents: bool) -> list[tuple[int, float]]:
        if allowed is not None and not len(allowed):
            return []
        found = self._client.call(
            "query_points",
            self._collection,
            query=query,
            using=using,
            limit=top + _MORE,
            query_filter=self._only(allowed, documents),
            with_payload=["order"],
        ).points
        found.sort(key=lambda point: (-point.score, point.payload["order"]))
        return [(int(point.id), float(point.score)) for point in found[:top] if using == DENSE or point.score > 0]

    def _only(self, allowed: Allowed, documents: bool) -> Any:
        """Return the filter of the engine for the allowed rows."""
        models, must = self._client.models, list[Any]()
        if isinstance(allowed, AllowedDocuments):  # the ids of all their rows would not fit a request
            must = [models.FieldCondition(key="document", match=models.MatchAny(any=allowed.ids.tolist()))]
        elif allowed is not None:
            must = [models.HasIdCondition(has_id=[int(one) for one in allowed])]
        if not documents:
            must.append(models.FieldCondition(key="kind", match=models.MatchValue(value="chunk")))
        return models.Filter(must=must) if must else None

    def damage(self, *, hash_all: bool = True) -> list[str]:
        """Count the chunks; the engine itself checks its files."""
        try:
            found = self._client.call("count", self._collection, exact=hash_all).count
        except NothingThereError as error:
            return [str(error)]
        wanted = self._about["chunks"]
        return (
            [f"{self._collection} holds {found:,} chunks instead of {wanted:,}"] if hash_all and found != wanted else []
        )

    def chunks_by_id(self, ids: Sequence[int]) -> dict[int, StoredChunk]:
        """Return the chunks with these ids."""
        points = self._client.call("retrieve", self._collection, list(ids), with_payload=True)
        return {int(point.id): _stored_chunk(int(point.id), point.payload) for point in points}

    def version(self) -> str:
        """Return the name of the collection, which changes with every publish."""
        return self._collection

    def roots(self) -> list[Path]:
        """Return the paths that `index` was given."""
        return [Path(root) for root in self._about["roots"]]

    def facts(self) -> list[DocumentFacts]:
        """Return the facts of all documents."""
        return [
            DocumentFacts(said["id"], said["path"], said["modified_ns"], said["date"], tuple(said["tags"]))
            for said in self._documents()
        ]

    def _documents(self) -> Iterator[Mapping[str, Any]]:
        models = self._client.models
        kind = models.Filter(must=[models.FieldCondition(key="kind", match=models.MatchValue(value="document"))])
        return (point.payload for point in self._scroll(facts_of(self._collection), only=kind))

    def chunks_of(self, documents: Iterable[int]) -> Allowed:
        """Return the documents themselves: the engine filters chunks by document."""
        return AllowedDocuments(np.fromiter(documents, dtype=np.int64))

    def _facts(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        points = self._client.call("retrieve", facts_of(self._collection), list(ids), with_payload=True)
        return [point.payload for point in points]

    def _scroll(self, collection: str, *, only: Any = None, payload: bool | Sequence[str] = True) -> Iterator[Any]:
        offset = None
        while True:
            points, offset = self._client.call(
                "scroll", collection, scroll_filter=only, limit=_SCROLLED, offset=offset, with_payload=payload
            )
            yield from points
            if offset is None:
                return


def payload_of(stored: StoredChunk, order: int) -> dict[str, Any]:
    """Return everything that a passage shows of a chunk, and what it is filtered and ordered by."""
    chunk, said = stored.chunk, stored.provenance
    return {
        "document": stored.document_id,
        "order": order,
        "path": stored.path,
        "title": stored.title,
        "terms": stored.terms,
        "sentence": stored.sentence,
        "kind": stored.kind,
        "sha256": stored.sha256,
        "chunk": [
            chunk.position,
            chunk.start,
            chunk.end,
            chunk.text,
            list(chunk.headings),
            chunk.page,
            chunk.line,
            chunk.end_line,
            chunk.table_header,
            chunk.ocr,
        ],
        "provenance": [said.url, said.date, said.author, list(said.tags)] if said else None,
    }


def _stored_chunk(identifier: int, said: Mapping[str, Any]) -> StoredChunk:
    position, start, end, text, headings, *place = said["chunk"]
    chunk = Chunk(position, start, end, text, tuple(headings), *place)
    from_where = said["provenance"]
    url, date, author, tags = from_where or ("", "", "", ())
    known = Provenance(url, date, author, tuple(tags)) if from_where else UNKNOWN
    return StoredChunk(
        identifier,
        said["document"],
        said["path"],
        said["title"],
        chunk,
        said["terms"],
        said["sentence"],
        known,
        said["kind"],
        said["sha256"],
    )
