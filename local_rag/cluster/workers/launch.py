"""Start and stop Ray on this machine, and print the commands for the other machines."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from local_rag.cluster.hosts import head_of, private_addresses
from local_rag.cluster.workers.ray_connection import (
    certificates,
    import_ray,
    make_token,
    ray_environment,
    require_answer,
    require_token,
    state_folder,
    token_file,
)
from local_rag.errors import ClusterError

_START_SECONDS, _STOP_SECONDS = 180.0, 30.0  # it takes 5 seconds on an idle machine
_STARTS = 3
# What Ray prints when it has started, when it has not within the 30 seconds that it gives itself, and why it may not.
_STARTED, _TOO_SLOW, _REFUSED = "Ray runtime started.", "node timed out during startup", "nauthenticated"
# Of each machine, counted from the port of the head. Other machines connect to the first two only.
_NEXT_PORTS = (
    "node-manager-port",
    "object-manager-port",
    "runtime-env-agent-port",
    "metrics-export-port",
    "dashboard-agent-grpc-port",
    "dashboard-agent-listen-port",
)
_CLIENT_PORT = len(_NEXT_PORTS) + 1  # of the head, for a protocol that nothing here speaks
_WORKER_PORTS = 10_002, 10_999  # of workers and drivers; other machines connect to them
_RAY = "from ray.scripts.scripts import main; main()"


@dataclass(frozen=True, slots=True)
class Started:
    """Ray on this machine: the address of the head, and the id of the parent process."""

    pid: int
    address: str
    head: bool


def start_head(host: str, port: int) -> Started:
    """Start the head of a cluster on this machine, which also works."""
    private_addresses(host)
    make_token()
    certificates().make_authority()
    options = ["--head", f"--port={port}", f"--ray-client-server-port={port + _CLIENT_PORT}"]
    options += ["--include-dashboard=false", "--disable-usage-stats"]
    return _start(host, f"{host}:{port}", [*options, *_addresses(host, port)], head=True)


def join(address: str, *, own: str | None = None, drives_only: bool = False) -> Started:
    """Join the cluster at an address, to work or only as a driver; `own` is the address of this machine."""
    host, port = head_of(address)
    private_addresses(host)
    require_token()
    require_answer(host, port)
    own = own or _address_towards(host, port)
    options = [f"--address={host}:{port}", *(["--num-cpus=0"] if drives_only else []), *_addresses(own, port)]
    return _start(own, f"{host}:{port}", options, head=False)


def stop() -> Started | None:
    """Stop the Ray that was started here, and nothing else; return it."""
    started = _started()
    if started is None:
        return None
    os.kill(started.pid, signal.SIGTERM)
    until = time.monotonic() + _STOP_SECONDS
    while _is_ours(started.pid):
        if time.monotonic() > until:
            raise ClusterError(f"Ray (process {started.pid}) does not exit; see {_output()} and kill it yourself.")
        time.sleep(0.1)
    _record().unlink(missing_ok=True)
    return started


def commands_for_others(address: str) -> list[str]:
    """Return what lets another machine join: a command that copies the secrets to it, and the one to type there."""
    token, authority = require_token(), certificates().authority
    folder = shlex.quote(str(token.parent))
    secrets = f"{shlex.quote(str(token))} {shlex.quote(str(authority))}"
    return [
        f"ssh OTHER mkdir -p -m 700 {folder} && scp -rp {secrets} OTHER:{folder}/",
        f"local-rag cluster start --join {address}",
    ]


def _addresses(own: str, port: int) -> list[str]:
    """Return the options for all addresses of a machine, and for its own folder.

    Ray would choose ports that no firewall could know, and on each machine the folder that is the head's.
    """
    first, last = _WORKER_PORTS
    options = [f"--{name}={port + after}" for after, name in enumerate(_NEXT_PORTS, 1)]
    options += [f"--min-worker-port={first}", f"--max-worker-port={last}", f"--temp-dir={state_folder() / 'ray'}"]
    return [f"--node-ip-address={own}", *options]


def _address_towards(host: str, port: int) -> str:
    """Return the address of this machine that a host sees."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as unsent:
            unsent.connect(address)
            return str(unsent.getsockname()[0])
    except OSError as error:
        raise ClusterError(
            f"There is no way to {host} ({error.strerror}); connect this machine to its network, or correct --join."
        ) from None


def _start(own: str, address: str, options: Sequence[str], *, head: bool) -> Started:
    if running := _started():
        raise ClusterError(f"Ray already runs here for {running.address}; stop it with `local-rag cluster stop`.")
    certificates().certify([own])
    environment = os.environ | ray_environment(own)
    os.environ.update(environment)
    if not head:
        certificates().require_welcome(*head_of(address))
    command = [_executable(), "-P", "-c", _RAY, "start", *options, "--block"]
    import_ray()
    for _ in range(_STARTS):
        with _output().open("ab") as output:
            begins = output.tell()
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        started = Started(process.pid, address, head)
        _record().write_text(json.dumps({"pid": started.pid, "address": address, "head": head}))
        printed = _wait_for(process, begins)
        if _STARTED in printed:
            return started
        if _TOO_SLOW not in printed:
            break
    raise ClusterError(_reason(printed, address))


def _executable() -> str:
    """Return this Python at a path that is one word to a shell, because Ray gives it to shells without quoting it.

    If its own path is none, it is reached through a link to its environment; raise ClusterError if that is none either.
    """
    if _is_one_word(sys.executable):
        return sys.executable
    link = state_folder() / "environment"
    if not _is_one_word(str(link)) or not Path(sys.executable).is_relative_to(sys.prefix):
        raise ClusterError(
            f"Ray cannot run {sys.executable}, whose path has a space or another sign that is special to a shell; set "
            "LOCAL_RAG_CLUSTER_STATE to a folder without one, such as /var/tmp/local-rag."
        )
    link.unlink(missing_ok=True)
    link.symlink_to(sys.prefix)
    return str(link / Path(sys.executable).relative_to(sys.prefix))


def _is_one_word(path: str) -> bool:
    return shlex.quote(path) == path


def _wait_for(process: subprocess.Popen[bytes], begins: int) -> str:
    until = time.monotonic() + _START_SECONDS
    while True:
        exited = process.poll() is not None
        with _output().open(encoding="utf-8", errors="replace") as output:
            output.seek(begins)
            printed = output.read()
        if exited:
            _record().unlink(missing_ok=True)
        if exited or _STARTED in printed or time.monotonic() > until:
            return printed
        time.sleep(0.1)


def _reason(printed: str, address: str) -> str:
    if _REFUSED in printed:
        return f"The cluster at {address} does not take the token in {token_file()}; copy it from the head once more."
    if _TOO_SLOW in printed:
        return f"Ray gives itself 30 seconds to start, and {_STARTS} times this machine was too busy; try again later."
    return f"Ray did not start here; see the end of {_output()}, run `local-rag cluster stop` and try again."


def _started() -> Started | None:
    """Return the Ray that was started here, if it still runs."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        started = Started(**json.loads(_record().read_text(encoding="utf-8")))
        return started if _is_ours(started.pid) else None
    return None


def _is_ours(pid: int) -> bool:
    """Return whether a process is the one that was started; its id may have been reused."""
    with suppress(OSError):
        os.waitpid(pid, os.WNOHANG)
    with suppress(OSError):
        return _RAY.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    if Path("/proc/self").exists():
        return False
    done = subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return _RAY in done.stdout


def _record() -> Path:
    return state_folder() / "started.json"


def _output() -> Path:
    return state_folder() / "ray.log"
