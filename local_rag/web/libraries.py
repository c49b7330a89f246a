"""Several libraries behind one address: the first one at the top, and each of them below `/in/NAME`.

Each is an application with its own checks, people and history. Under `/v1` they are the models of one list: a request
goes to the library that its model names.
"""

import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from local_rag.web.guard import ROOT, Guard, Message, Receive, Scope, Send

_PREFIX = "/in/"
_MODELS, _COMPLETIONS = "/v1/models", "/v1/chat/completions"
_LONGEST_BODY = 1024 * 1024  # of which a model is read


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
            root = root_of(name)
            # One that is not there is answered by the first library, which tells strangers nothing.
            app, rest = (self._apps[name], f"/{rest}") if name in self._apps else (self._first, path)
            below = {**scope, "path": rest, "raw_path": quote(rest).encode(), ROOT: root}
            await app(below, receive, _below(root, send) if name in self._apps else send)
        elif path == _MODELS and scope["method"] == "GET":
            await (await self._all_models(scope))(scope, receive, send)
        elif path.startswith(f"{_MODELS}/"):
            await self._named(path.removeprefix(f"{_MODELS}/"))(scope, receive, send)
        elif path == _COMPLETIONS:
            body, again = await _read(receive)
            await self._named(_model_of(body))(scope, again, send)
        else:
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
    """Read a body as far as a model is looked for in it; return it, and what gives it again and then the rest."""
    messages, size, more = list[Message](), 0, True
    while more and size <= _LONGEST_BODY:
        message = await receive()
        messages.append(message)
        size += len(message.get("body", b""))
        more = message["type"] == "http.request" and bool(message.get("more_body"))
    left = list(messages)

    async def again() -> Message:
        return left.pop(0) if left else await receive()

    return b"".join(message.get("body", b"") for message in messages), again


def _model_of(body: bytes) -> str:
    try:
        fields: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    model = fields.get("model") if isinstance(fields, dict) else ""
    return model if isinstance(model, str) else ""
