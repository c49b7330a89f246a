"""Several libraries behind one address: the first one at the top, and each of them below `/in/NAME`.

Each is an application with its own checks, people and history. Under `/v1` they are the models of one list: a request
goes to the library that its model names.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from local_rag.errors import LocalRagError
from local_rag.web.gate.guard import ABSENT, ROOT, Guard, Message, Receive, Scope, Send

_PREFIX = "/in/"
_MODELS, _COMPLETIONS = "/v1/models", "/v1/chat/completions"


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
        elif path == _COMPLETIONS:
            await self._complete(scope, receive, send)
        else:
            await self._first(scope, receive, send)

    async def _complete(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a completion; the body of a client that no library knows is not read."""
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
