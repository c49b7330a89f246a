"""Connect this process to a Ray cluster: with our token and certificate, without usage statistics or output."""

import contextlib
import os
import secrets
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from platformdirs import user_config_path, user_state_path

from local_rag.cluster.hosts import head_of, private_addresses
from local_rag.cluster.workers.certificates import CONNECT_SECONDS, Certificates
from local_rag.errors import ClusterError
from local_rag.files import needs_package
from local_rag.offline import is_loopback

TOKEN_VARIABLE = "LOCAL_RAG_CLUSTER_TOKEN_FILE"  # noqa: S105  the name of a variable
_users, _connection = 0, contextlib.ExitStack()  # Ray has one connection per process


def token_file() -> Path:
    """Return the file of the token: the same token on every machine of a cluster, readable only by its owner."""
    named = os.environ.get(TOKEN_VARIABLE)
    return Path(named).expanduser() if named else user_config_path("local-rag") / "cluster-token"


def make_token() -> Path:
    """Create a token if there is none."""
    path = token_file()
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):  # another process created it just now
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_hex(32))
    return path


def require_token() -> Path:
    """Return the file of the token; raise ClusterError if it is missing or other users may read it."""
    path = token_file()
    if not path.is_file():
        raise ClusterError(
            f"There is no token in {path}; copy it from the head of the cluster, where `local-rag "
            "cluster start` creates it."
        )
    if path.stat().st_mode & 0o077:
        raise ClusterError(f"Other users may read the token in {path}; run `chmod 600 {path}`.")
    return path


def state_folder() -> Path:
    """Return the private folder of Ray's files and the log. Its path is short because Ray puts sockets in it."""
    named = os.environ.get("LOCAL_RAG_CLUSTER_STATE")
    folder = Path(named) if named else user_state_path("local-rag") / "cluster"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def certificates() -> Certificates:
    """Return the certificates: those of the authority lie beside the token, this machine's own among Ray's files."""
    return Certificates(token_file().parent / "cluster-authority", state_folder())


def ray_environment(host: str) -> dict[str, str]:
    """Return the environment variables of every Ray process on this machine."""
    variables = certificates().environment() | {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(require_token()),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_TMPDIR": str(state_folder()),
        # Notice a lost machine within seconds.
        "RAY_health_check_period_ms": "1000",
        "RAY_health_check_timeout_ms": "1000",
        "RAY_health_check_failure_threshold": "5",
    }
    # Without it Ray uses the external address even if it is given the loopback address.
    return variables | ({"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"} if is_loopback(host) else {})


def import_ray() -> Any:
    """Import Ray; raise ClusterError if the extra is not installed."""
    try:
        import ray
        import ray.util.scheduling_strategies
    except ModuleNotFoundError as error:
        raise ClusterError(needs_package("The setting `cluster.address`", error.name, "cluster")) from None
    return ray


def log_file() -> Path:
    """Return the log of Ray's messages."""
    return state_folder() / "driver.log"


def log(message: str) -> None:
    """Append a line to the log."""
    with log_file().open("a", encoding="utf-8") as file:
        file.write(f"{message}\n")


@contextlib.contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to a cluster and yield the module `ray`; raise ClusterError if that fails.

    Ray's output goes to the log, because stdout is for results. All users in a process share one connection, which
    the last of them closes.
    """
    global _users, _connection  # noqa: PLW0603  Ray itself keeps one connection for a process
    host, port = head_of(address)
    private_addresses(host)
    require_token()
    if not _users:
        require_answer(host, port)
    os.environ.update(ray_environment(host))
    ray = import_ray()
    if not _users:
        certificates().require_welcome(host, port)
        with contextlib.ExitStack() as stack:
            printed = stack.enter_context(log_file().open("a", encoding="utf-8"))
            stack.enter_context(contextlib.redirect_stdout(printed))
            stack.callback(ray.shutdown)
            _connect(ray, f"{host}:{port}")
            _connection = stack.pop_all()
    _users += 1
    try:
        yield ray
    finally:
        _users -= 1
        if not _users:
            _connection.close()


def require_answer(host: str, port: int) -> None:
    """Raise ClusterError if nothing listens at the address; Ray itself would take long to notice."""
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise ClusterError(
            f"No cluster answers at {host}:{port} ({error.strerror or error}); start it there with `local-rag cluster "
            "start`, or correct the setting `cluster.address`."
        ) from None


@contextlib.contextmanager
def _stderr_to(descriptor: int) -> Iterator[None]:
    """Redirect stderr, including that of native code."""
    sys.stderr.flush()
    before = os.dup(2)
    os.dup2(descriptor, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)


def _connect(ray: Any, address: str) -> None:
    with log_file().open("a+", encoding="utf-8", errors="replace") as written:
        begins = written.seek(0, os.SEEK_END)
        try:
            with _stderr_to(written.fileno()):
                ray.init(address=address, logging_level="ERROR", log_to_driver=False, configure_logging=False)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            written.seek(begins)
            printed = written.read()  # only Ray's native code gives the reason
            reason = str(error).strip().splitlines()
            hint = (
                f"the token in {token_file()} differs from that of the cluster"
                if "nauthenticated" in f"{error}{printed}"
                else "join this machine to it with `local-rag cluster start --join`"
            )
            raise ClusterError(
                f"The cluster at {address} refuses this machine ({reason[0] if reason else error}); {hint}."
            ) from None
