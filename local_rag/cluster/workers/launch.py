"""Start and stop Ray on this machine, and print the commands for the other machines."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from local_rag.cluster.hosts import head_of, private_addresses
from local_rag.cluster.workers.connection import (
    connected,
    import_ray,
    make_token,
    ray_environment,
    require_reachable,
    require_token,
    state_folder,
)
from local_rag.cluster.workers.ray_pool import nodes_of
from local_rag.errors import ClusterError

_START_SECONDS, _STOP_SECONDS = 90.0, 30.0
_JOIN_SECONDS = 5.0  # within which Ray exits if the cluster refuses the machine
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
    options = ["--head", f"--node-ip-address={host}", f"--port={port}", "--include-dashboard=false"]
    started = _start(host, f"{host}:{port}", [*options, "--disable-usage-stats"], head=True)
    _wait_for(started)
    return started


def join(address: str, *, own: str | None = None, drives_only: bool = False) -> Started:
    """Join the cluster at an address, to work or only as a driver; `own` is the address of this machine."""
    host, port = head_of(address)
    private_addresses(host)
    require_reachable(host, port)
    options = [f"--address={host}:{port}", *(["--num-cpus=0"] if drives_only else [])]
    options += [f"--node-ip-address={own}"] if own else []
    started = _start(host, f"{host}:{port}", options, head=False)
    _require_alive(started, _JOIN_SECONDS)
    return started


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
    """Return what to type on another machine, with local-rag and with Ray alone."""
    token = shlex.quote(str(require_token()))
    host = head_of(address)[0]
    return [
        f"scp {token} OTHER:{token}",
        f"local-rag cluster start --join {address}",
        *(f"export {name}={shlex.quote(value)}" for name, value in ray_environment(host).items()),
        f"ray start --address={address} --block",
    ]


def _start(host: str, address: str, options: Sequence[str], *, head: bool) -> Started:
    if running := _started():
        raise ClusterError(f"Ray already runs here for {running.address}; stop it with `local-rag cluster stop`.")
    environment = os.environ | ray_environment(host)
    os.environ.update(environment)
    import_ray()
    command = [sys.executable, "-P", "-c", _RAY, "start", *options, "--block"]
    with _output().open("ab") as output:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    started = Started(process.pid, address, head)
    _record().write_text(json.dumps({"pid": started.pid, "address": address, "head": head}))
    return started


def _wait_for(started: Started) -> None:
    """Wait until the head takes work; raise ClusterError if it exits instead."""
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        _require_alive(started, 0.2)
        with suppress(ClusterError), connected(started.address) as ray:
            if nodes_of(ray):
                return
    raise ClusterError(f"Ray takes no work at {started.address}; see {_output()} and run `local-rag cluster stop`.")


def _require_alive(started: Started, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(ChildProcessError):
            os.waitpid(started.pid, os.WNOHANG)
        if not _is_alive(started.pid):
            _record().unlink(missing_ok=True)
            raise ClusterError(f"Ray did not start here; see the end of {_output()} and run `local-rag cluster check`.")
        time.sleep(0.1)


def _started() -> Started | None:
    """Return the Ray that was started here, if it still runs."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        started = Started(**json.loads(_record().read_text(encoding="utf-8")))
        return started if _is_ours(started.pid) else None
    return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


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
