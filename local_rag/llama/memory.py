"""Remember in the models folder what was found out about a model file on this machine."""

import contextlib
import hashlib
import importlib.util
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from local_rag.files import write_whole
from local_rag.machine import processor
from local_rag.models.registry import default_models_directory

_KEPT = 50


def recall(name: str, model: Path) -> Any:
    """Return what was remembered under a name of this model, this build of llama.cpp and this processor, or None."""
    return _remembered(_file(name)).get(machine_key(model))


def remember(name: str, model: Path, found: Any) -> None:
    """Store a finding; a models folder that may only be read costs finding it out again each time."""
    file = _file(name)
    known = _remembered(file)
    kept = dict(list(known.items())[-_KEPT:])
    with contextlib.suppress(OSError):
        write_whole(file, json.dumps({**kept, machine_key(model): found}, indent=1))


def machine_key(model: Path) -> str:
    """Name a model file, a build of llama.cpp and a processor."""
    spec = importlib.util.find_spec("llama_cpp")
    libraries = sorted(Path(spec.origin).parent.glob("lib/*")) if spec and spec.origin else []
    files = [model, *libraries]
    parts = [(file.name, status.st_size, status.st_mtime_ns) for file in files if (status := file.stat())]
    build = [version("llama-cpp-python"), processor(), platform.machine()]
    return hashlib.sha256(json.dumps([str(model), parts, build]).encode()).hexdigest()


def _file(name: str) -> Path:
    return default_models_directory() / f".{name}.json"


def _remembered(file: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(file.read_text())
        return known if isinstance(known, dict) else {}
    return {}
