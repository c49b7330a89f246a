"""Convert records to JSON and back."""

import json
import types
import typing
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from typing import Any


def to_line(value: object) -> bytes:
    """Return a value, which may contain records, as one line of JSON."""
    return json.dumps(value, default=_fields).encode() + b"\n"


def _fields(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return str(value)


def from_plain(kind: Any, value: Any) -> Any:
    """Return a value of type `kind` from its JSON form: records, also nested, tuples, and unions with None."""
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
