"""The generations of a library in Qdrant: a publish writes what is new, then switches an alias to the new generation.

What a generation lacks of the one before is marked, and deleted by the next publish: readers of either see all of it.
Until the switch, nothing that a killed publish has written belongs to any generation; the next publish removes it.
Everything is written again, to collections of its own, only where little would be kept or an index is to be rebuilt.
"""

import re
import secrets
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from local_rag.cluster.engines.client import DIRECT, AlreadyThereError, Client, NothingThereError
from local_rag.cluster.engines.points import INDEXED
from local_rag.cluster.engines.publishing import IN_TURN, Claim, Publish, upsert
from local_rag.cluster.engines.qdrant_index import DENSE, WORDS, Place, QdrantIndex, point_id
from local_rag.cluster.hosts import engine_of
from local_rag.errors import ClusterError, DamagedLibraryError
from local_rag.index.protocol import Contents, PassageStore
from local_rag.settings import SearchEngineSettings


class QdrantIndexes:
    """The generations of one library. Only those made by `over` can publish: they know the library and its passages."""

    def __init__(
        self,
        setting: str,
        passages: PassageStore | None = None,
        *,
        access: SearchEngineSettings = DIRECT,
        client: Client | None = None,
        in_turn: int = IN_TURN,
    ) -> None:
        self._setting, self._passages, self._access, self._in_turn = setting, passages, access, in_turn
        self._client = client or Client(engine_of(setting), access)
        self._name = self._client.engine.name

    def over(self, passages: PassageStore) -> "QdrantIndexes":
        """Return the same indexes, ready to publish these passages."""
        return QdrantIndexes(self._setting, passages, access=self._access, client=self._client, in_turn=self._in_turn)

    def place(self) -> Place | None:
        """Return where the live generation is, None before the first publish."""
        for alias in self._client.call("get_aliases").aliases:
            if found := re.fullmatch(rf"{re.escape(self._name)}\.g(\d+)", alias.alias_name):
                return Place(alias.collection_name, int(found[1]))
        return None

    def live_name(self) -> str:
        """Return the name of the live generation, empty before the first publish."""
        place = self.place()
        return place.stamp if place else ""

    def live_stamp(self) -> str:
        """Return the name of the live generation: no two share one."""
        return self.live_name()

    def live(self) -> QdrantIndex | None:
        """Return the live index, or None before the first publish."""
        place = self.place()
        return QdrantIndex(self._client, place) if place else None

    def publish(
        self, contents: Contents, manifest: Mapping[str, Any], *, rebuild: bool = False, replace: bool = False
    ) -> None:
        """Write what the live generation lacks, and switch to a generation with these contents.

        To `rebuild`, or where less than half of it would be kept, write everything to new collections.
        """
        assert self._passages is not None, "publishing needs passages; call over() first"
        passages, place = self._passages, self.place()
        try:
            live = QdrantIndex(self._client, place) if place else None
        except DamagedLibraryError:
            if not (rebuild or replace):
                raise
            live = None
        if live and not replace:
            self._require_own(live)
        claim = self._claim(place)
        number = place.number + 1 if place else 1
        try:
            with closing(Publish(claim, passages, contents, self._access, self._in_turn)) as publish:
                if live and not rebuild and not replace and publish.keeps_most_of(live):
                    new = Place(live.place.collection, number)
                    publish.add_to(live, new, manifest)
                else:
                    new = Place(f"{self._name}_{secrets.token_hex(4)}", number)
                    publish.write(new, manifest, lambda dimension: self._create(claim, new, dimension))
            self._switch(claim, new, place)
        except NothingThereError:  # another process has deleted what this one reads or writes
            raise claim.lost() from None

    def _require_own(self, live: QdrantIndex) -> None:
        if self._passages is not None and live.library_id() != self._passages.library_id():
            raise ClusterError(
                f"{self._setting} holds another library; choose another name in `search_engine.address`, or replace "
                "it with `local-rag cluster copy --replace`."
            )

    def _create(self, claim: Claim, place: Place, dimension: int) -> None:
        models = claim.models
        sparse = {WORDS: models.SparseVectorParams()}
        int8 = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
        dense = models.VectorParams(
            size=dimension,
            distance=models.Distance.DOT,
            on_disk=True,
            quantization_config=models.ScalarQuantization(scalar=int8),
        )
        for name, vectors in ((place.collection, {DENSE: dense}), (place.facts, {})):
            with suppress(AlreadyThereError):  # its name is new, so an earlier request was carried out and not answered
                claim.insist(
                    "create_collection",
                    name,
                    vectors_config=vectors,
                    sparse_vectors_config=sparse,
                    shard_number=self._access.shards or None,
                    replication_factor=self._access.replicas or None,
                )
        common = {"since": "integer", "until": "integer", "kind": "keyword"}
        for where, fields in ((place.collection, common | {"document": "integer"} | INDEXED), (place.facts, common)):
            for field, kind in fields.items():
                claim.insist("create_payload_index", where, field_name=field, field_schema=kind, wait=True)

    def _switch(self, claim: Claim, new: Place, before: Place | None) -> None:
        """Let the alias name another generation; the engine does all of it or nothing."""
        models = self._client.models
        made = models.CreateAlias(collection_name=new.collection, alias_name=self._alias(new))
        change = [models.CreateAliasOperation(create_alias=made)]
        if before:
            gone = models.DeleteAlias(alias_name=self._alias(before))
            change.insert(0, models.DeleteAliasOperation(delete_alias=gone))
        if self.place() != before:
            raise claim.lost()
        claim.require()
        self._client.call("update_collection_aliases", change)
        claim.give_back()

    def _alias(self, place: Place) -> str:
        return f"{self._name}.g{place.number:06}"

    def unused(self, *kept: str) -> list[Path]:
        """Return no folders: these indexes are not on this machine."""
        return []

    def sizes(self) -> dict[str, int]:
        """Return the live index, which takes no space on this machine."""
        return dict.fromkeys(filter(None, [self.live_name()]), 0)

    def expunge(self) -> None:
        """Copy the live generation to new collections, if its own have held anything else.

        What is deleted from a collection may stay in the engine's files for long.
        """
        if (live := self.live()) is None:
            return
        self._require_own(live)
        if not live.about["deleted"]:
            return
        claim = self._claim(live.place)
        new = Place(f"{self._name}_{secrets.token_hex(4)}", live.place.number + 1)
        self._create(claim, new, live.about["dimension"])
        models = self._client.models
        left = {point_id("manifest", live.place.number), point_id("claim")}
        for source, target in ((live.place.collection, new.collection), (live.place.facts, new.facts)):
            points = live.scroll(source, None, vectors=True)
            kept = (point for point in points if point.id not in left)
            records = (models.PointStruct(id=one.id, vector=one.vector or {}, payload=one.payload) for one in kept)
            upsert(claim, target, records)
        about = {**live.about, "since": new.number, "deleted": 0}
        manifest = models.PointStruct(id=point_id("manifest", new.number), vector={}, payload=about)
        upsert(claim, new.facts, [manifest])
        self._switch(claim, new, live.place)
        self._remove_all_but(self._client, new)

    def prune(self) -> None:
        """Remove every generation except the live one."""
        if live := self.live():
            self._require_own(live)
        self._claim(live.place if live else None).give_back()

    def _claim(self, place: Place | None) -> Claim:
        """Take the right to publish, and remove what other processes have not finished."""
        claim = Claim(self._client, place)
        if self.place() != place:  # another process has published before this one had the right
            raise claim.lost()
        self._remove_all_but(claim, place)
        return claim

    def _remove_all_but(self, client: Client | Claim, kept: Place | None) -> None:
        """Delete other collections, and in those of this generation what does not belong to it."""
        names = {kept.collection, kept.facts} if kept else set()
        own = re.compile(rf"{re.escape(self._name)}_[0-9a-f]{{8}}(_facts)?")
        for one in self._client.insist("get_collections").collections:
            if own.fullmatch(one.name) and one.name not in names:
                client.insist("delete_collection", one.name)
        if kept is None:
            return
        models = client.models

        def condition(key: str, **limits: int) -> Any:
            return models.Filter(must=[models.FieldCondition(key=key, range=models.Range(**limits))])

        for name in (kept.collection, kept.facts):
            for gone in (condition("since", gt=kept.number), condition("until", lte=kept.number)):
                client.insist("delete", name, models.FilterSelector(filter=gone), wait=True)
            marked = condition("until", gt=kept.number)
            client.insist("delete_payload", name, ["until"], models.FilterSelector(filter=marked), wait=True)
