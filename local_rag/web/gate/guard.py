"""The checks before every route: who may ask, from which page, how much and how often."""

import asyncio
import html
import re
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from local_rag.asking import Filters, Person
from local_rag.errors import LocalRagError
from local_rag.offline import is_loopback
from local_rag.serving.http import (
    LateBodyError,
    TooLargeError,
    client_of,
    error_object,
    forwarded_for,
    json_response,
    set_person,
)
from local_rag.serving.requests import client_key
from local_rag.web.changes.additions import MOST_BYTES
from local_rag.web.gate.authentication import Access, Buckets, People

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_ADDED = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with `no-referrer` browsers send our own forms with the Origin null
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_HEADERS = [(name.encode(), value.encode()) for name, value in _ADDED.items()]
_FOR_ALL, _LOGIN, _JOIN = ("/healthz", "/static/"), "/login", "/join/"
NOBODY = Person("nobody", "", "reader", Filters(within=("/",)))  # who may only log in; no document matches
_PROGRAMS = "/v1/"
_WITH = {HTTPStatus.TOO_MANY_REQUESTS: {"retry-after": "1"}, HTTPStatus.UNAUTHORIZED: {"www-authenticate": "Bearer"}}
# Pages that only show something, to which pages of other sites may link.
_LINKED = re.compile(r"/|/document/[0-9]{1,18}|/join/[\w-]{1,100}", re.ASCII)
_LINK_FOLLOWED = "linked=1"
_FEWER = 4  # times fewer requests are served of strangers at an address than of who is known there

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
# In the scope of a request: the root of one of several libraries, whether there is no library at that root, and a
# function to call once the client is known, whose connection is then kept before those of strangers.
ROOT, ABSENT, KEEP = "local_rag.root", "local_rag.absent", "local_rag.keep"

Told = Callable[[Scope, int, float], None]  # of a request: its scope, the status, and the seconds until then


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one client may send: bytes of a body, of an address and of cookies, requests per second and at once.

    The body of a chat completion, which holds the whole `conversation`, may be longer, and so may an `upload` of files
    and a file of `questions`, which is small enough to be kept in memory alone.
    A body must arrive within `body_seconds`, an upload within `upload_seconds`.
    """

    body: int = 64 * 1024
    conversation: int = 1024 * 1024
    target: int = 16 * 1024
    cookies: int = 4 * 1024
    rate: float = 100.0
    burst: float = 300.0
    body_seconds: float = 20.0
    upload: int = MOST_BYTES
    questions: int = 1024 * 1024
    upload_seconds: float = 900.0


class Guard:
    """Pass on requests with an allowed host, origin and token, within the limits.

    `hosts` are the values of the header Host that are allowed, in lower case with their ports. A browser names the site
    of the page that sends a request as Origin, which must be one of `origins`; every route refuses other sites. With
    `behind_proxy`, a proxy on this machine tells the address of the client. Each response is `told`.
    """

    def __init__(
        self,
        app: Starlette,
        *,
        hosts: Collection[str],
        origins: Collection[str],
        access: Access,
        people: Callable[[], Awaitable[People]],
        behind_proxy: bool = False,
        limits: Limits = Limits(),
        told: Told = lambda _scope, _status, _seconds: None,
    ) -> None:
        self._told = told
        self._app, self._hosts, self._origins, self._people = app, frozenset(hosts), frozenset(origins), people
        self._access, self._behind_proxy, self._limits = access, behind_proxy, limits
        self._requests = Buckets(limits.rate, limits.burst)
        self._of_strangers = Buckets(limits.rate / _FEWER, limits.burst / _FEWER)

    def life(self) -> AbstractAsyncContextManager[Any]:
        """Return what must be entered while the application is served."""
        return self._app.router.lifespan_context(self._app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        began = time.monotonic()

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._told(scope, message["status"], time.monotonic() - began)
                given = list(message.get("headers", ()))
                present = {name.lower() for name, _ in given}
                message["headers"] = given + [(name, value) for name, value in _HEADERS if name not in present]
            await send(message)

        visit = scope["local_rag"] = Visit(scope, self._access, behind_proxy=self._behind_proxy)
        set_person(scope, NOBODY)
        response = None
        if await self._floods(visit):
            response = visit.refuse(HTTPStatus.TOO_MANY_REQUESTS, "Too many requests; wait a moment.")
        response = response or self._misplaced(visit) or self._too_much(visit) or await self._unknown(visit)
        await (response or self._app)(scope, self._limited(visit, receive), sending)

    async def _floods(self, visit: "Visit") -> bool:
        """Count a request; return whether there are too many, of strangers at an address or of who is known there."""
        if self._of_strangers.take(visit.client):
            return False
        with suppress(LocalRagError):
            if self._access.may_know(visit.headers):
                known = self._access.knows(visit.client, visit.headers, await self._look(visit))
                return not (known and self._requests.take(visit.client))
        return True

    async def _look(self, visit: "Visit") -> People:
        """Return the people, at whose file one look is enough for a request."""
        if visit.people is None:
            visit.people = await self._people()
        return visit.people

    async def body_of(self, scope: Scope, receive: Receive) -> Receive | None:
        """Return what receives the body of a request within the limits, None if the request would be refused."""
        visit = Visit(scope, self._access, behind_proxy=self._behind_proxy)
        if self._misplaced(visit) or self._too_much(visit):
            return None
        with suppress(LocalRagError):
            if self._access.knows(visit.client, visit.headers, await self._people()):
                return self._limited(visit, receive)
        return None

    def _limited(self, visit: "Visit", receive: Receive) -> Receive:
        """Return a function that receives a body of allowed length, in time."""
        received, most, whole, ends = 0, self._most(visit), False, asyncio.get_running_loop().time()
        ends += self._limits.upload_seconds if visit.is_upload else self._limits.body_seconds

        async def receiving() -> Message:
            nonlocal received, whole
            try:
                async with asyncio.timeout_at(None if whole else ends):
                    message = await receive()
            except TimeoutError:
                raise LateBodyError("The request did not arrive in time; send it again.") from None
            received, whole = received + len(message.get("body", b"")), not message.get("more_body", False)
            if received > most:
                raise TooLargeError(f"The request is larger than {most:,} bytes.")
            return message

        return receiving

    def _most(self, visit: "Visit") -> int:
        if visit.is_upload:
            return self._limits.upload
        if visit.path == "/questions":
            return self._limits.questions
        return self._limits.conversation if visit.path.startswith(_PROGRAMS) else self._limits.body

    def _misplaced(self, visit: "Visit") -> Response | None:
        """Refuse a request for another host, or from a page of another site."""
        hosts = visit.headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            reason = "This host is not served here; allow it with --allow-host, or name it with --public-url."
            return visit.refuse(HTTPStatus.BAD_REQUEST, reason)
        origins = visit.headers.getlist("origin")
        same_site = visit.headers.get("sec-fetch-site", "none") in {"same-origin", "none"}
        if visit.is_link or (same_site and all(origin.lower() in self._origins for origin in origins)):
            return None
        return visit.refuse(HTTPStatus.FORBIDDEN, "Pages of other sites may not ask here.")

    def _too_much(self, visit: "Visit") -> Response | None:
        """Refuse a request whose address, cookies or declared body are too large, or that ends at two places."""
        if "content-length" in visit.headers and "transfer-encoding" in visit.headers:
            # What follows it may be another request, as a proxy reads it; nothing more is read of this connection.
            response = visit.refuse(HTTPStatus.BAD_REQUEST, "A request has a length or is sent in pieces, not both.")
            response.headers["connection"] = "close"
            return response
        if sum(map(len, visit.headers.getlist("cookie"))) > self._limits.cookies:
            reason = f"The cookies are larger than {self._limits.cookies:,} bytes; delete those of this host."
            return visit.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, reason)
        if len(visit.scope.get("raw_path", b"")) + len(visit.scope.get("query_string", b"")) > self._limits.target:
            return visit.refuse(HTTPStatus.REQUEST_URI_TOO_LONG, "The address is too long.")
        length, most = visit.headers.get("content-length", "0"), self._most(visit)
        if not length.isascii() or not length.isdigit() or int(length[:20]) > most:
            return visit.refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The request is larger than {most:,} bytes.")
        return None

    async def _unknown(self, visit: "Visit") -> Response | None:
        """Refuse a request of nobody known, except for the form to log in, and note who sends the others."""
        if visit.path.startswith(_FOR_ALL):
            return None
        try:
            people = await self._look(visit)
        except LocalRagError as error:  # who may come in is not known, so nobody does
            return visit.refuse(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        entry = self._access.entry(visit.client, visit.headers, people)
        if not isinstance(entry, Person):
            return None if visit.path == _LOGIN or visit.path.startswith(_JOIN) else visit.turn_away(entry)
        visit.known = True
        set_person(visit.scope, entry)
        visit.scope.get(KEEP, lambda: None)()
        return visit.refuse(HTTPStatus.NOT_FOUND, "There is no such library.") if visit.scope.get(ABSENT) else None


class Visit:
    """A request as the checks and the pages see it: whether its client is `known`; `access` logs it in and out.

    `status` is that of the form to log in, behind which is what was `wanted`. With `behind_proxy`, a proxy on this
    machine tells the address of the client, which is noted in the scope.
    """

    def __init__(self, scope: Scope, access: Access, *, behind_proxy: bool) -> None:
        self.scope, self.headers, self.access = scope, Headers(scope=scope), access
        if behind_proxy and is_loopback(client_of(scope)):
            forwarded = forwarded_for(self.headers.getlist("x-forwarded-for"))
            scope["client"] = (forwarded, 0) if forwarded else scope.get("client")
        self.client = client_key(client_of(scope))
        self.known, self.status, self.wanted = False, HTTPStatus.OK, "/"
        self.people: People | None = None

    @property
    def path(self) -> str:
        """Return the path that is asked for, or that of the form to log in."""
        return str(self.scope["path"])

    @property
    def can_log_out(self) -> bool:
        """Whether the client has logged in."""
        return self.known and self.access.needed(self.people or {})

    @property
    def is_upload(self) -> bool:
        """Whether it sends files; whoever may not add any is refused before its body is read."""
        is_form = self.headers.get("content-type", "").startswith("multipart/form-data")
        return is_form and self.path == "/library/add"

    @property
    def is_link(self) -> bool:
        """Whether a person follows a link of another site, in a tab of its own, to a page that only shows."""
        return (
            self.scope["method"] == "GET"
            and "origin" not in self.headers
            and self.headers.get("sec-fetch-site", "none") in {"cross-site", "same-site"}
            and self.headers.getlist("sec-fetch-mode") == ["navigate"]
            and self.headers.getlist("sec-fetch-dest") in ([], ["document"])
            and bool(_LINKED.fullmatch(self.path))
        )

    def refuse(self, status: HTTPStatus, reason: str) -> Response:
        """Return a response with a reason, as its client reads it."""
        headers = _WITH.get(status)
        if self.path.startswith(_PROGRAMS):
            return json_response(error_object(reason), status, headers)
        return PlainTextResponse(reason + "\n", status, headers)

    def turn_away(self, status: HTTPStatus) -> Response | None:
        """Refuse a request of nobody known, or let it go on to the form to log in."""
        query = self.scope.get("query_string", b"").decode("latin-1")
        wanted = quote(self.path) + (f"?{query}" if query else "")
        if self.is_link and _LINK_FOLLOWED not in query:
            return _follow(self.scope.get(ROOT, "") + wanted)
        if status is HTTPStatus.TOO_MANY_REQUESTS:
            return self.refuse(status, "Too many wrong tokens; wait a minute.")
        if self.scope["method"] == "GET" and "text/html" in "".join(self.headers.getlist("accept")):
            self.status, self.wanted = HTTPStatus.UNAUTHORIZED, wanted
            self.scope["path"], self.scope["raw_path"], self.scope["query_string"] = _LOGIN, _LOGIN.encode(), b""
            return None
        return self.refuse(status, "A token is needed: log in, or send it as `Authorization: Bearer TOKEN`.")


def _follow(wanted: str) -> Response:
    """Return a page that leads on at once: browsers send the cookie only with what a page of ours asks for."""
    there = html.escape(f"{wanted}{'&' if '?' in wanted else '?'}{_LINK_FOLLOWED}")
    return HTMLResponse(
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={there}">'
        f'<title>local-rag</title><a href="{there}">Go on</a>\n'
    )
