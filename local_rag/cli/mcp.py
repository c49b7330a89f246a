"""`local-rag mcp`."""

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import click

from local_rag.cli.options import Command, library_options
from local_rag.cli.running import ask_server
from local_rag.errors import LocalRagError
from local_rag.wire import connect

_LAST_SECONDS = 2.0  # in which models are freed, once nobody listens any more


@click.command(cls=Command)
@library_options
@click.option("--with-ask", is_flag=True, help="Let the library's own model answer questions too.")
def command(library: Path, with_ask: bool, **settings: Any) -> None:
    """Let a program such as an editor use the library: it starts this command, and speaks MCP with it.

    A running `local-rag serve` of the same library does the searching. It ends when its input does.
    """
    if importlib.util.find_spec("mcp") is None:  # the extra, which not everybody installs
        raise LocalRagError("`local-rag mcp` needs mcp, which is not installed; run `pip install 'local-rag[serve]'`.")
    # Not on top: this page of the help would wait for them.
    from importlib.metadata import version

    from local_rag.mcp.handshake import Greeting
    from local_rag.mcp.instructions import read_instructions
    from local_rag.mcp.stdio import Lines, greet, serve, take_standard_streams

    wire = take_standard_streams()
    instructions = read_instructions(library.resolve())
    greeting = Greeting("local-rag", version("local-rag"), instructions, with_ask=with_ask)

    def is_served() -> bool:
        if any(value is not None for value in settings.values()) or (connection := connect(library.resolve())) is None:
            return False
        connection.close()
        return True

    def ask(order: Mapping[str, Any]) -> dict[str, Any] | None:
        return ask_server(library, settings, order)

    parts = click.get_current_context().obj.parts

    def prepare() -> tuple[Any, Any]:
        from local_rag.library import Library, Parts
        from local_rag.mcp.desk import OwnDesk
        from local_rag.mcp.server import make_server

        desk = OwnDesk(Library(library, parts=parts or Parts(), **settings), ask, is_served)
        return desk, make_server(desk, instructions, with_ask=with_ask)

    prepared = greet(wire, greeting, prepare)
    if prepared is None:
        _leave()
    desk, server = prepared
    if greeting.has_listed:
        desk.wake()
    try:
        serve(server, Lines(wire, greeting))
    finally:
        if not desk.close(_LAST_SECONDS):
            _leave(130 if sys.exc_info()[0] else 0)


def _leave(status: int = 0) -> NoReturn:
    """End at once: modules or models are still being loaded, which nothing can stop."""
    sys.stderr.flush()
    os._exit(status)
