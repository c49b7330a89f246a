"""Tell of what could not be made, since it ended every worker that tried."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from local_rag.records import Note


def notes_of(given_up: Mapping[str, str], documents_wanting: Callable[[str], Iterable[str]]) -> list[Note]:
    """Tell of which documents a context or a vector could not be made; `given_up` holds the reason by key."""
    found: dict[str, list[str]] = {}
    for key, reason in given_up.items():
        for path in documents_wanting(key):
            found.setdefault(path, []).append(reason)
    told = "{} of its chunks were given up, since they ended every worker ({})"
    return [Note(Path(path), told.format(len(reasons), reasons[0])) for path, reasons in found.items()]
