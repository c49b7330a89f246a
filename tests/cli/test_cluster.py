import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.conftest import Run

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-P", "-c", "from local_rag.cli.main import main; main()"]


def test_without_a_cluster_each_command_says_what_to_set(run: Run, tmp_path: Path) -> None:
    for command, variable in (("check", "LOCAL_RAG_CLUSTER_ADDRESS"), ("copy", "LOCAL_RAG_SEARCH_ENGINE_ADDRESS")):
        result = run("cluster", command, "--library", tmp_path / "none")
        assert result.exit_code == 1
        assert variable in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert run("cluster", "start", "--drive-only").exit_code == 2


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("LOCAL_RAG_CLUSTER_ADDRESS", "8.8.8.8:6379", "public address"),
        ("LOCAL_RAG_CLUSTER_ADDRESS", "127.0.0.1:9", "No cluster answers at 127.0.0.1:9"),
        ("LOCAL_RAG_CLUSTER_ADDRESS", "10.0.0.5:port", "is not an address"),
        ("LOCAL_RAG_SEARCH_ENGINE_ADDRESS", "qdrant:http://127.0.0.1:9/x", "No search engine answers"),
        ("LOCAL_RAG_CLUSTER_ADDRESS", "[::1", "is not an address"),
        ("LOCAL_RAG_SEARCH_ENGINE_ADDRESS", "qdrant:http://127.0.0.1:99999/x", "is not a search engine"),
        ("LOCAL_RAG_SEARCH_ENGINE_ADDRESS", "solr:http://127.0.0.1:9/x", "is not a search engine"),
    ],
)
def test_what_cannot_be_reached_is_one_sentence(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv(variable, value)
    monkeypatch.setenv("LOCAL_RAG_CLUSTER_STATE", str(tmp_path))
    monkeypatch.setenv("LOCAL_RAG_CLUSTER_TOKEN_FILE", str(tmp_path / "token"))
    (tmp_path / "token").write_text("0" * 64)
    (tmp_path / "token").chmod(0o600)
    result = run("cluster", "check", "--library", tmp_path / "none", "--profile", "tiny")
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stdout == ""


def test_a_token_that_others_may_read_is_refused(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RAG_CLUSTER_ADDRESS", "127.0.0.1:6379")
    monkeypatch.setenv("LOCAL_RAG_CLUSTER_STATE", str(tmp_path))
    monkeypatch.setenv("LOCAL_RAG_CLUSTER_TOKEN_FILE", str(tmp_path / "token"))
    (tmp_path / "token").write_text("0" * 64)
    (tmp_path / "token").chmod(0o644)
    result = run("cluster", "check", "--library", tmp_path / "none", "--profile", "tiny")
    assert result.exit_code == 1
    assert f"chmod 600 {tmp_path / 'token'}" in result.stderr


def test_a_sealed_command_reaches_the_hosts_that_are_named_and_no_other(tmp_path: Path) -> None:
    code = """
import socket, sys
from local_rag.offline import Cluster, OfflineError, close
close(Cluster(frozenset({"10.1.2.3", "engine.internal"})))
for host in ("10.1.2.3", "127.0.0.1"):
    sys.audit("socket.connect", socket.socket(), (host, 1))
sys.audit("socket.getaddrinfo", "engine.internal", 1, 0, 0, 0)
for host in ("10.1.2.4", "8.8.8.8"):
    try:
        sys.audit("socket.connect", socket.socket(), (host, 1))
    except OfflineError as error:
        assert "10.1.2.3, engine.internal" in str(error)
    else:
        sys.exit(f"{host} could be reached")
close()
try:
    sys.audit("socket.connect", socket.socket(socket.AF_UNIX), "/x")
    sys.audit("socket.gethostbyname", "engine.internal")
except OfflineError:
    print("closed")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("closed\n", "")


def _python_below_a_space(folder: Path) -> str:
    """Return this Python at a path that has a space."""
    if sys.prefix == sys.base_prefix:
        pytest.skip("needs a virtual environment, which can be reached through a link")
    link = folder / "a b"
    link.symlink_to(sys.prefix)
    return str(link / Path(sys.executable).relative_to(sys.prefix))


def test_python_that_no_path_without_a_space_reaches_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "c d"
    environment = os.environ | {
        "LOCAL_RAG_CLUSTER_STATE": str(state),
        "LOCAL_RAG_CLUSTER_TOKEN_FILE": str(tmp_path / "token"),
    }
    command = [_python_below_a_space(tmp_path), *COMMAND[1:], "cluster", "start"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert "set LOCAL_RAG_CLUSTER_STATE to a folder without one" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (state / "started.json").exists()


def test_a_cluster_is_started_checked_and_stopped_by_python_below_a_path_with_a_space() -> None:
    with tempfile.TemporaryDirectory(prefix="lr") as state, socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
        reserved.close()
        token = Path(state) / "token"
        python = _python_below_a_space(Path(state))
        environment = os.environ | {
            "LOCAL_RAG_CLUSTER_STATE": state,
            "LOCAL_RAG_CLUSTER_TOKEN_FILE": str(token),
            "LOCAL_RAG_CLUSTER_ADDRESS": f"127.0.0.1:{port}",
            "LOCAL_RAG_PROFILE": "tiny",
        }

        def local_rag(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = [python, *COMMAND[1:], "cluster", *arguments]
            return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=state)

        started = local_rag("start", "--port", str(port), "--json")
        try:
            assert started.returncode == 0, started.stderr
            assert json.loads(started.stdout)["address"] == f"127.0.0.1:{port}"
            assert stat.S_IMODE(token.stat().st_mode) == 0o600
            assert "already runs here" in local_rag("start").stderr
            checked = local_rag("check", "--json")
            assert checked.returncode == 0, checked.stderr
            machines = json.loads(checked.stdout)["machines"]
            assert [one["differences"] for one in machines] == [[], []]
            assert {"Python", "ray", "llama-cpp-python", "embed model", "context model"} <= set(machines[1]["facts"])
        finally:
            stopped = local_rag("stop", "--json")
        assert json.loads(stopped.stdout)["stopped"]["address"] == f"127.0.0.1:{port}"
        assert json.loads(local_rag("stop", "--json").stdout) == {"stopped": None}
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=5)
