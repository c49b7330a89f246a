"""Read filters from the fields of a form, a query or a JSON object, and write them back."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from local_rag.asking import Filters
from local_rag.errors import QuestionError

_MOST_CHARACTERS = 2000
_PART = re.compile(r'\s*"[^"]*"|[^,]+')  # a value that holds a comma stands in quotation marks


def filters_of(fields: Mapping[str, Any]) -> Filters:
    """Return the filters in the fields; commas separate values, except in quotes."""
    return Filters.parse(
        within=_several(fields, "in"),
        types=_several(fields, "type"),
        since=str(fields.get("since") or ""),
        before=str(fields.get("before") or ""),
        tags=_several(fields, "tag"),
        as_of=str(fields.get("as_of") or ""),
    )


def as_fields(filters: Filters) -> dict[str, str]:
    """Return filters as fields; a field without a filter is empty."""
    return {
        "in": _joined(filters.within),
        "type": _joined(filters.types),
        "since": str(filters.since or ""),
        "before": str(filters.before or ""),
        "tag": _joined(filters.tags),
        "as_of": str(filters.as_of or ""),
    }


def _several(fields: Mapping[str, Any], name: str) -> list[str]:
    given = fields.get(name) or ""
    texts = list(map(str, given)) if isinstance(given, list) else [one.strip() for one in _PART.findall(str(given))]
    texts = [text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text for text in texts]
    if sum(map(len, texts)) > _MOST_CHARACTERS:
        raise QuestionError(f"The field {name} is longer than {_MOST_CHARACTERS:,} characters; name fewer.")
    return texts


def _joined(values: Iterable[str]) -> str:
    return ", ".join(f'"{value}"' if "," in value else value for value in values)
