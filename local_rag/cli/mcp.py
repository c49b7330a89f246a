"""`local-rag mcp`."""

import importlib.util
import os
import sys
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

from local_rag.cli.options import Command, library_options
from local_rag.errors import LibraryError, LocalRagError
from local_rag.files import extra_command
from local_rag.serving.socket_client import ask_server, is_served

_LAST_SECONDS = 2.0  # to free the models after the client has gone


@click.command(cls=Command)
@library_options
@click.option("--with-ask", is_flag=True, help="Let the library's own model answer questions too.")
def command(library: Path, with_ask: bool, **settings: Any) -> None:
    """Let a program such as an editor use the library: the program starts this command and speaks MCP with it.

    If `local-rag serve` is running for the same library, that server does the searching. The command ends with its
    input.
    """
    if importlib.util.find_spec("mcp") is None:  # an optional dependency
        raise LocalRagError(f"`local-rag mcp` needs mcp, which is not installed; run `{extra_command('serve')}`.")
    # Imported here, because other commands do not need them.
    from local_rag.mcp.stdio import Lines, serve, take_standard_streams

    wire = take_standard_streams()
    folder, parts = library.resolve(), click.get_current_context().obj.parts
    own_settings = any(value is not None for value in settings.values())
    instructions = _instructions(folder, settings)
    from local_rag.library import Library, Parts
    from local_rag.mcp.server import make_server
    from local_rag.serving.service import LocalService
    from local_rag.serving.worker import LibraryWorker

    worker = LibraryWorker(
        lambda: Library(library, parts=parts or Parts(), **settings), answering=False, max_waiting=sys.maxsize
    )
    worker.start()
    service = LocalService(
        worker, partial(ask_server, folder, settings), lambda: not own_settings and is_served(folder)
    )
    try:
        serve(make_server(service, instructions, with_ask=with_ask), Lines(wire))
    finally:
        if not worker.close(_LAST_SECONDS):
            _leave(130 if sys.exc_info()[0] else 0)


def _instructions(folder: Path, settings: Mapping[str, Any]) -> str:
    """Return the instructions for a host, without importing what a search needs."""
    from local_rag.mcp.instructions import RULES, write_instructions
    from local_rag.store.database import Store

    try:
        with closing(Store(folder)) as store:
            return write_instructions([document.path for document in store.documents()], store.roots())
    except LibraryError:
        from local_rag.settings import resolve_settings

        if resolve_settings(folder, {}, **settings).search_engine.address:
            return RULES  # only the index of the library is reachable from here, in the search engine
        raise


def _leave(status: int = 0) -> NoReturn:
    """End at once, because nothing can stop modules or models that are still being loaded."""
    sys.stderr.flush()
    os._exit(status)
