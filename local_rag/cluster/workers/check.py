"""Compare the machines of a cluster with this one before they get any work."""

from collections.abc import Mapping
from dataclasses import dataclass

from local_rag.cluster.hosts import head_of, private_addresses
from local_rag.cluster.workers.machine_worker import Fitting, facts_of
from local_rag.cluster.workers.ray_connection import connected, log
from local_rag.cluster.workers.ray_pool import RayWorkerPool, differences
from local_rag.errors import ClusterError
from local_rag.llama.load import load_embedder
from local_rag.llama.models_in_use import open_engine
from local_rag.model_records import Role
from local_rag.models.choice import chosen, writes_sentences
from local_rag.settings import Settings


@dataclass(frozen=True, slots=True)
class Machine:
    """The versions and model hashes of a machine, and how they differ from those of this machine."""

    name: str
    facts: Mapping[str, str]
    differences: tuple[str, ...]


def compare_machines(settings: Settings) -> list[Machine]:
    """Return this machine and all machines of the cluster; raise ClusterError if it cannot be reached."""
    names = chosen(settings)
    wanted: tuple[Role, ...] = ("embed", "context") if writes_sentences(settings) else ("embed",)
    fitted = {role: names[role] for role in wanted if role in names}
    own = facts_of(fitted)
    host = head_of(settings.cluster.address)[0]
    fitting = Fitting(fitted, private_addresses(host) | {host}, load_embedder, open_engine)
    with connected(settings.cluster.address) as ray, RayWorkerPool(ray, "embed", fitting, own, log) as pool:
        found = pool.compare()
    if not found:
        raise ClusterError(
            f"No machine of the cluster at {settings.cluster.address} takes work; join one with `local-rag cluster "
            f"start --join {settings.cluster.address}`."
        )
    missing = tuple(f"{name} {value}" for name, value in own.items() if value.startswith("missing"))
    others = [Machine(name, facts, tuple(differences(own, facts))) for name, facts in found.items()]
    return [Machine("this machine", own, missing), *others]
