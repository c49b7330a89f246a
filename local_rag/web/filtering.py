"""Read filters from the fields of a form, a query or a JSON object, and write them back."""

from collections.abc import Mapping
from typing import Any

from local_rag.errors import QuestionError
from local_rag.records import Filters

_MOST_CHARACTERS = 2000


def filters_of(fields: Mapping[str, Any]) -> Filters:
    """Return the filters in the fields in, type, since, before and tag; commas separate several values."""
    return Filters.parse(
        within=_several(fields, "in"),
        types=_several(fields, "type"),
        since=str(fields.get("since") or ""),
        before=str(fields.get("before") or ""),
        tags=_several(fields, "tag"),
    )


def as_fields(filters: Filters) -> dict[str, str]:
    """Return filters as fields; a field without a filter is empty."""
    return {
        "in": ", ".join(filters.within),
        "type": ", ".join(filters.types),
        "since": str(filters.since or ""),
        "before": str(filters.before or ""),
        "tag": ", ".join(filters.tags),
    }


def _several(fields: Mapping[str, Any], name: str) -> list[str]:
    given = fields.get(name) or ""
    texts = list(map(str, given)) if isinstance(given, list) else str(given).split(",")
    if sum(map(len, texts)) > _MOST_CHARACTERS:
        raise QuestionError(f"The field {name} is longer than {_MOST_CHARACTERS:,} characters; name fewer.")
    return texts
