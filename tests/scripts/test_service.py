"""The container file and the systemd unit name what is there, and systemd's own check accepts the unit."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "scripts" / "service"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="the unit is checked by systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "local-rag.service"
    text = (FOLDER / "local-rag.service").read_text()
    unit.write_text(re.sub(r"ExecStart=\S+", f"ExecStart={shutil.which('true')}", text))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert not [line for line in done.stderr.splitlines() if "local-rag.service" in line], done.stderr


def instructions() -> list[list[str]]:
    lines = (FOLDER / "Containerfile").read_text().replace("\\\n", " ").splitlines()
    return [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]


def last(name: str) -> str:
    return [rest for instruction, rest in instructions() if instruction == name][-1]


def health_check(port: int) -> int:
    """Run the container's health check for a port of this machine; return its exit status."""
    command = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    assert command[0] == "python"
    code = command[2].replace("8000", str(port))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode


def test_the_container_file_installs_only_wheels_and_ends_as_another_user() -> None:
    known = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "ENV", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    assert {name for name, _ in instructions()} <= known
    assert all(
        rest.startswith("docker.io/library/python:3.12-slim-") for name, rest in instructions() if name == "FROM"
    )
    runs = [rest for name, rest in instructions() if name == "RUN"]
    assert ["--only-binary :all:" in run for run in runs if "pip install" in run] == [True]
    assert not [run for run in runs if "apt-get" in run]
    user, volume = last("USER"), last("VOLUME")
    assert user not in ("root", "0")
    assert f"useradd --create-home --uid 10001 {user}" in runs[-1]
    assert f"--owner={user} {volume}" in runs[-1]
    assert last("WORKDIR") == volume
    assert f"LOCAL_RAG_MODELS={volume}/models" in last("ENV")


def test_its_wheels_are_where_the_release_script_puts_them() -> None:
    (copied,) = (rest.split()[0] for name, rest in instructions() if name == "COPY" and "--from" not in rest)
    assert f"folder={copied}\n" in (FOLDER.parent / "release.sh").read_text()
    assert not (FOLDER.parents[1] / ".dockerignore").read_text().startswith("dist")


@pytest.mark.slow
def test_the_health_check_tells_a_server_from_none(tmp_path: Path) -> None:
    arguments = json.loads(last("CMD"))
    arguments[arguments.index("--host") + 1] = "127.0.0.1"
    arguments[arguments.index("--port") + 1] = "0"
    command = [sys.executable, "-c", "from local_rag.cli.start import main; main()", *arguments]
    environment = os.environ | {"LOCAL_RAG_TOKEN": "a-token-of-this-test-1234567890", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            port = int(re.findall(r":(\d+)/", server.stdout.readline())[0])
            assert health_check(port) == 0
        finally:
            server.terminate()
            server.wait()
    assert health_check(port) != 0
