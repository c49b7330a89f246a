"""Filters as conditions that the engine itself checks: what a point says of its document, and what a filter asks.

A filter with wildcards, or with a name that is also above a root, has no such conditions; documents are then looked at
one by one.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any

from local_rag.asking import Filters
from local_rag.records import DocumentFacts

INDEXED = {"day": "integer", "tags": "keyword", "types": "keyword", "places": "keyword", "names": "keyword"}
_SPECIAL = set("*?[]\\!#")
_PLACE = re.compile(r":\d|\bpage \d")


def facts_payload(facts: DocumentFacts) -> dict[str, Any]:
    """Return what conditions look at.

    `places` holds the path, and every folder above it with a slash at its end; `names` their names; `types` what
    follows each dot of the file's name.
    """
    path = PurePosixPath(facts.path)
    day = facts.date or date.fromtimestamp(facts.modified_ns / 1e9).isoformat()
    parts = path.name.lower().split(".")
    return {
        "day": int(day.replace("-", "")),
        "tags": sorted({tag.casefold() for tag in facts.tags}),
        "types": [".".join(parts[first:]) for first in range(1, len(parts))],
        "places": [facts.path, *(f"{str(folder).rstrip('/')}/" for folder in path.parents)],
        "names": sorted(set(path.parts[1:])),
    }


def conditions_of(filters: Filters, roots: Sequence[Path], models: Any) -> list[Any] | None:
    """Return conditions that exactly the documents fulfil that pass the filters, None if there are none."""
    found = [models.FieldCondition(key="tags", match=_one_of([tag.casefold()], models)) for tag in filters.tags]
    if filters.types:
        types = [kind.lower().removeprefix(".") for kind in filters.types]
        if not all(types) or any("/" in kind for kind in types):
            return None
        found.append(models.FieldCondition(key="types", match=_one_of(types, models)))
    if filters.since or filters.before:
        limits = {"gte": _number(filters.since), "lt": _number(filters.before)}
        found.append(models.FieldCondition(key="day", range=models.Range(**limits)))
    if filters.within:
        wanted: dict[str, list[str]] = {"places": [], "names": []}
        for pattern in filters.within:
            if (said := _within(pattern, roots)) is None:
                return None
            for key, values in said.items():
                wanted[key] += values
        either = [models.FieldCondition(key=key, match=_one_of(said, models)) for key, said in wanted.items() if said]
        found.append(models.Filter(should=either))
    return found


def _within(pattern: str, roots: Sequence[Path]) -> Mapping[str, list[str]] | None:
    """Return the places or names one of which a document has that a pattern names, None if that cannot be said."""
    below = pattern.endswith("/**")
    path = pattern.removesuffix("/**").removeprefix("./")
    parts = path.removeprefix("/").split("/")
    if _SPECIAL & set(path) or path != path.strip() or not all(parts) or {".", ".."} & set(parts):
        return None
    if not path.isascii() or _PLACE.search(path) or any(parts[0] == root.name for root in roots):
        return None  # names in other forms of letters, and paths as results show them
    if path.startswith("/"):
        places = [path]
    elif below or len(parts) > 1:
        places = [f"{str(root).rstrip('/')}/{path}" for root in roots]
    elif any(path in root.parts for root in roots):
        return None
    else:
        return {"names": [path]}
    return {"places": [one for place in places for one in ((f"{place}/",) if below else (place, f"{place}/"))]}


def _one_of(values: Sequence[str], models: Any) -> Any:
    return models.MatchAny(any=list(values))


def _number(day: date | None) -> int | None:
    return int(day.strftime("%Y%m%d")) if day else None
