"""Name all that shapes an answer beside its question, settings, models and index: the code, its prompts and limits."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from types import ModuleType
from typing import Any

from local_rag.files import file_sha256
from local_rag.keys import key_of
from local_rag.llama.native import llama_build
from local_rag.models.models_folder import shipped_models

_PACKAGE = Path(__file__).parents[1]
_READ = {".onnx", ".json"}  # weights and calibrations


@cache
def answer_recipe(package: Path = _PACKAGE) -> str:
    """Return a key of all code that an answer depends on: of this program, and of the packages that it is built on.

    The bytes of its sources and of its tables of models are what counts, so every upgrade changes it by itself.
    """
    sources = sorted(path for path in package.rglob("*") if path.suffix in {".py", ".toml"})
    code = [[str(path.relative_to(package)), file_sha256(path)] for path in sources]
    # What a question is read as.
    models = [shipped_models() / name for name in ("minilm-l6-questions", "minilm-l6-rows")]
    read = [file_sha256(file) for folder in models for file in sorted(folder.iterdir()) if file.suffix in _READ]
    return key_of("answer", code, read, _versions(), llama_build())


def _versions() -> list[list[str]]:
    """Return name and version of each package that this one requires and that is installed."""
    needed = [line for line in requires("local-rag") or () if "extra ==" not in line]
    names = sorted({re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in needed})
    found = []
    for name in names:
        with suppress(PackageNotFoundError):
            found.append([name, version(name)])
    return found


def constants(module: ModuleType) -> dict[str, Any]:
    """Return the constants of a module by name, in the form that JSON takes."""
    found = {name: _plain(value) for name, value in vars(module).items() if name.isupper()}
    return {name: value for name, value in sorted(found.items()) if value is not None}


def _plain(value: Any) -> Any:
    """Return a value as JSON takes it; None for one that is not made of numbers, texts and patterns."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, re.Pattern):
        return [value.pattern, value.flags]
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return [[_plain(key), _plain(one)] for key, one in value.items()]
    if isinstance(value, AbstractSet):
        return sorted(map(repr, value))
    return [_plain(one) for one in value] if isinstance(value, (tuple, list, range)) else None
