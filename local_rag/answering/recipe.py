"""Name all that shapes an answer beside its question, settings, models and index: prompts, limits, thresholds, code."""

import importlib
import pkgutil
import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, is_dataclass
from types import ModuleType
from typing import Any

from local_rag import answering, retrieval, verification
from local_rag.keys import key_of

CODE_VERSION = 5  # increase it when the code between a question and its answer changes without any constant changing


def answering_modules() -> list[ModuleType]:
    """Return the modules that a question passes on its way to an answer."""
    return [
        importlib.import_module(f"{package.__name__}.{found.name}")
        for package in (retrieval, answering, verification)
        for found in pkgutil.iter_modules(package.__path__)
    ]


def answer_recipe(modules: Iterable[ModuleType] | None = None) -> str:
    """Return a key of every constant of these modules; the default are all that shape an answer."""
    values = {module.__name__: constants(module) for module in modules or answering_modules()}
    return key_of("answer", CODE_VERSION, values)


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
