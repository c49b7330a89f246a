"""Let a running server of the same library answer a command: nothing heavy is imported for it."""

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
    """Refuse an empty question."""
    if not question.strip():
        raise click.UsageError("The question is empty.")


def ask_server(
    library: Path,
    settings: Mapping[str, Any],
    order: Mapping[str, Any],
    tell: Callable[[str, Any], None] = lambda _event, _value: None,
) -> dict[str, Any] | None:
    """Have a server do a `search` or an `ask`; None where there is none, or one under other settings.

    Flags that choose models or how to search are settings of this command alone: the command does its own work then.
    """
    if any(value is not None for value in settings.values()):
        return None
    connection = connect(library.resolve())
    if connection is None:
        return None
    try:
        with closing(connection), connection.makefile("rwb") as lines:
            lines.write(to_line({**order, "environment": environment()}))
            lines.flush()
            for line in lines:
                happened = json.loads(line)
                event, value = happened["event"], happened["value"]
                if event == "done":
                    return dict(value)
                if event == "other":
                    return None
                if event == "error":
                    raise LocalRagError(value)
                tell(event, value)
    except (ConnectionError, ValueError):
        pass  # it ended in the midst of a line, or of ours
    raise LocalRagError("The server of this library went away before it had answered; run the command again.")
