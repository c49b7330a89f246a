"""The right to change the generations of a library in Qdrant: who takes it last has it, and all others stop.

Two processes would else write one generation together, if two machines have copies of one library.
"""

import secrets
from contextlib import suppress
from typing import Any

from local_rag.cluster.engines.client import Client, NothingThereError
from local_rag.cluster.engines.qdrant_index import Place, point_id
from local_rag.errors import ClusterError

_PAUSE_SECONDS = 0.5  # in which a request that another process has begun ends


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
