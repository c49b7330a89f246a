"""Let a running server of the same library answer a command, without importing anything slow."""

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from local_rag.errors import LocalRagError
from local_rag.serialization import to_line
from local_rag.wire import connect, environment


def require_question(question: str) -> None:
    """Raise UsageError for an empty question."""
    if not question.strip():
        raise click.UsageError("The question is empty.")


def ask_server(
    library: Path,
    settings: Mapping[str, Any],
    request: Mapping[str, Any],
    on_event: Callable[[str, Any], None] = lambda _event, _value: None,
) -> dict[str, Any] | None:
    """Let the server of a library run a `search` or an `ask`; return None if there is none or its settings differ.

    Flags that set models or search settings apply only to this command, so the command then does the work itself.
    """
    if any(value is not None for value in settings.values()):
        return None
    connection = connect(library.resolve())
    if connection is None:
        return None
    try:
        with closing(connection), connection.makefile("rwb") as lines:
            lines.write(to_line({**request, "environment": environment()}))
            lines.flush()
            for line in lines:
                message = json.loads(line)
                event, value = message["event"], message["value"]
                if event == "done":
                    return dict(value)
                if event == "other":
                    return None
                if event == "error":
                    raise LocalRagError(value)
                on_event(event, value)
    except (ConnectionError, ValueError):
        pass  # the connection ended within a line
    raise LocalRagError("The server of this library stopped before it answered; run the command again.")
