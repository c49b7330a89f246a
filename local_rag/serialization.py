"""Convert records to JSON and back.

Written by hand, because `search` through a running server must not wait for pydantic to be imported.
"""

import json
import types
import typing
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

_FROM_TEXT: Mapping[Any, Callable[[str], Any]] = {date: date.fromisoformat, Path: Path, bytes: b64decode}


def to_line(value: object) -> bytes:
    """Return a value, which may contain records, as one line of JSON."""
    return json.dumps(value, default=_fields).encode() + b"\n"


def _fields(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)


def from_plain(kind: Any, value: Any) -> Any:  # noqa: PLR0911  one for each form
    """Return a value of type `kind` from its JSON form: records, also nested, sequences, mappings, unions with None.

    Raises ValueError if a field is missing, unknown or of another type: another version has written it.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        given = [one for one in arguments if one is not types.NoneType]
        if value is None and len(given) < len(arguments):
            return None
        # Of several kinds, such as those of a cell, each has JSON of its own.
        return from_plain(next((one for one in given if type(value) is one), given[0]), value)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple(from_plain(one, part) for one, part in zip(arguments, _checked(list, value), strict=True))
    if origin in (tuple, list, Sequence):
        return (list if origin is list else tuple)(from_plain(arguments[0], one) for one in _checked(list, value))
    if origin is Mapping:
        return {name: from_plain(arguments[1], one) for name, one in _checked(dict, value).items()}
    if origin is typing.Literal:
        return _checked(type(arguments[0]), value, among=arguments)
    if is_dataclass(kind) and isinstance(kind, type):
        return _record(kind, _checked(dict, value))
    if kind in _FROM_TEXT:
        return _FROM_TEXT[kind](_checked(str, value))
    return float(value) if kind is float and type(value) is int else _checked(kind, value)


def _record(kind: type, named: dict[str, Any]) -> Any:
    hints = _hints(kind)
    if unknown := named.keys() - hints.keys():
        raise ValueError(f"{kind.__name__} has no {min(unknown)}")
    try:
        return kind(**{name: from_plain(hints[name], one) for name, one in named.items()})
    except TypeError as error:  # a field is missing
        raise ValueError(error) from None


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _checked(kind: type, value: Any, *, among: Sequence[Any] = ()) -> Any:
    """Return a value of exactly this type, and among these."""
    if type(value) is not kind or (among and value not in among):
        raise ValueError(f"{str(value)[:40]!r} is not of the type {kind.__name__}")
    return value
