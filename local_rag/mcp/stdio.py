"""Serve the tools over standard input and output; everything else that prints goes to standard error."""

import json
import os
import sys
from collections.abc import AsyncIterator
from typing import Any, cast

_READ, _POLL_SECONDS = 64 * 1024, 0.02
_LONGEST_LINE = 4 * 1024 * 1024
_LAST_SECONDS = 5.0  # to answer the requests before the end of the input


class Lines:
    """Lines that come from one descriptor and go to another, as the SDK reads and writes them.

    They end once every request is answered, or a few seconds after the end of the input.
    """

    def __init__(self, reading: int, writing: int) -> None:
        self._in, self._out = reading, writing
        self._rest, self._ended, self._open = b"", False, set[str]()

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the lines."""
        import anyio

        while not self._ended or self._rest:
            received = await anyio.to_thread.run_sync(self._read_line, abandon_on_cancel=True)
            if received:
                yield self._asked(received)
        with anyio.move_on_after(_LAST_SECONDS):
            while self._open:
                await anyio.sleep(_POLL_SECONDS)

    def _read_line(self) -> bytes:
        """Return the next line, empty at the end of the input."""
        while b"\n" not in self._rest and not self._ended:
            received = os.read(self._in, _READ)
            self._ended = not received or len(self._rest) > _LONGEST_LINE
            self._rest += received
        line, newline, self._rest = self._rest.partition(b"\n")
        return line + newline

    def _asked(self, line: bytes) -> str:
        message = _object(line)
        if "method" in message and "id" in message:
            self._open.add(json.dumps(message["id"]))
        elif message.get("method") == "notifications/cancelled" and isinstance(message.get("params"), dict):
            self._open.discard(json.dumps(message["params"].get("requestId")))
        return line.decode("utf-8", "replace")

    async def write(self, text: str) -> None:
        """Write a message of the SDK."""
        import anyio

        message = _object(text.encode())
        key = json.dumps(message["id"]) if "id" in message and "method" not in message else ""
        self._open.discard(key)
        await anyio.to_thread.run_sync(self._write_line, text.encode(), abandon_on_cancel=True)

    def _write_line(self, line: bytes) -> None:
        """Write a whole line, unless the client has gone."""
        try:
            while line:
                line = line[os.write(self._out, line) :]
        except BrokenPipeError:
            self._ended = True

    async def flush(self) -> None:
        """Do nothing, because each line is written at once."""


def take_standard_streams() -> Lines:
    """Take over standard input and output; everything that prints from now on goes to standard error."""
    sys.stdout.flush()
    lines = Lines(os.dup(0), os.dup(1))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return lines


def serve(server: Any, lines: Lines) -> None:
    """Serve a server of the SDK over lines, until the input ends."""
    import anyio
    from mcp.server.stdio import stdio_server

    async def run() -> None:
        wire = cast("anyio.AsyncFile[str]", lines)
        async with stdio_server(stdin=wire, stdout=wire) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(run)


def _object(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
