"""A cluster on a network: what the firewall of docs/scale.md lets through, who may join, and what can be overheard."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_rag.cluster.workers.launch import _NEXT_PORTS, _RAY, _WORKER_PORTS
from tests.cluster.journaling import JOURNAL
from tests.support.namespaces import ROOT, Machine, Network, can_make, network

# Not imported: a process in which Ray is imported before it is told of certificates knows of none.
pytestmark = [
    pytest.mark.rest,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="the extra [cluster] is not installed"),
    pytest.mark.skipif(not can_make(), reason="needs root, `ip`, `nft` and namespaces"),
]
HEAD, FIRST, LAST = 6379, *_WORKER_PORTS
OPEN = [22, HEAD, HEAD + 1, HEAD + 2, FIRST, 10_500, LAST]
CLOSED = [*range(HEAD + 3, HEAD + 8), 6333, 6334, 8265, 10_001, LAST + 1, 34_567, 52_365]
COMMAND = [sys.executable, "-P", "-c", "from local_rag.cli.main import main; main()"]
MARK = "zeppelinmark"


def rules() -> str:
    """Return the firewall of the documentation, for the network and a user of this test."""
    block = re.search(r"(?ms)^    table inet cluster \{.*?^    \}", (ROOT / "docs/scale.md").read_text())
    assert block is not None
    return block[0].replace("10.0.0.0/24", "10.77.0.0/24").replace('"local-rag"', '"nobody"')


def close(machine: Machine) -> None:
    machine.run("nft", "-f", "-", input=rules())


@pytest.fixture
def net() -> Iterator[Network]:
    with network(head="10.77.0.5", worker="10.77.0.6", stranger="10.78.0.7") as made:
        yield made


def test_the_ports_that_others_need_are_the_first_ones() -> None:
    assert _NEXT_PORTS[:2] == ("node-manager-port", "object-manager-port")
    assert (HEAD, FIRST, LAST) == (6379, 10_002, 10_999)


def test_the_firewall_lets_the_cluster_in_and_nobody_else(net: Network) -> None:
    head, worker, stranger = net["head"], net["worker"], net["stranger"]
    with head.listening(OPEN + CLOSED), stranger.listening([443]), worker.listening([443]):
        for other in (worker, stranger):
            assert other.reached(head, OPEN + CLOSED) == sorted(OPEN + CLOSED), "without a firewall"
        close(head)
        assert worker.reached(head, OPEN + CLOSED) == OPEN
        assert stranger.reached(head, OPEN + CLOSED) == [22]
        assert head.reached(worker, [443], user="nobody") == [443]
        assert head.reached(stranger, [443], user="nobody") == [], "what runs as local-rag reaches the cluster only"
        assert head.reached(stranger, [443]) == [443]


class Site:
    """What is on the disks of the machines: a state folder each, and copies of the secrets."""

    def __init__(self, net: Network, folder: Path) -> None:
        self.net, self.folder = net, folder

    def environment(self, name: str) -> dict[str, str]:
        folder = self.folder / name
        return os.environ | {
            "LOCAL_RAG_CLUSTER_STATE": str(folder),
            "LOCAL_RAG_CLUSTER_TOKEN_FILE": str(folder / "secrets" / "token"),
            "PYTHONPATH": str(ROOT),
            JOURNAL: str(self.folder / "journal"),
        }

    def local_rag(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the cluster on a machine."""
        return self.net[name].run(*COMMAND, "cluster", *arguments, env=self.environment(name), check=False)

    def copy_secrets(self, name: str) -> None:
        """Do what the first printed command does."""
        shutil.copytree(self.folder / "head" / "secrets", self.folder / name / "secrets")

    def nodes(self) -> int:
        """Return how many machines are in the cluster."""
        code = (
            "import sys; from local_rag.cluster.workers.ray_connection import connected\n"
            "with connected('10.77.0.5:6379') as ray: alive = sum(one['Alive'] for one in ray.nodes())\n"
            "print(alive)"
        )
        done = self.net["head"].run(sys.executable, "-c", code, env=self.environment("head"))
        return int(done.stdout)

    def join_by_ray(self, name: str, **variables: str) -> subprocess.Popen[bytes]:
        """Let Ray itself try to join with the cluster's token, without asking local-rag."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        environment = self.environment(name) | {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.folder / "head" / "secrets" / "token"),
            "RAY_TMPDIR": str(folder),
            **variables,
        }
        options = ["start", "--address=10.77.0.5:6379", "--node-ip-address=10.77.0.6", "--block"]
        command = self.net["worker"].on_its_network([sys.executable, "-P", "-c", _RAY, *options])
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture
def site(net: Network) -> Iterator[Site]:
    folder = Path(tempfile.mkdtemp(prefix="lr"))  # short, for Ray has sockets in it
    for name in ("head", "worker"):
        close(net[name])
    made = Site(net, folder)
    (folder / "head" / "secrets").mkdir(parents=True)
    yield made
    for name in ("worker", "head"):
        made.local_rag(name, "stop")
    shutil.rmtree(folder, ignore_errors=True)


DRIVE = """
import sys
from pathlib import Path
from tests.cluster.test_workers import PARTS
from local_rag.library import Library
how = {"cluster": {"address": "10.77.0.5:6379"}, "profile": "tiny", "context_minutes": 9}
Library(Path(sys.argv[1]), parts=PARTS, **how).index([sys.argv[2]], contexts=True)
"""


def test_nobody_joins_without_a_certificate_and_nothing_can_be_overheard(net: Network, site: Site) -> None:
    head, worker = net["head"], net["worker"]
    started = site.local_rag("head", "start", "--host", head.address, "--json")
    assert started.returncode == 0, started.stderr
    assert [one.split()[0] for one in json.loads(started.stdout)["commands"]] == ["ssh", "local-rag"]
    secrets = site.folder / "head" / "secrets"
    token = (secrets / "token").read_text()

    # Without its authority, and with another one.
    (site.folder / "worker" / "secrets").mkdir(parents=True)
    shutil.copy2(secrets / "token", site.folder / "worker" / "secrets" / "token")
    refused = site.local_rag("worker", "start", "--join", "10.77.0.5:6379")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1), refused.stderr
    assert "cluster-authority from the head of the cluster" in refused.stderr
    code = """
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from local_rag.cluster.workers.certificates import Certificates
authority, own, days = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
own.mkdir(exist_ok=True)
certificates, now = Certificates(authority, own), datetime.now(UTC)
certificates.make_authority()
certificates.certify(["10.77.0.6"], (now - timedelta(days=9), now + timedelta(days=days)))
"""
    of_others = site.folder / "worker" / "secrets" / "cluster-authority"
    for authority, own, days in ((of_others, "wrong", 9), (secrets / "cluster-authority", "expired", -1)):
        worker.run(sys.executable, "-c", code, authority, site.folder / own, str(days))
    refused = site.local_rag("worker", "start", "--join", "10.77.0.5:6379")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1), refused.stderr
    assert "another authority" in refused.stderr

    # Ray itself refuses them too, though each has the token.
    tries = [site.join_by_ray("plain", RAY_USE_TLS="0")]
    for name in ("wrong", "expired"):
        kept = site.folder / name
        files = {"RAY_TLS_SERVER_CERT": kept / "node.crt", "RAY_TLS_SERVER_KEY": kept / "node.key"}
        files["RAY_TLS_CA_CERT"] = secrets / "cluster-authority" / "ca.crt"
        tries.append(site.join_by_ray(name, RAY_USE_TLS="1", **{key: str(value) for key, value in files.items()}))
    until = time.monotonic() + 20
    while time.monotonic() < until and any(one.poll() is None for one in tries):
        time.sleep(0.5)
    assert site.nodes() == 1
    for one in tries:
        one.kill()
        one.wait()

    # With what the head has printed it joins, unless the token is another one.
    shutil.rmtree(site.folder / "worker" / "secrets")
    site.copy_secrets("worker")
    (site.folder / "worker" / "secrets" / "token").write_text("0" * len(token))
    refused = site.local_rag("worker", "start", "--join", "10.77.0.5:6379")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1), refused.stderr
    assert "does not take the token in" in refused.stderr
    (site.folder / "worker" / "secrets" / "token").write_text(token)

    # Nothing of the work can be read between the two.
    documents, heard = site.folder / "documents", site.folder / "heard"
    documents.mkdir()
    for number in range(40):
        (documents / f"{number}.md").write_text(f"# {MARK} {number}\n\n" + f"The {MARK} leaves at {number}. " * 20)
    with net.recording(heard):
        joined = site.local_rag("worker", "start", "--join", "10.77.0.5:6379")
        assert joined.returncode == 0, joined.stderr
        assert site.nodes() == 2
        assert (site.folder / "worker" / "ray").is_dir(), "each machine has a folder of its own"
        command: list[str | Path] = [sys.executable, "-c", DRIVE, site.folder / "library", documents]
        worker.run(*command, env=site.environment("worker"))
    pids = {line.split()[0] for line in (site.folder / "journal").read_text().splitlines()}
    assert len(pids) == 2, "both machines have worked"
    overheard = heard.read_bytes()
    assert len(overheard) > 100_000
    for secret in (MARK, token):
        assert secret.encode() not in overheard

    # The same recording of what is not encrypted finds it.
    send = "import socket, sys; socket.create_connection(('10.77.0.5', 10_500)).sendall(sys.argv[1].encode() * 99)"
    with head.listening([10_500]), net.recording(heard):
        worker.run(sys.executable, "-c", send, token)
        time.sleep(0.5)
    assert token.encode() in heard.read_bytes()
