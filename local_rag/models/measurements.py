"""Store what was measured about a model file on this machine, in the models folder."""

import contextlib
import hashlib
import json
import platform
from pathlib import Path
from typing import Any

from local_rag.files import write_whole
from local_rag.machine import processor
from local_rag.models.registry import default_models_directory

_MAX_ENTRIES = 50
# The text that models read when their speed is measured.
TIMED_TEXT = "The boat leaves the harbour at seven and carries mail, milk and whoever has business on the islands. "


def load_measurement(name: str, model: Path, build: str) -> Any:
    """Return what was stored under a name for a model file, the build that runs it and this processor, or None."""
    return _measurements(_file(name)).get(_machine_key(model, build))


def store_measurement(name: str, model: Path, found: Any, build: str) -> None:
    """Store a measurement; with a read-only models folder it is measured again each time."""
    file = _file(name)
    known = _measurements(file)
    kept = dict(list(known.items())[-_MAX_ENTRIES:])
    with contextlib.suppress(OSError):
        write_whole(file, json.dumps({**kept, _machine_key(model, build): found}, indent=1))


def _machine_key(model: Path, build: str) -> str:
    status = model.stat()
    parts = [str(model), status.st_size, status.st_mtime_ns, build, processor(), platform.machine()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _file(name: str) -> Path:
    return default_models_directory() / f".{name}.json"


def _measurements(file: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(file.read_text())
        return known if isinstance(known, dict) else {}
    return {}
