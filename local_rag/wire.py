"""The Unix socket between the command line and a server of the same user on the same machine.

The server of a library listens on a Unix socket in the user's runtime directory, which nobody else may enter.
"""

import hashlib
import os
import socket
import stat
import tempfile
from pathlib import Path

MAX_LINE = 16 * 1024 * 1024
# These shape no answer.
_NO_SETTINGS = {"LOCAL_RAG_TOKEN", "LOCAL_RAG_TOKEN_FILE"}


def socket_path(library: Path) -> Path:
    """Say where the server of a library listens; the library is named by its resolved path."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(runtime) / "local-rag" if runtime else Path(tempfile.gettempdir()) / f"local-rag-{os.getuid()}"
    return folder / f"{hashlib.sha256(os.fsencode(library)).hexdigest()[:24]}.sock"


def is_private(folder: Path) -> bool:
    """Say whether a folder is this user's own, and nobody else may enter it."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077


def connect(library: Path) -> socket.socket | None:
    """Connect to the server of a library; None where there is none."""
    path = socket_path(library)
    if not is_private(path.parent) or not path.exists():
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return connection


def environment() -> dict[str, str]:
    """Return the variables that shape what a library answers."""
    named = {name: value for name, value in os.environ.items() if name.startswith("LOCAL_RAG_") and value}
    # A relative path means another file in another working directory.
    return {
        name: str(Path(value).expanduser().resolve()) if "/" in value or name == "LOCAL_RAG_MODELS" else value
        for name, value in named.items()
        if name not in _NO_SETTINGS
    }
