"""The commands that serve a library: `serve`, `mcp`, and `people` for who may use it."""

import contextlib
import importlib.util
import os
import secrets
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, cast

import click

from local_rag.asking import PERSON_ROLES, PersonRole
from local_rag.cli.options import (
    FILE,
    FOLDER,
    PRESENT,
    Command,
    DefaultGroup,
    allowed_network,
    current_parts,
    has_own_process,
    json_option,
    library_options,
    model_option,
    open_library,
    within_option,
)
from local_rag.display import one_line, printable_json
from local_rag.errors import LibraryError, LocalRagError, QuestionError
from local_rag.files import command_for, needs_package
from local_rag.offline import Cluster, Network, close, is_loopback
from local_rag.serving.socket_client import ask_server, is_served

_LAST_SECONDS = 3.5  # after SIGTERM


class ListeningCommand(Command):
    """A command that listens first and then closes the network, after which it can open no socket."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, which closes the network itself."""
        return click.Command.invoke(self, ctx)


@click.command(cls=ListeningCommand, epilog="Example: local-rag serve --open")
@click.argument("libraries", nargs=-1, metavar="[LIBRARY]...", type=FOLDER)
@library_options
@model_option("answer", "answer with")
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    help="Port to listen on; 0 takes one that is free.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser, logged in.")
@click.option("--no-token", is_flag=True, help="Let every user and program of this machine in.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A name that others reach this server by.")
@click.option(
    "--public-url",
    metavar="URL",
    help="The address at which a proxy on this machine serves it, as https://notes.example.",
)
@click.option(
    "--may-add",
    multiple=True,
    type=PRESENT,
    help="Let editors add documents from below this folder; they may always upload files.",
)
@click.option("--openai", is_flag=True, help="Answer under /v1 too, as programs for OpenAI's models expect it.")
@click.option("--log-requests", is_flag=True, help="Print a line of JSON for each request to stderr.")
@click.option("--with-ask", is_flag=True, help="Let MCP hosts ask for answers too, as `local-rag mcp --with-ask` does.")
@click.option("--tls-cert", type=FILE, help="Certificate, in a PEM file.")
@click.option("--tls-key", type=FILE, help="Its key, in a PEM file.")
def serve(
    libraries: tuple[Path, ...],
    library: Path,
    host: str,
    port: int,
    opens: bool,
    no_token: bool,
    allow_host: tuple[str, ...],
    public_url: str | None,
    may_add: tuple[Path, ...],
    openai: bool,
    log_requests: bool,
    with_ask: bool,
    tls_cert: Path | None,
    tls_key: Path | None,
    **settings: Any,
) -> None:
    """Serve a page that answers questions and shows the evidence; the models stay loaded.

    Several libraries share the models. Without LIBRARY, the command serves the library that --library names.

    The token is the one in LOCAL_RAG_TOKEN, or in the file that LOCAL_RAG_TOKEN_FILE names, or a new one that the
    command prints. Other machines reach the server only by the names given with --allow-host or --public-url. Ctrl-C
    stops it.
    """
    given, parts, served = _given_token(), current_parts(), libraries or (library,)
    beyond = not is_loopback(host)
    if no_token:
        _require_no_others(served, beyond=beyond or bool(public_url))
    if beyond and not (allow_host or public_url):
        raise click.UsageError(
            f"{host} can be reached from other machines; name it as they address it with --allow-host or --public-url."
        )
    if bool(tls_cert) != bool(tls_key):
        raise click.UsageError("A certificate needs its key and a key its certificate: give --tls-cert and --tls-key.")
    for path in (tls_cert, tls_key):
        if path and not os.access(path, os.R_OK):
            raise click.UsageError(f"{path} cannot be read; name a PEM file.")
    try:
        from local_rag.mcp.server import http_interface
        from local_rag.openai.endpoint import chat_interface
        from local_rag.serving.served_models import open_library
        from local_rag.web.gate.authentication import require_good
        from local_rag.web.listening import PublicUrl, Tls, serve
    except ModuleNotFoundError as error:  # an optional dependency
        raise LocalRagError(needs_package("`local-rag serve`", error.name, "serve")) from None
    try:
        public = PublicUrl.parse(public_url) if public_url else None
    except ValueError as error:
        raise click.UsageError(f"--public-url {public_url} cannot be used: {error}.") from None
    if beyond and not tls_cert:
        click.echo("Without --tls-cert and --tls-key the traffic is unencrypted.", err=True)
    token = "" if no_token else require_good(*given) if given else secrets.token_urlsafe(24)
    tls = Tls(tls_cert, tls_key) if tls_cert and tls_key else None
    if tls:
        tls.require()
    listener = listen_on(host, port)
    with contextlib.closing(listener):
        port = listener.getsockname()[1]
        scheme = "https" if tls else "http"
        address = f"{public.origin}/" if public else f"{scheme}://{_reached(host, port, allow_host)}/"
        invitation = secrets.token_urlsafe(24) if opens and token else ""
        if opens:  # before the network is closed, also to child processes
            page = f"{address}login?once={invitation}" if invitation else address
            browser = [sys.executable, "-m", "webbrowser", page]
            subprocess.Popen(browser, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        if has_own_process(click.get_current_context()):
            signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))  # once the server has ended
            close(_network_of(served))
        click.echo(f"Answering on {address}")
        _name_missing(served)
        if token and not given:
            click.echo(
                f"The token of this run is {token}\nLOCAL_RAG_TOKEN sets a lasting one; --no-token does without."
            )
        interfaces: list[Any] = [partial(http_interface, with_ask=with_ask), *([chat_interface] if openai else [])]
        serve(
            served,
            partial(open_library, **settings),
            parts,
            listener,
            host=host,
            token=token,
            invitation=invitation,
            allowed=allow_host,
            public=public,
            tls=tls,
            interfaces=interfaces,
            may_add=may_add,
            log=partial(print, file=sys.stderr, flush=True) if log_requests else None,
            last_seconds=_LAST_SECONDS if has_own_process(click.get_current_context()) else None,
        )


def _name_missing(libraries: Sequence[Path]) -> None:
    """Say which libraries do not exist, because a path may be mistyped; the page can make them."""
    for folder in libraries:
        if not folder.exists():
            made = command_for(folder, "index", "PATH")
            click.echo(f"There is no library in {folder} yet; the page makes one, or `{made}`.", err=True)


def _network_of(libraries: Sequence[Path]) -> Network | Cluster:
    """Return what a server of these libraries may reach: the hosts that the settings of any of them name."""
    clusters = [allowed for allowed in map(allowed_network, libraries) if isinstance(allowed, Cluster)]
    return Cluster(frozenset().union(*(one.hosts for one in clusters))) if clusters else Network.NONE


def _require_no_others(libraries: Sequence[Path], *, beyond: bool) -> None:
    """Refuse to do without a token where others than this machine's users may come."""
    from local_rag.store.people_file import read_people

    if beyond:
        raise click.UsageError("A server that can be reached from other machines needs a token; leave out --no-token.")
    if any(read_people(library.resolve()) for library in libraries):
        raise click.UsageError("A library has people, who come in with their tokens; leave out --no-token.")


def _given_token() -> tuple[str, str] | None:
    """Return the token that the user has set and where, None if there is none; raise LibraryError if it cannot be read.

    It leaves the environment, which child processes inherit.
    """
    if token := os.environ.pop("LOCAL_RAG_TOKEN", "").strip():
        return token, "LOCAL_RAG_TOKEN"
    named = os.environ.get("LOCAL_RAG_TOKEN_FILE", "")
    if not named:
        return None
    try:
        path = Path(named).expanduser()
        token, mode = path.read_text(encoding="utf-8").strip(), path.stat().st_mode
    except (OSError, ValueError) as error:
        raise LibraryError(f"The token file {named} cannot be read ({error}); correct LOCAL_RAG_TOKEN_FILE.") from None
    if not token:
        raise LibraryError(f"The token file {named} is empty; write a token into it.")
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        click.echo(f"Other users of this machine can read the token file {named}; run `chmod 600 {named}`.", err=True)
    return token, named


def _reached(host: str, port: int, allowed: tuple[str, ...]) -> str:
    """Return host and port as this server is reached: by the first name that is allowed, beyond this machine."""
    name = host if is_loopback(host) or not allowed else allowed[0].lower()
    bare = f"[{name}]" if ":" in name and is_loopback(name) else name
    return bare if ":" in name and not is_loopback(name) else f"{bare}:{port}"


def listen_on(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise LocalRagError if there can be none."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family)
        # Else each reply on a connection that is used again waits 40 ms between its head and its body.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        raise LocalRagError(
            f"Port {port} of {host} cannot be listened on ({error.strerror}); name another with `--port`."
        ) from None


_FREEING_SECONDS = 2.0  # for the models, after the client has gone


@click.command(cls=Command, epilog="Example: local-rag mcp --with-ask")
@library_options
@click.option("--with-ask", is_flag=True, help="Let the library's own model answer questions too.")
def mcp(library: Path, with_ask: bool, **settings: Any) -> None:
    """Let a program such as an editor use the library: the program starts this command and speaks MCP with it.

    If `local-rag serve` is running for the same library, that server does the searching. The command ends with its
    input.
    """
    if importlib.util.find_spec("mcp") is None:  # an optional dependency
        raise LocalRagError(needs_package("`local-rag mcp`", "mcp", "serve"))
    # Imported here, because other commands do not need them.
    from local_rag.mcp.stdio import serve, take_standard_streams

    lines = take_standard_streams()
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
        serve(make_server(service, instructions, with_ask=with_ask), lines)
    finally:
        if not worker.close(_FREEING_SECONDS):  # nothing can stop modules or models that are still being loaded
            sys.stderr.flush()
            os._exit(130 if sys.exc_info()[0] else 0)


def _instructions(folder: Path, settings: Mapping[str, Any]) -> str:
    """Return the instructions for a host, without importing what a search needs."""
    from local_rag.mcp.shapes import RULES, write_instructions
    from local_rag.store.database import Store

    try:
        with closing(Store(folder)) as store:
            return write_instructions([document.path for document in store.documents()], store.roots())
    except LibraryError:
        from local_rag.settings import resolve_settings

        if resolve_settings(folder, {}, **settings).search_engine.address:
            return RULES  # only the index of the library is reachable from here, in the search engine
        raise


@click.group(cls=DefaultGroup, default="list")
def people() -> None:
    """Choose who may use a served library, and what each person can see."""


@people.command(epilog="Example: local-rag people add ada --role reader --in 'policies/**'")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(PERSON_ROLES),
    default="reader",
    help="A reader asks and reads, an editor also changes documents, an owner has full access.",
)
@within_option
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only documents with this tag; repeat for several.")
@library_options
@json_option
def add(
    name: str, role: str, within: tuple[str, ...], tags: tuple[str, ...], library: Path, as_json: bool, **_settings: Any
) -> None:
    """Add a person, and print the token of NAME. It is shown only now.

    --in and --tag limit what this person can see, in every interface of the server.
    """
    from local_rag.store.people_file import add_person

    try:
        token = add_person(library.resolve(), name, cast(PersonRole, role), within=within, tags=tags)
    except QuestionError as error:
        raise click.UsageError(str(error)) from None
    click.echo(printable_json({"name": name, "token": token}) if as_json else token)
    click.echo(f"This is the token of {name}; only its hash is kept.", err=True)


@people.command("list", epilog="Example: local-rag people list --json")
@library_options
@json_option
def list_command(library: Path, as_json: bool, **_settings: Any) -> None:
    """List the people of the library, their roles, and what each person can see."""
    from local_rag.store.people_file import list_people

    people = list_people(library.resolve())
    if as_json:
        listed = [
            {"name": one.name, "role": one.role, "in": list(one.limits.within), "tags": list(one.limits.tags)}
            for one in people
        ]
        click.echo(printable_json(listed))
        return
    for one in people:
        limits = [f"in {pattern}" for pattern in one.limits.within] + [f"tag {tag}" for tag in one.limits.tags]
        click.echo(one_line(f"{one.role:<7} {one.name}  {', '.join(limits) or 'everything'}"))
    if not people:
        click.echo("No people: who has the server's token may do all.", err=True)


@people.command(epilog="Example: local-rag people remove ada")
@click.argument("name")
@library_options
@json_option
def remove(name: str, library: Path, as_json: bool, **settings: Any) -> None:
    """Remove the person NAME and their conversations. The token and all sessions end at once."""
    from local_rag.store.people_file import remove_person

    person = remove_person(library.resolve(), name)
    with open_library(library, **settings) as opened:
        conversations = opened.history.forget(person.id)
    if as_json:
        click.echo(printable_json({"name": person.name, "conversations": conversations}))
    else:
        click.echo(f"Removed {one_line(person.name)} and {conversations} conversations.")
