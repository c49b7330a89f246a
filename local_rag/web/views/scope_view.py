"""What of the library is asked, in words."""

from collections.abc import Sequence
from datetime import date

from local_rag.asking import Filters
from local_rag.display import one_line

_MOST_NAMED = 3
_LONGEST = 120  # characters of a name


def say_scope(filters: Filters) -> str:
    """Return in a few words which documents pass the filters; empty if all do."""
    parts = [_names(filters.within)] if filters.within else []
    parts += [_names([one.removeprefix(".").upper() for one in filters.types])] if filters.types else []
    parts += [say_dates(filters.since, filters.before)] if filters.since or filters.before else []
    parts += [f"tagged {_names(filters.tags)}"] if filters.tags else []
    parts += [f"versions valid on {filters.as_of}"] if filters.as_of else []
    return "; ".join(parts)


def say_dates(since: date | None, before: date | None) -> str:
    """Return a span of days in words: a year as its number."""
    if since and before and (since.month, since.day, before) == (1, 1, date(min(since.year + 1, 9999), 1, 1)):
        return str(since.year)
    return " ".join([f"since {since}"] * bool(since) + [f"before {before}"] * bool(before))


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(one_line(name)[:_LONGEST] for name in names[:_MOST_NAMED])
    return f"{shown} and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else shown
