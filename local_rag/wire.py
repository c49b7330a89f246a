"""Records as lines of JSON and back, between the command line and a server of the same user on the same machine.

The server of a library listens on a Unix socket in the user's runtime directory, which nobody else may enter.
"""

import hashlib
import json
import os
import socket
import stat
import tempfile
import types
import typing
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from pathlib import Path
from typing import Any

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


def to_line(value: object) -> bytes:
    """Write a value, records too, as one line of JSON."""
    return json.dumps(value, default=_fields).encode() + b"\n"


def _fields(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return str(value)


def from_plain(kind: Any, value: Any) -> Any:
    """Make a record of the type `kind` from what JSON has made of it: records in records, tuples, unions with None."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is date and value is not None:
        return date.fromisoformat(value)
    if origin in (typing.Union, types.UnionType):
        kinds = [one for one in arguments if one is not type(None)]
        return None if value is None else from_plain(kinds[0], value) if len(kinds) == 1 else value
    if origin is tuple or origin is Sequence:
        return tuple(from_plain(arguments[0] if arguments else Any, one) for one in value)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = typing.get_type_hints(kind)
        return kind(**{name: from_plain(hints[name], one) for name, one in value.items() if name in hints})
    return value
