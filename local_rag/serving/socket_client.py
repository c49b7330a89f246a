"""Let a running server of the same library, user and machine answer. Nothing heavy is imported for it.

The server listens on a Unix socket in the user's runtime directory, which nobody else may enter. It is one that the
user has started, or a process that an earlier command has left behind (see `leaving.py`).
"""

import hashlib
import json
import os
import select
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_rag.errors import LocalRagError, StoppedError
from local_rag.model_names import MODEL_SETTINGS, independent_of_folder
from local_rag.serialization import to_line

_SECONDS, _POLL_SECONDS = 5.0, 0.1
_FIRST_SECONDS = 20.0  # until the first line of a server; one that is still being started answers later
_STOP_SECONDS = 10.0
_PART = 64 * 1024
SECRETS = frozenset({"LOCAL_RAG_TOKEN", "LOCAL_RAG_TOKEN_FILE"})
_NO_SETTINGS = SECRETS | {"LOCAL_RAG_KEEP_WARM"}  # variables that shape no answer
MODEL_VARIABLES = frozenset(f"LOCAL_RAG_{name.upper()}" for name in MODEL_SETTINGS)
PATH_VARIABLES = frozenset(
    {
        "LOCAL_RAG_CLUSTER_STATE",
        "LOCAL_RAG_CLUSTER_TOKEN_FILE",
        "LOCAL_RAG_MODELS",
        "LOCAL_RAG_QDRANT_KEY_FILE",
        "LOCAL_RAG_SEARCH_ENGINE_CA",
        "LOCAL_RAG_SEARCH_ENGINE_CERTIFICATE",
        "LOCAL_RAG_SEARCH_ENGINE_KEY_FILE",
    }
)
_PROGRAM = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Running:
    """A server that is running: its process, and if a command left it behind, how long it stays without a question."""

    process: int
    seconds_left: float | None


def socket_path(library: Path) -> Path:
    """Return the path of the socket of a library, which is named by its resolved path."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(runtime) / "local-rag" if runtime else Path(tempfile.gettempdir()) / f"local-rag-{os.getuid()}"
    return folder / f"{hashlib.sha256(os.fsencode(library)).hexdigest()[:24]}.sock"


def is_private(folder: Path) -> bool:
    """Return whether a folder belongs to this user and nobody else may enter it."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077


def connect(library: Path) -> socket.socket | None:
    """Connect to the server of a library; return None if there is none."""
    path = socket_path(library)
    if not is_private(path.parent) or not path.exists():
        return None
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_SECONDS)  # a server that hangs is none
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return connection


def environment() -> dict[str, str]:
    """Return what shapes the answers of a library besides its settings: environment variables, and the program."""
    named = {name: value for name, value in os.environ.items() if name.startswith("LOCAL_RAG_") and value}
    shaping = {name: _anywhere(name, value) for name, value in named.items() if name not in _NO_SETTINGS}
    # Another version of the program, installed meanwhile, may answer otherwise.
    return {"program": f"{_PROGRAM} {_PROGRAM.joinpath('__init__.py').stat().st_mtime_ns}", **shaping}


def _anywhere(name: str, value: str) -> str:
    """Return the value of a variable as it means the same in any working directory."""
    if name in MODEL_VARIABLES:
        return independent_of_folder(value)
    return str(Path(value).expanduser().resolve()) if name in PATH_VARIABLES else value


def is_served(library: Path) -> bool:
    """Return whether a server of a library is running."""
    connection = connect(library)
    if connection:
        connection.close()
    return connection is not None


def running(library: Path) -> Running | None:
    """Return the server of a library that is running, or None."""
    for event, value in _told(library, "state", lambda: False):
        if event == "done":
            return Running(value["process"], value["seconds_left"])
    return None


def stop_left(library: Path) -> bool:
    """End the process that a command has left behind; return whether it has ended, or there was none."""
    began = time.monotonic()
    for _ in _told(library, "stop", lambda: time.monotonic() - began > _STOP_SECONDS):
        pass  # until it has gone, which ends the connection
    return not is_served(library)


def _told(library: Path, do: str, stop: Callable[[], bool]) -> Iterator[tuple[str, Any]]:
    """Ask the server of a library for something that is no question, and yield what it tells until it ends."""
    connection = connect(library)
    if connection is None:
        return
    with closing(connection), suppress(OSError, ValueError, KeyError, StoppedError):
        connection.sendall(to_line({"do": do, "environment": environment()}))
        for line in _lines(connection, stop):
            happened = json.loads(line)
            yield happened["event"], happened["value"]


def ask_server(
    library: Path,
    settings: Mapping[str, Any],
    request: Mapping[str, Any],
    stop: Callable[[], bool] = lambda: False,
    on_event: Callable[[str, Any], None] = lambda _event, _value: None,
    *,
    halfway: bool = False,
    first_seconds: float = _FIRST_SECONDS,
) -> dict[str, Any] | None:
    """Let the server of a library answer a request; return None if there is none or its settings differ.

    One that tells nothing in the first seconds, or ends before it has told anything, is none either. Once `stop`
    returns true, the job ends there: the server is left, and StoppedError is raised, or if what was done `halfway`
    counts, that is returned. Flags that set models or search settings apply only to this command, so the command then
    does the work itself.
    """
    if any(value is not None for value in settings.values()):
        return None
    connection = connect(library.resolve())
    if connection is None:
        return None
    late, heard = time.monotonic() + first_seconds, False

    def ends() -> bool:
        stopped = stop()
        if stopped and halfway:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
        return (stopped and not halfway) or (not heard and time.monotonic() > late)

    try:
        with closing(connection):
            connection.sendall(to_line({**request, "environment": environment()}))
            for line in _lines(connection, ends):
                happened = json.loads(line)
                event, value, heard = happened["event"], happened["value"], True
                if event == "done":
                    return dict(value)
                if event in ("other", "error") and stop():
                    raise StoppedError("The answer was stopped.")
                if event == "other":
                    return None
                if event == "error":
                    raise LocalRagError(value)
                on_event(event, value)
    except StoppedError:
        if stop():
            raise
    except (OSError, ValueError):
        pass  # the server ended while one side was writing
    if not heard:
        return None
    raise LocalRagError("The server of this library stopped before it answered; run the command again.")


def _lines(connection: socket.socket, stop: Callable[[], bool]) -> Iterator[bytes]:
    """Yield the lines that come, and ask `stop` several times a second; raise StoppedError once it says so."""
    received = bytearray()
    while not stop():
        if not select.select([connection], [], [], _POLL_SECONDS)[0]:
            continue
        part = connection.recv(_PART)
        if not part:
            return
        received += part
        if b"\n" in part:
            *lines, rest = bytes(received).split(b"\n")
            received = bytearray(rest)
            yield from lines
    raise StoppedError("The answer was stopped.")
