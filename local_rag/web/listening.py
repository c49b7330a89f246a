"""Run the server on a socket that already listens, because the network may be closed by then.

Several libraries stand behind one address: the first one at the top, and each of them below `/in/NAME`. Each is an
application with its own checks, people and history. Under `/v1` they are the models of one list: a request goes to the
library that its model names.
"""

import asyncio
import itertools
import json
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import Any, Self, cast
from urllib.parse import quote, urlsplit

import uvicorn
from starlette.responses import Response

from local_rag.errors import LocalRagError
from local_rag.library import Library, Parts
from local_rag.offline import is_loopback
from local_rag.serving.http import Interface
from local_rag.serving.served_models import SharedModels
from local_rag.serving.service import name_of
from local_rag.serving.worker import LibraryWorker
from local_rag.web.app import Log, make_app
from local_rag.web.gate.authentication import Access
from local_rag.web.gate.connections import Connection, Connections, most_connections
from local_rag.web.gate.guard import ABSENT, ROOT, Guard, Message, Receive, Scope, Send

_GRACE_SECONDS = 1
_ACCEPTED_AT_ONCE = 32  # before any of them is read, fewer than may wait from one address
_USUAL_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Tls:
    """The files of a certificate and of its key."""

    certificate: Path
    key: Path

    def require(self) -> None:
        """Raise LocalRagError if the files cannot be used."""

        def refuse() -> str:  # else OpenSSL asks on the terminal
            raise ValueError("the key has a password")

        try:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(self.certificate, self.key, password=refuse)
        except (OSError, ValueError) as error:  # SSLError is an OSError
            raise LocalRagError(
                f"{self.certificate} and {self.key} cannot be used ({error}); name a certificate and its own key, "
                "without a password, with `--tls-cert` and `--tls-key`."
            ) from None


@dataclass(frozen=True, slots=True)
class PublicUrl:
    """The address under which a proxy on this machine serves this server to others, such as https://notes.example."""

    scheme: str
    host: str  # as in the header Host: in lower case, with a port unless it is the usual one

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an address; raise ValueError with what is wrong."""
        parts = urlsplit(text)
        if parts.scheme not in _USUAL_PORTS or not parts.hostname:
            raise ValueError("give an address such as https://notes.example")
        if parts.path not in ("", "/") or parts.query or parts.fragment or parts.username:
            raise ValueError("give an address without a path; the proxy must pass on a whole host")
        name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        usual = parts.port in (None, _USUAL_PORTS[parts.scheme])
        return cls(parts.scheme, name if usual else f"{name}:{parts.port}")

    @property
    def hosts(self) -> set[str]:
        """Return the values of the header Host that name it."""
        return {self.host, f"{self.host}:{_USUAL_PORTS[self.scheme]}"} if ":" not in self.host else {self.host}

    @property
    def origin(self) -> str:
        """Return the value of the header Origin of its pages."""
        return f"{self.scheme}://{self.host}"


def serve(
    libraries: Sequence[Path],
    open_library: Callable[[Path, Parts], Library],
    parts: Parts,
    listener: socket.socket,
    *,
    host: str,
    token: str = "",
    invitation: str = "",
    allowed: Iterable[str] = (),
    public: PublicUrl | None = None,
    tls: Tls | None = None,
    interfaces: Sequence[Interface] = (),
    may_add: Sequence[Path] = (),
    log: Log | None = None,
    last_seconds: float | None = None,
) -> None:
    """Answer from libraries on a listening socket until Ctrl-C; `interfaces` are those beside the page.

    With an `invitation` one browser comes in without the token. `public` is the address of a proxy. Documents may be
    added from below the folders `may_add`. Each request is a line of the `log`. With `last_seconds`, the process ends
    so soon after a signal whatever it does.
    """
    port = int(listener.getsockname()[1])
    hosts, scheme = allowed_hosts(host, port, allowed), "https" if tls else "http"
    origins = {f"{scheme}://{name}" for name in hosts}
    secure = (public.scheme if public else scheme) == "https"
    access = Access(token, cookie=f"local_rag_session_{port}", secure=secure, invitation=invitation)
    shared, folders = SharedModels(parts), names_of(libraries)
    turn = shared.turn if len(folders) > 1 else nullcontext()
    workers = {
        name: LibraryWorker(partial(open_library, folder, shared.parts()), turn=turn)
        for name, folder in folders.items()
    }
    named = [(name, root_of(name) if number else "") for number, name in enumerate(workers)]
    apps = {
        name: make_app(
            worker,
            hosts=hosts | (public.hosts if public else set()),
            origins=origins | ({public.origin} if public else set()),
            access=access,
            behind_proxy=public is not None,
            port=port,
            with_socket=True,
            interfaces=interfaces,
            may_add=may_add,
            log=log,
            root=root,
            libraries=named,
        )
        for (name, root), worker in zip(named, workers.values(), strict=True)
    }
    app = Libraries(apps) if len(apps) > 1 else next(iter(apps.values()))
    options: dict[str, Any] = {"ssl_certfile": tls.certificate, "ssl_keyfile": tls.key} if tls else {}
    connections = Connections(most=most_connections(), behind_proxy=public is not None)
    server = _Server(server_config(app, connections, **options))
    server.last_seconds = last_seconds
    server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """A server whose process ends within `last_seconds` of SIGTERM, if they are given, whatever is still at work.

    Nothing is lost by that: what is stored is stored in transactions.
    """

    last_seconds: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end."""
        super().handle_exit(sig, frame)
        if self.last_seconds is not None:
            last = threading.Timer(self.last_seconds, os._exit, (0,))
            last.daemon = True
            last.start()


def names_of(libraries: Sequence[Path]) -> dict[str, Path]:
    """Return libraries by their names; of those with the same name, the later ones have a number."""
    named = dict[str, Path]()
    for folder in dict.fromkeys(path.resolve() for path in libraries):
        name = name_of(folder)
        numbers = (f"{name}-{number}" for number in itertools.count(2))
        named[name if name not in named else next(one for one in numbers if one not in named)] = folder
    return named


def server_config(app: Any, connections: Connections, **options: Any) -> uvicorn.Config:
    """Return how uvicorn runs an application."""
    return uvicorn.Config(
        app,
        http=cast(Any, partial(Connection, connections)),
        loop="local_rag.web.gate.connections:Loop",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        ws="none",
        backlog=_ACCEPTED_AT_ONCE,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        **options,
    )


def allowed_hosts(host: str, port: int, allowed: Iterable[str]) -> set[str]:
    """Return the values of the header Host that are allowed: this machine's names, and those that the user named."""
    names = {"127.0.0.1", "localhost", "[::1]"} if is_loopback(host) else set()
    if is_loopback(host):
        names.add(f"[{host}]" if ":" in host else host)
    hosts = {f"{name}:{port}" for name in names}
    for name in allowed:
        lowered = name.lower()
        hosts |= {lowered, f"{lowered}:{port}"}
    return hosts | (names if port in (80, 443) else set())


_PREFIX = "/in/"
_MODELS, _NAMING = "/v1/models", ("/v1/chat/completions", "/v1/verify")


def root_of(name: str) -> str:
    """Return the path below which the pages of a library are."""
    return _PREFIX + quote(name, safe="")


class Libraries:
    """Pass each request on to the library that it names; `apps` are theirs by name, the first one first."""

    def __init__(self, apps: Mapping[str, Guard]) -> None:
        self._apps, self._first = dict(apps), next(iter(apps.values()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, or begin and end all libraries."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        path = str(scope.get("path", ""))
        if path.startswith(_PREFIX):
            name, _, rest = path.removeprefix(_PREFIX).partition("/")
            # One that is not there is answered by the first library, which tells strangers nothing.
            root, rest, absent = root_of(name), f"/{rest}", name not in self._apps
            below = {**scope, "path": rest, "raw_path": quote(rest).encode(), ROOT: root, ABSENT: absent}
            await self._apps.get(name, self._first)(below, receive, _below(root, send))
        elif path == _MODELS and scope["method"] == "GET":
            await (await self._all_models(scope))(scope, receive, send)
        elif path.startswith(f"{_MODELS}/"):
            await self._named(path.removeprefix(f"{_MODELS}/"))(scope, receive, send)
        elif path in _NAMING:
            await self._pass_on(scope, receive, send)
        else:
            await self._first(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what names a library in its body; that of a client that no library knows is not read."""
        for app in self._apps.values():
            if limited := await app.body_of({**scope}, receive):
                body, again = await _read(limited)
                named = self._named(await asyncio.to_thread(_model_of, body))
                await named(scope, again, send)
                return
        await self._first(scope, receive, send)

    def _named(self, model: str) -> Guard:
        """Return the library that a model names, perhaps with a filter behind its name; the first one for any other."""
        fitting = [name for name in self._apps if model == name or model.startswith(f"{name}/")]
        return self._apps[max(fitting, key=len)] if fitting else self._first

    async def _all_models(self, scope: Scope) -> Response:
        """Return the models of all libraries into which this client may come."""
        answers = [await _answer_of(app, scope) for app in self._apps.values()]
        lists = [json.loads(body)["data"] for status, body in answers if status == HTTPStatus.OK]
        status, body = answers[0]
        if lists:
            listed = {"object": "list", "data": [model for models in lists for model in models]}
            status, body = HTTPStatus.OK, json.dumps(listed).encode() + b"\n"
        return Response(body, status, media_type="application/json")

    async def _live(self, receive: Receive, send: Send) -> None:
        """Begin all libraries, and end them when the server ends."""
        await receive()
        try:
            async with AsyncExitStack() as stack:
                for app in self._apps.values():
                    await stack.enter_async_context(app.life())
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except BaseException as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.shutdown.complete"})


def _below(root: str, send: Send) -> Send:
    """Return a function that sends, and leads to paths below a root where a response leads to a path."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [
                (name, root.encode() + value if name.lower() == b"location" and value[:1] == b"/" else value)
                for name, value in message.get("headers", ())
            ]
        await send(message)

    return sending


async def _answer_of(app: Guard, scope: Scope) -> tuple[int, bytes]:
    """Ask one library; return the status and the body of its response."""
    status, parts = 0, list[bytes]()

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        status = message.get("status", status)
        parts.append(message.get("body", b""))

    await app({**scope}, receive, send)
    return status, b"".join(parts)


async def _read(receive: Receive) -> tuple[bytes, Receive]:
    """Read a body within the limits; return it, and what gives it again, or what refuses it."""
    messages, more, problem = list[Message](), True, None
    while more:
        try:
            message = await receive()
        except LocalRagError as error:  # too late, or too long
            problem = error
            break
        messages.append(message)
        more = message["type"] == "http.request" and bool(message.get("more_body"))
    left = list(messages)

    async def again() -> Message:
        if not left and problem:
            raise problem
        return left.pop(0) if left else await receive()

    return b"".join(message.get("body", b"") for message in messages), again


def _model_of(body: bytes) -> str:
    try:
        fields: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    model = fields.get("model") if isinstance(fields, dict) else ""
    return model if isinstance(model, str) else ""
