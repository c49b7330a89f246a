"""Serve the tools over standard input and output; everything else that prints goes to standard error."""

import json
import os
import select
import sys
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from typing import Any, cast

from local_rag.mcp.handshake import Greeting

_READ, _POLL_SECONDS = 64 * 1024, 0.02
_LONGEST_LINE = 4 * 1024 * 1024
_LAST_SECONDS = 5.0  # to answer the requests before the end of the input


class Wire:
    """Lines that come from one descriptor and go to another."""

    def __init__(self, reading: int, writing: int) -> None:
        self._in, self._out = reading, writing
        self._rest, self.ended = b"", False

    def read_line(self, seconds: float | None = None) -> bytes | None:
        """Return the next line; None at the end of the input, or if no line came within this time."""
        while b"\n" not in self._rest and not self.ended:
            if not select.select([self._in], [], [], seconds)[0]:
                return None
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


def greet(wire: Wire, greeting: Greeting, prepare: Callable[[], Any]) -> Any:
    """Answer the first messages while `prepare` runs, and return its result.

    If the conversation ends before the client asks anything else, return None without waiting.
    """
    prepared = Future[Any]()

    def run() -> None:
        try:
            prepared.set_result(prepare())
        except BaseException as error:  # noqa: BLE001  it is raised below
            prepared.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    while not (prepared.done() or wire.is_over):
        line = wire.read_line(_POLL_SECONDS)
        if line and (reply := greeting.reply(line)):
            wire.write(reply)
    return None if wire.is_over and greeting.is_enough and not prepared.done() else prepared.result()


class Lines:
    """The lines of the wire as the SDK reads them, starting with those that a greeting left unanswered.

    They end once every request is answered, or a few seconds after the end of the input.
    """

    def __init__(self, wire: Wire, greeting: Greeting) -> None:
        self._wire, self._left, self.answered = wire, greeting.unanswered, greeting.answered
        self._open = set[str]()

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the lines."""
        import anyio

        for line in self._left:
            yield self._asked(line)
        while not self._wire.is_over:
            received = await anyio.to_thread.run_sync(self._wire.read_line, None, abandon_on_cancel=True)
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
        """Write a message of the SDK, unless the greeting has already sent it."""
        import anyio

        message = _object(text.encode())
        key = json.dumps(message["id"]) if "id" in message and "method" not in message else ""
        self._open.discard(key)
        if key in self.answered:
            self.answered.discard(key)
            return
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
