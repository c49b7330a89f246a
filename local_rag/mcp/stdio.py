"""Serve the tools over standard input and output; everything else that prints goes to standard error."""

import json
import os
import sys
from collections.abc import AsyncIterator
from typing import Any, cast

_READ, _POLL_SECONDS = 64 * 1024, 0.02
_LONGEST_LINE = 4 * 1024 * 1024
_LAST_SECONDS = 5.0  # to answer the requests before the end of the input


class Wire:
    """Lines that come from one descriptor and go to another."""

    def __init__(self, reading: int, writing: int) -> None:
        self._in, self._out = reading, writing
        self._rest, self.ended = b"", False

    def read_line(self) -> bytes | None:
        """Return the next line; None at the end of the input."""
        while b"\n" not in self._rest and not self.ended:
            received = os.read(self._in, _READ)
            self.ended = not received or len(self._rest) > _LONGEST_LINE
            self._rest += received
        line, newline, self._rest = self._rest.partition(b"\n")
        return line + newline or None

    @property
    def is_over(self) -> bool:
        """Whether no line will come any more."""
        return self.ended and not self._rest

    def write(self, line: bytes) -> None:
        """Write a whole line, unless the client has gone."""
        try:
            while line:
                line = line[os.write(self._out, line) :]
        except BrokenPipeError:
            self.ended = True


def take_standard_streams() -> Wire:
    """Take over standard input and output; everything that prints from now on goes to standard error."""
    sys.stdout.flush()
    wire = Wire(os.dup(0), os.dup(1))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return wire


class Lines:
    """The lines of the wire as the SDK reads them.

    They end once every request is answered, or a few seconds after the end of the input.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire, self._open = wire, set[str]()

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the lines."""
        import anyio

        while not self._wire.is_over:
            received = await anyio.to_thread.run_sync(self._wire.read_line, abandon_on_cancel=True)
            if received:
                yield self._asked(received)
        with anyio.move_on_after(_LAST_SECONDS):
            while self._open:
                await anyio.sleep(_POLL_SECONDS)

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
        await anyio.to_thread.run_sync(self._wire.write, text.encode(), abandon_on_cancel=True)

    async def flush(self) -> None:
        """Do nothing, because each line is written at once."""


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
