"""The folder of the models: where it is, and what is remembered in it about files: hashes and measurements."""

import contextlib
import hashlib
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

from local_rag.files import file_sha256, write_whole
from local_rag.machine import processor

# The text that models read when their speed is measured.
TIMED_TEXT = "The boat leaves the harbour at seven and carries mail, milk and whoever has business on the islands. "
_HASHES, _MOST_HASHES = ".hashes.json", 500
_MOST_MEASUREMENTS = 50


def default_models_directory() -> Path:
    """Return the models folder: LOCAL_RAG_MODELS, else the checkout's `models/`, else the user's data folder."""
    if named := os.environ.get("LOCAL_RAG_MODELS"):
        return Path(named).expanduser()
    if (checkout := checkout_models()) is not None:
        return checkout
    from platformdirs import user_data_path

    return user_data_path("local-rag", appauthor=False) / "models"


def packed_models() -> Path:
    """Return the folder of the models that came in the same bundle as the running program, which may be missing."""
    return Path(sys.prefix) / "packed-models"


def checkout_models() -> Path | None:
    """Return `models/` beside the package, which exists if local-rag runs from a checkout."""
    directory = Path(__file__).parents[2] / "models"
    return directory if (directory / "registry.toml").is_file() else None


def shipped_models() -> Path:
    """Return the folder of the shipped models: the checkout's `models/`, or a folder in the installed package."""
    return checkout_models() or Path(__file__).parents[1] / "shipped_models"


def sha256_of(path: Path, folder: Path) -> str:
    """Return the SHA-256 of a large file: the one remembered in a folder, unless the file has changed since."""
    path = path.resolve()
    status = path.stat()
    key = f"{path} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"
    remembered = folder / _HASHES
    if key not in (known := _recall(remembered)):
        known[key] = file_sha256(path)
        _remember(remembered, known, _MOST_HASHES)
    return str(known[key])


def load_measurement(name: str, model: Path, build: str) -> Any:
    """Return what was stored under a name for a model file, the build that runs it and this processor, or None."""
    return _recall(default_models_directory() / f".{name}.json").get(_machine_key(model, build))


def store_measurement(name: str, model: Path, found: Any, build: str) -> None:
    """Store a measurement; with a read-only models folder it is measured again each time."""
    remembered = default_models_directory() / f".{name}.json"
    _remember(remembered, {**_recall(remembered), _machine_key(model, build): found}, _MOST_MEASUREMENTS)


def _machine_key(model: Path, build: str) -> str:
    status = model.stat()
    parts = [str(model), status.st_size, status.st_mtime_ns, build, processor(), platform.machine()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _recall(file: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(file.read_text(encoding="utf-8"))
        return known if isinstance(known, dict) else {}
    return {}


def _remember(file: Path, known: dict[str, Any], most: int) -> None:
    """Write the entries that came last; without permission to write, nothing is remembered."""
    with contextlib.suppress(OSError):
        write_whole(file, json.dumps(dict(list(known.items())[-most:]), indent=1))
