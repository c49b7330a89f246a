"""One publish in Qdrant: write rows, facts, counts of tokens and at last the manifest of a new generation.

Documents are handled a few at a time, so the memory that it takes depends neither on their number nor on that of their
tokens. Who takes the right to publish last has it, and all others stop: two processes would else write one generation
together, if two machines have copies of one library.
"""

import itertools
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from local_rag.cluster.engines.client import Client, NothingThereError
from local_rag.cluster.engines.points import document_payload, facts_key, points_of, row_points
from local_rag.cluster.engines.qdrant_index import WORDS, Place, QdrantIndex, point_id
from local_rag.cluster.engines.sparse_vectors import (
    PER_BUCKET,
    Tally,
    bucket_of,
    counts_in,
    in_buckets,
    payload_of_counts,
    summed,
)
from local_rag.errors import ClusterError
from local_rag.index.protocol import Contents, PassageStore
from local_rag.settings import SearchEngineSettings

FORMAT = 3  # of the points; a library in another one is written again
_REQUEST = 128  # points
_TOGETHER = 64  # documents that are compared with what the engine holds of them
_FACTS_TOGETHER = 4096
IN_TURN = 64  # publishes until each bucket has taken up the differences before
_DIFFERENCES = 20_000  # tokens in one point

Batch = TypeVar("Batch", np.ndarray, Sequence[int])


class Claim:
    """A client of Qdrant that asks before each write whether the right is still this process's own.

    The right to the collections of a generation is a point of its facts. Before the first publish there is none; then
    each process writes to new collections and deletes those of others.
    """

    def __init__(self, client: Client, place: Place | None) -> None:
        self.client, self.models = client, client.models
        self._facts, self._own = place.facts if place else "", secrets.token_hex(8)
        if place:
            others = self._holder()
            claim = client.models.PointStruct(id=point_id("claim"), vector={}, payload={"process": self._own})
            client.insist("upsert", self._facts, [claim], wait=True)
            if others:  # a process that was killed, or one that is writing
                client.sleep(_PAUSE_SECONDS)

    def _holder(self) -> str:
        points = self.client.insist("retrieve", self._facts, [point_id("claim")], with_payload=True)
        return str(points[0].payload["process"]) if points else ""

    def insist(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Do a write that may be repeated; raise ClusterError if another process has taken the right."""
        self.require()
        return self.client.insist(method, *arguments, **named)

    def require(self) -> None:
        """Raise ClusterError if another process has taken the right."""
        if self._facts and self._holder() != self._own:
            raise self.lost()

    def lost(self) -> ClusterError:
        """Return the error for a process that has lost the right."""
        engine = self.client.engine
        return ClusterError(
            f"Another process writes the library {engine.name} in {engine.url}, and nothing of this run was published; "
            "run the same command again when the other one has finished."
        )

    def give_back(self) -> None:
        """Let the next process begin at once."""
        if self._facts:
            with suppress(NothingThereError):
                self.client.insist("delete", self._facts, [point_id("claim")], wait=True)


class Publish:
    """The contents of a new generation, and how they get into the engine."""

    def __init__(
        self, client: Claim, passages: PassageStore, contents: Contents, access: SearchEngineSettings, in_turn: int
    ) -> None:
        self._client, self._passages, self._contents, self._in_turn = client, passages, contents, in_turn
        self._layout = {"shards": access.shards, "replicas": access.replicas}
        by_id = np.argsort(contents.documents)
        self._ids, self._versions = contents.documents[by_id], contents.versions[by_id]
        self._tally = Tally()
        self._dimension = 1

    def close(self) -> None:
        """Delete what was kept aside."""
        self._tally.close()

    def keeps_most_of(self, live: QdrantIndex) -> bool:
        """Compare with a live generation; return whether at least half of the documents are kept as they are."""
        about = live.about
        if about["format"] != FORMAT or about["layout"] != self._layout:
            return False
        ids, versions, keys = live.document_states()
        places = np.minimum(np.searchsorted(self._ids, ids), max(0, len(self._ids) - 1))
        kept = np.zeros(len(ids), dtype=bool)
        if len(self._ids):
            kept = (self._ids[places] == ids) & (self._versions[places] == versions)
        for some in _batches(np.flatnonzero(kept), _FACTS_TOGETHER):
            now = {facts.id: facts_key(facts) for facts in self._passages.facts(ids[some].tolist())}
            kept[some] = [now.get(one) == key for one, key in zip(ids[some].tolist(), keys[some].tolist(), strict=True)]
        self._gone = ids[~kept]
        self._new = self._contents.documents[~np.isin(self._contents.documents, ids)]
        return bool(2 * kept.sum() >= max(1, len(self._ids), len(ids)))

    def add_to(self, live: QdrantIndex, new: Place, manifest: Mapping[str, Any]) -> None:
        """Write what a live generation lacks, and mark what the new one lacks of it."""
        self._dimension = live.about["dimension"]
        for some in _batches(self._gone, _TOGETHER):
            taken = self._mark(live, new, some.tolist())
            self._write(some[np.isin(some, self._ids)], new, taken)
        self._write(self._new, new, frozenset())
        self._write_differences(live, new)
        self._mark_points(new.facts, [point_id("manifest", live.place.number)], new)
        rows, blocks = (before + added for before, added in zip(live.texts, self._tally.texts, strict=True))
        self._finish(new, manifest, (rows, blocks), live.about["buckets"], live.about["deleted"] + len(self._gone))

    def write(self, new: Place, manifest: Mapping[str, Any], create: Callable[[int], None]) -> None:
        """Write everything to new collections."""
        for document in self._contents.rows(self._contents.documents[:1].tolist()):
            self._dimension = document.vectors.shape[1]
        create(max(1, self._dimension))
        self._write(self._contents.documents, new, frozenset())
        buckets = max(1, -(-self._tally.different() // PER_BUCKET))
        full = (
            self._point(point_id("bucket", bucket), {**_bucket(bucket, new.number), **payload_of_counts(rows)})
            for bucket, rows in in_buckets(self._tally.sums(), buckets)
        )
        upsert(self._client, new.facts, full)
        self._finish(new, manifest, self._tally.texts, buckets, 0)

    def _point(self, identifier: int | str, payload: Mapping[str, Any], vector: Any = None) -> Any:
        return self._client.models.PointStruct(id=identifier, vector=vector or {}, payload=dict(payload))

    def _write(self, documents: np.ndarray, new: Place, taken: Collection[int]) -> None:
        """Write the rows and facts of documents beside the points whose ids are taken."""
        upsert(self._client, new.collection, self._rows(documents, new, taken))
        upsert(self._client, new.facts, self._documents(documents, new, taken))

    def _rows(self, documents: np.ndarray, new: Place, taken: Collection[int]) -> Iterator[Any]:
        models = self._client.models
        for some in _batches(documents, _TOGETHER):
            facts = {one.id: one for one in self._passages.facts(some.tolist())}
            for document in self._contents.rows(some.tolist()):
                stored = self._passages.chunks_by_id([int(one) for one in document.chunk_ids])
                rows = row_points(document, stored, facts[document.document_id], models)
                for chunk, vectors, payload in rows:
                    self._tally.add(payload["is_first"], vectors[WORDS].indices if WORDS in vectors else ())
                    yield self._point(2 * chunk + (2 * chunk in taken), {**payload, "since": new.number}, vectors)

    def _documents(self, documents: np.ndarray, new: Place, taken: Collection[int]) -> Iterator[Any]:
        for some in _batches(documents, _FACTS_TOGETHER):
            versions = dict(zip(some.tolist(), self._versions[np.searchsorted(self._ids, some)].tolist(), strict=True))
            for facts in self._passages.facts(some.tolist()):
                point = 2 * facts.id + (_document(2 * facts.id) in taken)
                yield self._point(point, {**document_payload(facts, versions[facts.id]), "since": new.number})

    def _mark(self, live: QdrantIndex, new: Place, documents: Sequence[int]) -> set[int]:
        """Take documents out of the new generation; return the ids of their points, which readers still see."""
        models, taken = self._client.models, set[int]()
        ours = models.FieldCondition(key="document", match=models.MatchAny(any=list(documents)))
        only = live.only(None, ours)
        for point in live.scroll(live.place.collection, only, payload=["is_first"], vectors=[WORDS]):
            sparse = (point.vector or {}).get(WORDS)
            self._tally.add(point.payload["is_first"], sparse.indices if sparse else (), -1)
            taken.add(int(point.id))
        facts = self._client.insist("retrieve", live.place.facts, points_of(documents), with_payload=True)
        held = [int(point.id) for point in facts if live.place.holds(point.payload)]
        self._client.insist(
            "set_payload", live.place.collection, {"until": new.number}, models.FilterSelector(filter=only), wait=True
        )
        self._mark_points(live.place.facts, held, new)
        return taken.union(map(_document, held))

    def _mark_points(self, collection: str, points: Sequence[int | str], new: Place) -> None:
        if points:
            self._client.insist("set_payload", collection, {"until": new.number}, list(points), wait=True)

    def _write_differences(self, live: QdrantIndex, new: Place) -> None:
        """Write how counts of tokens differ from before; add earlier differences to some buckets, or to all."""
        pieces = [piece for rows in self._tally.sums() for piece in _batches(rows, _DIFFERENCES)]
        about = {"kind": "difference", "since": new.number}
        differences = (
            self._point(point_id("difference", new.number, number), {**about, **payload_of_counts(rows)})
            for number, rows in enumerate(pieces)
        )
        upsert(self._client, new.facts, differences)
        since, earlier = live.differences()
        buckets, now = live.about["buckets"], live.place.number
        everything = len(earlier) > buckets * PER_BUCKET
        some = buckets if everything else -(-buckets // self._in_turn)
        turn = [(now * some + one) % buckets for one in range(some)]
        homes = np.array([bucket_of(int(number), buckets) for number in earlier["number"]], dtype=np.int64)
        upsert(self._client, new.facts, self._taken_up(live, turn, since, earlier, homes))
        models, last = self._client.models, now if everything else now - self._in_turn
        kind = models.FieldCondition(key="kind", match=models.MatchValue(value="difference"))
        stale = models.Filter(must=[kind, models.FieldCondition(key="since", range=models.Range(lte=last))])
        self._client.insist("delete", new.facts, models.FilterSelector(filter=stale), wait=True)

    def _taken_up(
        self, live: QdrantIndex, buckets: Sequence[int], since: np.ndarray, earlier: np.ndarray, homes: np.ndarray
    ) -> Iterator[Any]:
        """Yield buckets with the differences up to the live generation."""
        for some in _batches(buckets, _REQUEST):
            for point in live.buckets(some):
                bucket = point.payload["bucket"]
                later = earlier[(homes == bucket) & (since > point.payload["upto"])]
                if len(later):
                    rows = summed(np.concatenate([counts_in(point.payload), later]))
                    yield self._point(point.id, {**_bucket(bucket, live.place.number), **payload_of_counts(rows)})

    def _finish(
        self, new: Place, manifest: Mapping[str, Any], texts: tuple[int, int], buckets: int, deleted: int
    ) -> None:
        """Write the manifest, which comes last: if it is there, everything else is."""
        about = {
            "kind": "manifest",
            "since": new.number,
            "format": FORMAT,
            "layout": self._layout,
            "library": self._passages.library_id(),
            "manifest": dict(manifest),
            "dimension": max(1, self._dimension),
            "rows": texts[0],
            "blocks": texts[1],
            "buckets": buckets,
            "deleted": deleted,
            "roots": [str(root) for root in self._passages.roots()],
        }
        upsert(self._client, new.facts, [self._point(point_id("manifest", new.number), about)])
        damage = QdrantIndex(self._client.client, new).damage()
        if damage:
            self._client.require()  # or another process has deleted them
            raise ClusterError(
                f"The search engine lost chunks that it was sent ({damage[0]}), so nothing was published; see its log "
                "and publish everything again with `local-rag cluster copy`."
            )


def _document(point: int) -> int:
    """Return a number for the point of a document's facts that is the id of no row."""
    return -1 - point


def _bucket(bucket: int, upto: int) -> dict[str, Any]:
    return {"kind": "bucket", "bucket": bucket, "upto": upto}


def _batches(values: Batch, size: int) -> Iterator[Batch]:
    return (values[first : first + size] for first in range(0, len(values), size))


def upsert(client: Client | Claim, collection: str, points: Iterable[Any]) -> None:
    """Write points, some at a time."""
    waiting = iter(points)
    while batch := list(itertools.islice(waiting, _REQUEST)):
        client.insist("upsert", collection, batch, wait=True)


_PAUSE_SECONDS = 0.5  # in which a request that another process has begun ends
