"""What the interfaces over HTTP share: the request's body, the client's address, and whether the client has gone."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeAlias, TypeVar

from starlette.requests import Request
from starlette.routing import BaseRoute

from local_rag.errors import LocalRagError, StoppedError
from local_rag.serving.service import LibraryService

_BODY_SECONDS = 20.0

T = TypeVar("T")
# An interface beside the page: its routes, and what is entered while they are served.
Interface: TypeAlias = Callable[
    [LibraryService], tuple[Sequence[BaseRoute], Callable[[], AbstractAsyncContextManager[None]]]
]


class LateBodyError(LocalRagError):
    """Report a body that did not arrive in time."""


async def read_body(request: Request) -> bytes:
    """Return the body of a request, whose size the guard limits; raise LateBodyError if it does not arrive in time."""
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return await request.body()
    except TimeoutError:
        raise LateBodyError("The request did not arrive in time; send it again.") from None


def client_of(scope: Mapping[str, Any]) -> str:
    """Return the address of the client."""
    return str((scope.get("client") or ("unknown", 0))[0])


async def unless_gone(receive: Callable[[], Any], outcome: Awaitable[T]) -> T:
    """Wait for an outcome; cancel it and raise StoppedError once the client has gone."""
    done, gone = asyncio.ensure_future(outcome), asyncio.ensure_future(until_gone(receive))
    try:
        await asyncio.wait({done, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            raise StoppedError("The answer was stopped.")
        return done.result()
    finally:
        gone.cancel()
        with suppress(BaseException):
            done.cancel() or done.exception()


async def until_gone(receive: Callable[[], Any]) -> None:
    """Wait until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
