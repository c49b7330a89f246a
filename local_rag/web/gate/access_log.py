"""A line of JSON for each request: who, what and how long, but nothing that was asked."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from local_rag.serving.http import client_of, person_of

Log = Callable[[str], None]
_LONGEST = 200


def as_line(scope: Mapping[str, Any], status: int, seconds: float) -> str:
    """Return a request and the status of its response as a line; questions and filters stand in no path."""
    line = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "client": client_of(scope),
        "person": person_of(scope).name or None,
        "method": scope["method"],
        "path": scope["path"][:_LONGEST],
        "status": status,
        "seconds": round(seconds, 3),
    }
    return json.dumps(line)
