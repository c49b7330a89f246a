"""`local-rag serve`."""

import contextlib
import os
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from local_rag.cli.options import (
    Command,
    allowed_network,
    current_parts,
    has_own_process,
    library_options,
    model_option,
)
from local_rag.errors import LibraryError, LocalRagError
from local_rag.offline import close, is_loopback

_WAITING = 128


class ListeningCommand(Command):
    """A command that listens first and then closes the network, after which it can open no socket."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, which closes the network itself."""
        return click.Command.invoke(self, ctx)


@click.command(cls=ListeningCommand)
@library_options
@model_option("answer", "answer with")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen on; 0 takes one that is free.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A name that others reach this server by.")
@click.option("--openai", is_flag=True, help="Answer under /v1 too, as programs for OpenAI's models expect it.")
@click.option("--with-ask", is_flag=True, help="Let hosts of MCP have answers written, as `local-rag mcp` does.")
@click.option("--tls-cert", type=click.Path(dir_okay=False, path_type=Path), help="Certificate, in a PEM file.")
@click.option("--tls-key", type=click.Path(dir_okay=False, path_type=Path), help="Its key, in a PEM file.")
def command(
    library: Path,
    host: str,
    port: int,
    opens: bool,
    allow_host: tuple[str, ...],
    openai: bool,
    with_ask: bool,
    tls_cert: Path | None,
    tls_key: Path | None,
    **settings: Any,
) -> None:
    """Serve a page that answers questions and shows the evidence; the models stay loaded.

    Other machines can reach it only with a token, in LOCAL_RAG_TOKEN or in the file named by LOCAL_RAG_TOKEN_FILE, and
    under the names given with --allow-host. Ctrl-C stops it.
    """
    token, parts = _token(), current_parts()
    if not is_loopback(host):
        if not token:
            raise click.UsageError(
                f"{host} can be reached from other machines; set a token in LOCAL_RAG_TOKEN or in a file named by "
                "LOCAL_RAG_TOKEN_FILE."
            )
        if not allow_host:
            raise click.UsageError(
                f"{host} can be reached from other machines; name it as they address it with --allow-host."
            )
        if not tls_cert:
            click.echo("Without --tls-cert and --tls-key the traffic is unencrypted.", err=True)
    if bool(tls_cert) != bool(tls_key):
        raise click.UsageError("A certificate needs its key and a key its certificate: give --tls-cert and --tls-key.")
    for path in (tls_cert, tls_key):
        if path and not os.access(path, os.R_OK):
            raise click.UsageError(f"{path} cannot be read; name a PEM file.")
    try:
        from local_rag.mcp.server import http_interface
        from local_rag.openai.endpoint import chat_interface
        from local_rag.serving.question_vectors import open_library
        from local_rag.web.serve import Tls, serve
    except ModuleNotFoundError as error:  # an optional dependency
        raise LocalRagError(
            f"`local-rag serve` needs {error.name}, which is not installed; run `pip install 'local-rag[serve]'`."
        ) from None
    listener = _listen(host, port)
    with contextlib.closing(listener):
        shown = f"[{host}]" if ":" in host else host
        address = f"{'https' if tls_cert else 'http'}://{shown}:{listener.getsockname()[1]}/"
        if opens:  # before the network is closed, also to child processes
            browser = [sys.executable, "-m", "webbrowser", address]
            subprocess.Popen(browser, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        if has_own_process(click.get_current_context()):
            close(allowed_network(library))
        click.echo(f"Answering on {address}")
        tls = Tls(tls_cert, tls_key) if tls_cert and tls_key else None
        interfaces: list[Any] = [partial(http_interface, with_ask=with_ask), *([chat_interface] if openai else [])]
        serve(
            partial(open_library, library, parts, **settings),
            listener,
            host=host,
            token=token,
            allowed=allow_host,
            tls=tls,
            interfaces=interfaces,
        )


def _token() -> str:
    """Return the token, empty if there is none; raise LibraryError if its file cannot be read."""
    if token := os.environ.get("LOCAL_RAG_TOKEN", "").strip():
        return token
    named = os.environ.get("LOCAL_RAG_TOKEN_FILE", "")
    if not named:
        return ""
    try:
        token = Path(named).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise LibraryError(f"The token file {named} cannot be read ({error}); correct LOCAL_RAG_TOKEN_FILE.") from None
    if not token:
        raise LibraryError(f"The token file {named} is empty; write a token into it.")
    return token


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_WAITING)
    except OSError as error:
        raise LocalRagError(
            f"Port {port} of {host} cannot be listened on ({error.strerror}); name another with `--port`."
        ) from None
