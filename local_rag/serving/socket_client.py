"""Let a running server of the same library, user and machine answer. Nothing heavy is imported for it.

The server listens on a Unix socket in the user's runtime directory, which nobody else may enter.
"""

import hashlib
import json
import os
import select
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from local_rag.errors import LocalRagError, StoppedError
from local_rag.serialization import to_line

_SECONDS, _POLL_SECONDS = 5.0, 0.1
_PART = 64 * 1024
_NO_SETTINGS = {"LOCAL_RAG_TOKEN", "LOCAL_RAG_TOKEN_FILE"}  # variables that shape no answer


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
    """Return the environment variables that shape the answers of a library."""
    named = {name: value for name, value in os.environ.items() if name.startswith("LOCAL_RAG_") and value}
    # A relative path names another file in another working directory.
    return {
        name: str(Path(value).expanduser().resolve()) if "/" in value or name == "LOCAL_RAG_MODELS" else value
        for name, value in named.items()
        if name not in _NO_SETTINGS
    }


def is_served(library: Path) -> bool:
    """Return whether a server of a library is running."""
    connection = connect(library)
    if connection:
        connection.close()
    return connection is not None


def ask_server(
    library: Path,
    settings: Mapping[str, Any],
    request: Mapping[str, Any],
    stop: Callable[[], bool] = lambda: False,
    on_event: Callable[[str, Any], None] = lambda _event, _value: None,
) -> dict[str, Any] | None:
    """Let the server of a library run a `search` or an `ask`; return None if there is none or its settings differ.

    Once `stop` returns true the server is left, which ends the job there, and StoppedError is raised.
    Flags that set models or search settings apply only to this command, so the command then does the work itself.
    """
    if any(value is not None for value in settings.values()):
        return None
    connection = connect(library.resolve())
    if connection is None:
        return None
    try:
        with closing(connection):
            connection.sendall(to_line({**request, "environment": environment()}))
            for line in _lines(connection, stop):
                happened = json.loads(line)
                event, value = happened["event"], happened["value"]
                if event == "done":
                    return dict(value)
                if event == "other":
                    return None
                if event == "error":
                    raise LocalRagError(value)
                on_event(event, value)
    except (OSError, ValueError):
        pass  # the server ended while one side was writing
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
