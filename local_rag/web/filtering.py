"""Read from the fields of a form, a query or a JSON object which documents are asked, and write them back."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from local_rag.errors import QuestionError
from local_rag.records import Filters, first_day

_MOST_CHARACTERS = 2000


def filters_of(fields: Mapping[str, Any]) -> Filters:
    """Return the filters of the fields in, type, since, before and tag; several values stand between commas."""
    return Filters(
        within=_several(fields, "in"),
        types=_several(fields, "type"),
        since=_day(fields, "since"),
        before=_day(fields, "before"),
        tags=_several(fields, "tag"),
    )


def as_fields(filters: Filters) -> dict[str, str]:
    """Write filters as fields; what is not asked for is empty."""
    return {
        "in": ", ".join(filters.within),
        "type": ", ".join(filters.types),
        "since": str(filters.since or ""),
        "before": str(filters.before or ""),
        "tag": ", ".join(filters.tags),
    }


def _several(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    given = fields.get(name) or ""
    texts = given if isinstance(given, list) else str(given).split(",")
    if sum(len(str(text)) for text in texts) > _MOST_CHARACTERS:
        raise QuestionError(f"The field {name} is longer than {_MOST_CHARACTERS:,} characters; name fewer.")
    return tuple(text for text in (str(text).strip() for text in texts) if text)


def _day(fields: Mapping[str, Any], name: str) -> date | None:
    text = str(fields.get(name) or "").strip()
    if not text:
        return None
    try:
        return first_day(text)
    except ValueError:
        raise QuestionError(f"The field {name} is {text[:20]!r}; give a date such as 2024-05-01.") from None
