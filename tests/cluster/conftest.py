"""Two machines on loopback: real Ray processes of this test's own, ended with it."""

import importlib.util
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.journaling import JOURNAL

FULL = os.environ.get("LOCAL_RAG_TEST_CLUSTER") == "full"
_TRIES = 3
NODE = {"num_cpus": 1, "object_store_memory": 80 << 20}


def _add(cluster: Any, **more: Any) -> Any:
    """Start a machine; try again where that took too long."""
    for _ in range(_TRIES):
        try:
            return cluster.add_node(**NODE, **more)
        except Exception as error:  # noqa: BLE001  Ray has no narrower one for it
            last = error
    raise last


class Two:
    """A cluster of two machines, and the journal of its workers."""

    def __init__(self, cluster: Any, journal: Path) -> None:
        self.cluster, self.journal, self.address = cluster, journal, cluster.address
        self.nodes = [_add(cluster)]

    def written(self) -> list[tuple[int, str]]:
        """Return who wrote which context, in that order."""
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        return [(int(pid), key) for pid, _, key in (line.partition(" ") for line in lines)]


@pytest.fixture(scope="session")
def started() -> Iterator[Two]:
    # Not imported: whether there are a token and certificates Ray looks up only then.
    if importlib.util.find_spec("ray") is None:
        pytest.skip("the extra [cluster] is not installed")
    # Its path must be short: Ray has sockets in it.
    state = Path(tempfile.mkdtemp(prefix="lr"))
    before = dict(os.environ)
    os.environ |= {
        "LOCAL_RAG_CLUSTER_STATE": str(state),
        "LOCAL_RAG_CLUSTER_TOKEN_FILE": str(state / "token"),
        JOURNAL: str(state / "journal"),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]).rstrip(":"),
    }
    from local_rag.cluster.workers.ray_connection import certificates, make_token, ray_environment

    make_token()
    certificates().make_authority()
    certificates().certify([])
    os.environ |= ray_environment("127.0.0.1")
    from ray.cluster_utils import Cluster

    # Whoever ends the tests ends Ray with them.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    cluster = Cluster()
    try:
        # Ray gives a machine half a minute to start, which a busy one may miss.
        _add(cluster, include_dashboard=False)
        yield Two(cluster, state / "journal")
    finally:
        cluster.shutdown()
        os.environ.clear()
        os.environ |= before
        shutil.rmtree(state, ignore_errors=True)


@pytest.fixture
def two(started: Two) -> Two:
    """The cluster with an empty journal."""
    started.journal.unlink(missing_ok=True)
    return started
