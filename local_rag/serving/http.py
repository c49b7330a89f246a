"""What the interfaces over HTTP share: streams of events, the status of an error, and who has gone."""

import asyncio
import ipaddress
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeAlias, TypeVar

from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from local_rag.asking import Person
from local_rag.display import printable_json
from local_rag.errors import BusyError, ForbiddenError, LocalRagError, MissingError, QuestionError, StoppedError
from local_rag.serving.job import Job
from local_rag.serving.requests import Caller
from local_rag.serving.service import Service

T = TypeVar("T")
_PERSON = "local_rag.person"  # in the scope of a request
# An interface beside the page: its routes, and what is entered while they are served.
Interface: TypeAlias = Callable[[Service], tuple[Sequence[BaseRoute], Callable[[], AbstractAsyncContextManager[None]]]]


class LateBodyError(LocalRagError):
    """Report a body that did not arrive in time."""


class TooLargeError(LocalRagError):
    """Report a body that is larger than allowed."""


_STATUSES: tuple[tuple[type[LocalRagError], int], ...] = (
    (QuestionError, 400),
    (ForbiddenError, 403),
    (MissingError, 404),
    (LateBodyError, 408),
    (TooLargeError, 413),
    (BusyError, 429),
)


def status_of(error: BaseException) -> int:
    """Return the status of a response that reports an error: 503 for what may be better the next time."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 503)


def json_response(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return records as JSON, as the command line prints it."""
    return Response(printable_json(value) + "\n", status, headers, media_type="application/json")


def error_object(message: str, code: str | None = None) -> dict[str, Any]:
    """Return an error as clients of OpenAI's models read it."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


def caller_of(scope: Mapping[str, Any], route: str) -> Caller:
    """Return who asks through a route, as the checks before every route have found out."""
    return Caller(client_of(scope), route, person_of(scope))


def person_of(scope: Mapping[str, Any]) -> Person:
    """Return the person who asks."""
    person: Person = scope[_PERSON]  # who skips the checks may read nothing
    return person


def set_person(scope: MutableMapping[str, Any], person: Person) -> None:
    """Note who asks."""
    scope[_PERSON] = person


def client_of(scope: Mapping[str, Any]) -> str:
    """Return the address of the client."""
    return str((scope.get("client") or ("unknown", 0))[0])


def forwarded_for(values: Sequence[str]) -> str:
    """Return the client of which the nearest proxy tells, empty where it tells of none.

    `values` are those of X-Forwarded-For; the entries before the last one may have been told by anybody.
    """
    told = ",".join(values).rpartition(",")[2].strip()
    try:
        return str(ipaddress.ip_address(told))
    except ValueError:
        return ""


def cookie_in(values: Sequence[str], name: str) -> str:
    """Return the value of a cookie as it was sent, empty if there is none; `values` are those of the header Cookie.

    Ours hold letters, digits and signs that no browser quotes, so nothing is unquoted.
    """
    for pair in ";".join(values).split(";"):
        key, _, value = pair.partition("=")
        if key.strip() == name:
            return value.strip()
    return ""


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


class EventStream(Response):
    """Send the events of a job until they end or the client has gone, which stops the job."""

    def __init__(self, job: Job[Any], events: AsyncGenerator[bytes], headers: Mapping[str, str] | None = None) -> None:
        own = {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no"}
        super().__init__(headers=own | dict(headers or {}))
        del self.headers["content-length"]
        self._job, self._events = job, events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        gone = asyncio.ensure_future(until_gone(receive))
        writing = asyncio.ensure_future(self._write(send, gone))
        try:
            await asyncio.wait({writing, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._job.stop()
            for task in (writing, gone):
                task.cancel()
            await asyncio.gather(writing, gone, return_exceptions=True)
            await self._events.aclose()
        with suppress(OSError):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, send: Send, gone: asyncio.Future[None]) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for event in self._events:
            if gone.done():
                return
            await send({"type": "http.response.body", "body": event, "more_body": True})
