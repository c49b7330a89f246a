"""Remember in the models folder what was found out about a model file on this machine."""

import contextlib
import hashlib
import json
import platform
from pathlib import Path
from typing import Any

from local_rag.files import write_whole
from local_rag.machine import processor
from local_rag.models.registry import default_models_directory

_KEPT = 50
# What models read when it is measured how fast they are here.
TIMED_TEXT = "The boat leaves the harbour at seven and carries mail, milk and whoever has business on the islands. "


def recall(name: str, model: Path, build: str) -> Any:
    """Return what was remembered under a name of a model file, what runs it and this processor, or None."""
    return _remembered(_file(name)).get(_machine_key(model, build))


def remember(name: str, model: Path, found: Any, build: str) -> None:
    """Store a finding; a models folder that may only be read costs finding it out again each time."""
    file = _file(name)
    known = _remembered(file)
    kept = dict(list(known.items())[-_KEPT:])
    with contextlib.suppress(OSError):
        write_whole(file, json.dumps({**kept, _machine_key(model, build): found}, indent=1))


def _machine_key(model: Path, build: str) -> str:
    status = model.stat()
    parts = [str(model), status.st_size, status.st_mtime_ns, build, processor(), platform.machine()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _file(name: str) -> Path:
    return default_models_directory() / f".{name}.json"


def _remembered(file: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(file.read_text())
        return known if isinstance(known, dict) else {}
    return {}
