"""A published index in Qdrant. Any number of machines can search it; they need no store.

Two collections hold all generations of a library. In the first, each row is a point with its vector, a sparse vector of
its own words and those of its surroundings, everything that a passage shows, and what filters look at. The second holds
the facts of each document, how many chunks hold each token, and the manifest of each generation. A point belongs to the
generations from `since` on and before `until`. An alias names the live generation and the collection it is in.
"""

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.asking import Filters
from local_rag.cluster.engines.client import Client, NothingThereError
from local_rag.cluster.engines.points import chunk_of, conditions_of, passage_of, points_of
from local_rag.cluster.engines.sparse_vectors import bucket_of, counts_in, number_of, question_vector
from local_rag.errors import ClusterError, DamagedLibraryError
from local_rag.index.protocol import Allowed, AllowedDocuments
from local_rag.passage_records import DocumentFacts, StoredChunk

DENSE, WORDS = "dense", "words"  # names of the vectors of a point
_MORE = 64  # results than needed, so ties at the end of a list are decided by our order too
_SCROLLED = 2048
_KNOWN_TOKENS = 100_000
_DOCUMENTS = 50_000  # in one request; the engine takes 32 MB
_RANKED = ["path", "row"]


@dataclass(frozen=True, slots=True)
class Place:
    """A generation: the collection that it is in, and its number."""

    collection: str
    number: int

    @property
    def stamp(self) -> str:
        """Return a name that no other generation has."""
        return f"{self.collection}.g{self.number:06}"

    @property
    def facts(self) -> str:
        """Return the name of the collection of facts that belongs to it."""
        return f"{self.collection}_facts"

    def holds(self, payload: Mapping[str, Any]) -> bool:
        """Return whether a point belongs to this generation."""
        return bool(payload["since"] <= self.number < payload.get("until", self.number + 1))


def point_id(*names: object) -> str:
    """Return the id of a point of the facts that is no document."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, " ".join(map(str, names))))


class QdrantIndex:
    """An index that also holds the passages of its chunks; what belongs to its generation never changes."""

    def __init__(self, client: Client, place: Place) -> None:
        self._client, self.place = client, place
        self.stamp = place.stamp
        points = client.call("retrieve", place.facts, [point_id("manifest", place.number)], with_payload=True)
        if not points:
            reason = f"the index {self.stamp} has no manifest"
            raise DamagedLibraryError(reason, "run `local-rag cluster copy` to publish it again")
        self.about: dict[str, Any] = points[0].payload
        self.manifest: Mapping[str, Any] = self.about["manifest"]
        # An earlier version counted surroundings elsewhere; its weights differ a little until it is published again.
        blocks = self.about["blocks"] if "blocks" in self.about else self.about["statistics"]["around"]["texts"]
        self.texts: tuple[int, int] = self.about["rows"], blocks
        self._differences: tuple[np.ndarray, np.ndarray] | None = None
        self._holding: dict[int, tuple[int, int]] = {}

    def open(self) -> None:
        """Do nothing: what searching needs is in the engine."""

    def showing(self, documents: Collection[int]) -> "QdrantIndex":
        """Raise ClusterError: the engine counts words over all documents, so scores would tell of others."""
        raise ClusterError(
            "A person with limits cannot search an index in a search engine; serve the library from its own folder, "
            "without the setting search_engine.address."
        )

    def passages(self) -> "QdrantIndex":
        """Return the index itself: it holds its passages."""
        return self

    def library_id(self) -> str:
        """Return the library that published the index."""
        return str(self.about["library"])

    def chunk_ids(self) -> list[int]:
        """Return the ids of all rows, in the order in which equal scores rank."""
        points = self.scroll(self.place.collection, self.only(), payload=_RANKED)
        return [chunk_of(point.id) for point in sorted(points, key=_place_of)]

    def documents(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids of all documents and the versions of their rows, both int64."""
        ids, versions, _ = self.document_states()
        return ids, versions

    def document_states(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the ids of all documents, the versions of their rows, and the keys of their facts, all int64."""
        said = self.scroll(self.place.facts, self.only("document"), payload=["id", "version", "key"])
        fields = ((one.payload["id"], one.payload["version"], one.payload["key"]) for one in said)
        rows = np.fromiter(fields, dtype=np.dtype((np.int64, 3)))
        return rows[:, 0], rows[:, 1], rows[:, 2]

    def dense(
        self, vector: np.ndarray, top: int, allowed: Allowed = None, *, documents: bool = False
    ) -> list[tuple[int, float]]:
        """Return chunk ids with cosine similarities, best first."""
        found = self._query(vector.astype(float).tolist(), DENSE, top + _MORE, allowed, documents)
        return [(chunk_of(point.id), float(point.score)) for point in sorted(found, key=_rank)[:top]]

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
        self._look_up({number_of(term) for term in terms})
        asked = question_vector(terms, weights, self.texts, lambda term: self._holding[number_of(term)])
        if not asked:
            return []
        sparse = self._client.models.SparseVector(indices=list(asked), values=list(asked.values()))
        found = self._query(sparse, WORDS, top + _MORE, allowed, documents)
        return [(chunk_of(point.id), float(point.score)) for point in sorted(found, key=_rank)[:top] if point.score > 0]

    def vocabulary(self) -> Collection[str]:
        """Return nothing: the engine holds numbers of tokens alone."""
        return ()

    def _look_up(self, tokens: Collection[int]) -> None:
        """Fetch how many chunks hold these tokens, unless that is already known."""
        if len(self._holding) > _KNOWN_TOKENS:
            self._holding.clear()
        if not (unknown := [number for number in tokens if number not in self._holding]):
            return
        if self._differences is None:
            self._differences = self.differences()
        since, rows = self._differences
        buckets = {bucket_of(number, self.about["buckets"]) for number in unknown}
        for point in self.buckets(buckets):
            counts, later = counts_in(point.payload), rows[since > point.payload["upto"]]
            for number in unknown:
                if bucket_of(number, self.about["buckets"]) == point.payload["bucket"]:
                    own, around = (
                        sum(int(held[name][held["number"] == number].sum()) for held in (counts, later))
                        for name in ("own", "around")
                    )
                    self._holding[number] = own, around

    def buckets(self, numbers: Iterable[int]) -> list[Any]:
        """Return buckets of the counts of tokens."""
        ids = [point_id("bucket", number) for number in numbers]
        return list(self._client.call("retrieve", self.place.facts, ids, with_payload=True))

    def differences(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the differences between the counts of generations, each with the generation that it belongs to."""
        points = list(self.scroll(self.place.facts, self.only("difference")))
        rows = [counts_in(point.payload) for point in points]
        since = [np.full(len(held), point.payload["since"]) for held, point in zip(rows, points, strict=True)]
        nothing = counts_in({"number": [], "own": [], "around": []})
        return np.concatenate([np.zeros(0, np.int64), *since]), np.concatenate([nothing, *rows])

    def _query(self, query: Any, using: str, limit: int, allowed: Allowed, documents: bool) -> list[Any]:
        models, found = self._client.models, list[Any]()
        finely = models.SearchParams(quantization=models.QuantizationSearchParams(rescore=True, oversampling=2.0))
        kind = None if documents else "chunk"
        for conditions in self._parts_of(allowed):
            found += self._client.call(
                "query_points",
                self.place.collection,
                query=query,
                using=using,
                limit=limit,
                query_filter=self.only(kind, *conditions),
                search_params=finely if using == DENSE else None,
                with_payload=_RANKED,
            ).points
        found.sort(key=lambda point: -point.score)
        return found[:limit]

    def _parts_of(self, allowed: Allowed) -> Iterator[list[Any]]:
        """Yield the conditions of the allowed rows, in several parts if they are too many for one request."""
        models = self._client.models
        if allowed is None:
            yield []
        elif isinstance(allowed, Filters):
            yield conditions_of(allowed, self.roots(), models) or []
        elif isinstance(allowed, AllowedDocuments):  # the ids of all their rows would be many more
            for first in range(0, len(allowed), _DOCUMENTS):
                some = allowed.ids[first : first + _DOCUMENTS].tolist()
                yield [models.FieldCondition(key="document", match=models.MatchAny(any=some))]
        else:
            ids = list(allowed)
            for first in range(0, len(ids), _DOCUMENTS):
                yield [models.HasIdCondition(has_id=points_of(ids[first : first + _DOCUMENTS]))]

    def only(self, kind: str | None = None, *conditions: Any) -> Any:
        """Return the filter of the engine for points of this generation, of a kind and under further conditions."""
        models, number = self._client.models, self.place.number
        must = [models.FieldCondition(key="since", range=models.Range(lte=number)), *conditions]
        if kind:
            must.append(models.FieldCondition(key="kind", match=models.MatchValue(value=kind)))
        return models.Filter(must=must, must_not=[models.FieldCondition(key="until", range=models.Range(lte=number))])

    def damage(self, *, hash_all: bool = True) -> list[str]:
        """Count the chunks; the engine itself checks its files."""
        if not hash_all:
            return []
        try:
            found = self._client.call("count", self.place.collection, count_filter=self.only(), exact=True).count
        except NothingThereError as error:
            return [str(error)]
        wanted = self.about["rows"]
        return [f"{self.stamp} holds {found:,} chunks instead of {wanted:,}"] if found != wanted else []

    def chunks_by_id(self, ids: Sequence[int]) -> dict[int, StoredChunk]:
        """Return the chunks with these ids."""
        points = self._client.call("retrieve", self.place.collection, points_of(ids), with_payload=True)
        held = [point for point in points if self.place.holds(point.payload)]
        return {chunk_of(point.id): passage_of(chunk_of(point.id), point.payload) for point in held}

    def version(self) -> str:
        """Return the stamp, which changes with every publish."""
        return self.stamp

    def roots(self) -> list[Path]:
        """Return the paths that `index` was given."""
        return [Path(root) for root in self.about["roots"]]

    def facts(self, documents: Collection[int] | None = None) -> list[DocumentFacts]:
        """Return the facts of all documents, or of these."""
        said = (point.payload for point in self.scroll(self.place.facts, self.only("document")))
        return [
            DocumentFacts(one["id"], one["path"], one["modified_ns"], one["date"], tuple(one["tags"]))
            for one in said
            if documents is None or one["id"] in documents
        ]

    def chunks_of(self, documents: Iterable[int]) -> Allowed:
        """Return the documents themselves: the engine filters chunks by document."""
        return AllowedDocuments(np.fromiter(documents, dtype=np.int64))

    def select(self, filters: Filters) -> Filters | None:
        """Return the filters if the engine can apply them, None if their documents are to be found by their facts."""
        return filters if conditions_of(filters, self.roots(), self._client.models) is not None else None

    def scroll(
        self, collection: str, only: Any, *, payload: bool | Sequence[str] = True, vectors: bool | Sequence[str] = False
    ) -> Iterator[Any]:
        """Yield all points that a filter lets pass."""
        offset = None
        while True:
            points, offset = self._client.call(
                "scroll",
                collection,
                scroll_filter=only,
                limit=_SCROLLED,
                offset=offset,
                with_payload=payload,
                with_vectors=vectors,
            )
            yield from points
            if offset is None:
                return


def _place_of(point: Any) -> tuple[str, int]:
    return point.payload["path"], point.payload["row"]


def _rank(point: Any) -> tuple[float, str, int]:
    return -point.score, *_place_of(point)
