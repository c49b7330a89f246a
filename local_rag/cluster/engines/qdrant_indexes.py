"""The generations of a library in Qdrant: a publish writes a new one, then switches an alias to it.

Until the switch, readers see the previous generation, whole, and may finish with it. A killed publish leaves
collections that no alias names; the next publish removes them.
"""

import itertools
import re
import secrets
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from local_rag.cluster.engines.access import DIRECT, Access
from local_rag.cluster.engines.client import Client
from local_rag.cluster.engines.qdrant_index import DENSE, MANIFEST, WORDS, QdrantIndex, facts_of, payload_of
from local_rag.cluster.engines.sparse_vectors import PostingRow, chunk_vector, posting_rows, statistics_of
from local_rag.cluster.hosts import engine_of
from local_rag.errors import ClusterError
from local_rag.index.keyword_index import document_tokens
from local_rag.index.protocol import Contents, DocumentRows, PassageStore
from local_rag.index.scoring import Statistics, token_number
from local_rag.index.vector_index import blend_neighbours

_POINTS = 128  # per request
_POSITION_BITS = 24  # for the position of a chunk in its document


class QdrantIndexes:
    """The generations of one library. Only those made by `over` can publish: they copy its passages."""

    def __init__(
        self,
        setting: str,
        passages: PassageStore | None = None,
        *,
        access: Access = DIRECT,
        client: Client | None = None,
    ) -> None:
        self._setting, self._passages = setting, passages
        self._client = client or Client(engine_of(setting), access)
        self._name = self._client.engine.name

    def over(self, passages: PassageStore) -> "QdrantIndexes":
        """Return the same indexes, ready to publish these passages."""
        return QdrantIndexes(self._setting, passages, client=self._client)

    def live_name(self) -> str:
        """Return the name of the live collection, empty before the first publish."""
        aliases = self._client.call("get_aliases").aliases
        return next((one.collection_name for one in aliases if one.alias_name == self._name), "")

    def live_stamp(self) -> str:
        """Return the name of the live collection: no two generations share one."""
        return self.live_name()

    def live(self) -> QdrantIndex | None:
        """Return the live index, or None before the first publish."""
        name = self.live_name()
        return QdrantIndex(self._client, name) if name else None

    def publish(self, contents: Contents, manifest: Mapping[str, Any], *, rebuild: bool = False) -> None:
        """Write a generation, switch the alias to it, and remove generations before the previous one.

        Everything is always written again. The rows are read twice, because the weights of words depend on the
        average length of all texts.
        """
        before = self.live_name()
        numbers = [number for name in self._collections() if (number := self._number(name)) is not None]
        collection = f"{self._name}_g{max(numbers, default=0) + 1:06}_{secrets.token_hex(4)}"
        total, own, around = Statistics(), Counter[str](), Counter[str]()
        chunks = dimension = 0
        for document, words in _documents(contents):
            dimension, chunks = document.vectors.shape[1], chunks + len(words)
            total += statistics_of(words[part] for part in document.parts)
            for row in words:
                own.update(row.own.keys())
            for surroundings in {id(row.around): row.around for row in words}.values():
                around.update(surroundings.keys())
        self._create(collection, max(1, dimension))
        self._upsert(collection, self._points(contents, total))
        about = {"manifest": dict(manifest), "own": asdict(total.own), "around": asdict(total.around), "chunks": chunks}
        self._upsert(facts_of(collection), self._facts(contents, about, own, around))
        found = self._client.insist("count", collection, exact=True).count
        if found != chunks:
            raise ClusterError(
                f"The search engine holds only {found:,} of the {chunks:,} chunks it was sent, so nothing was "
                "published; see its log and run the same command again."
            )
        self._switch(collection, before)

    def _collections(self) -> list[str]:
        return [one.name for one in self._client.insist("get_collections").collections]

    def _number(self, collection: str) -> int | None:
        """Return the number of a generation of this library, None for other collections."""
        found = re.fullmatch(rf"{re.escape(self._name)}_g(\d{{6}})_[0-9a-f]{{8}}(_facts)?", collection)
        return int(found[1]) if found else None

    def _create(self, collection: str, dimension: int) -> None:
        models = self._client.models
        sparse = {WORDS: models.SparseVectorParams()}
        dense = {DENSE: models.VectorParams(size=dimension, distance=models.Distance.DOT)}
        self._client.insist("create_collection", collection, vectors_config=dense, sparse_vectors_config=sparse)
        self._client.insist("create_collection", facts_of(collection), vectors_config={}, sparse_vectors_config=sparse)
        fields = (
            (collection, "document", "integer"),
            (collection, "kind", "keyword"),
            (facts_of(collection), "kind", "keyword"),
        )
        for where, field, kind in fields:
            self._client.insist("create_payload_index", where, field_name=field, field_schema=kind, wait=True)

    def _points(self, contents: Contents, total: Statistics) -> Iterator[Any]:
        """Yield a point for each chunk, with its position in the order in which equal scores rank."""
        models, passages = self._client.models, self._require_passages()
        order_of = {int(document): position for position, document in enumerate(contents.documents)}
        for document, words in _documents(contents):
            stored = passages.chunks_by_id([int(one) for one in document.chunk_ids])
            parts = [number for number, part in enumerate(document.parts) for _ in words[part]]
            vectors = blend_neighbours(document.vectors, parts)
            first = order_of[document.document_id] << _POSITION_BITS
            for order, (chunk, vector, row) in enumerate(zip(document.chunk_ids, vectors, words, strict=True), first):
                named: dict[str, Any] = {DENSE: vector.astype(float).tolist()}
                if sparse := chunk_vector(row, total):
                    named[WORDS] = models.SparseVector(indices=list(sparse), values=list(sparse.values()))
                yield models.PointStruct(id=int(chunk), vector=named, payload=payload_of(stored[chunk], order))

    def _facts(
        self, contents: Contents, about: Mapping[str, Any], own: Counter[str], around: Counter[str]
    ) -> Iterator[Any]:
        """Yield a point for each document, each token and the manifest."""
        models, passages = self._client.models, self._require_passages()
        version_of = dict(zip(contents.documents.tolist(), contents.versions.tolist(), strict=True))
        for facts in passages.facts():
            if facts.id in version_of:
                said = {**asdict(facts), "kind": "document", "version": version_of[facts.id]}
                identifier = str(uuid.uuid5(uuid.NAMESPACE_OID, f"document {facts.id}"))
                yield models.PointStruct(id=identifier, vector={}, payload=said)
        for token, count in own.items():
            said = {"kind": "token", "own": count, "around": around[token]}
            yield models.PointStruct(id=token_number(token), vector={}, payload=said)
        # The manifest comes last: if it is there, everything else is.
        roots = [str(root) for root in passages.roots()]
        yield models.PointStruct(id=MANIFEST, vector={}, payload={**about, "roots": roots, "kind": "manifest"})

    def _require_passages(self) -> PassageStore:
        assert self._passages is not None, "publishing needs passages; call over() first"
        return self._passages

    def _upsert(self, collection: str, points: Iterable[Any]) -> None:
        waiting = iter(points)
        while batch := list(itertools.islice(waiting, _POINTS)):
            self._client.insist("upsert", collection, batch, wait=True)

    def _switch(self, collection: str, before: str) -> None:
        models = self._client.models
        made = models.CreateAlias(collection_name=collection, alias_name=self._name)
        change = [models.CreateAliasOperation(create_alias=made)]
        if before:
            change.insert(0, models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=self._name)))
        self._client.call("update_collection_aliases", change)
        # The previous one stays for readers that are using it.
        self._remove_all_but(collection, before)

    def unused(self, *kept: str) -> list[Path]:
        """Return no folders: these indexes are not on this machine."""
        return []

    def sizes(self) -> dict[str, int]:
        """Return the live index, which takes no space on this machine."""
        return dict.fromkeys(filter(None, [self.live_name()]), 0)

    def expunge(self) -> None:
        """Do nothing: every generation is written anew."""

    def prune(self) -> None:
        """Remove every generation except the live one."""
        self._remove_all_but(self.live_name())

    def _remove_all_but(self, *generations: str) -> None:
        kept = {name for one in generations if one for name in (one, facts_of(one))}
        for name in self._collections():
            if self._number(name) is not None and name not in kept:
                self._client.insist("delete_collection", name)


def _documents(contents: Contents) -> Iterator[tuple[DocumentRows, list[PostingRow]]]:
    """Yield the rows of each document, with their words."""
    for document in contents.rows(contents.documents.tolist()):
        tokens = document_tokens(document.texts)
        yield document, [row for part in document.parts for row in posting_rows(tokens[part])]
