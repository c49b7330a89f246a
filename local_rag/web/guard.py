"""The checks before every route: who may ask, from which page, how much and how often."""

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.responses import PlainTextResponse, Response

from local_rag.serving.http import TooLargeError, client_of

COOKIE = "local_rag_session"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with `no-referrer` browsers send our own forms with the Origin null
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_OPEN_TO_ALL = ("/healthz", "/login", "/static/")
_CONVERSATIONS = "/v1/"
_MOST_SESSIONS, _MOST_CLIENTS, _LONGEST_TOKEN = 1000, 10_000, 1000

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one client may send: bytes of a body, requests per second and at once, and logins per minute.

    The body of a chat completion, which holds the whole `conversation`, may be longer.
    """

    body: int = 64 * 1024
    conversation: int = 1024 * 1024
    target: int = 16 * 1024
    rate: float = 100.0
    burst: float = 300.0
    logins: float = 5.0


class Buckets:
    """Count the actions of each client: `rate` per second, and up to `burst` at once."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> bool:
        """Return whether this client may do one more."""
        now = time.monotonic()
        left, then = self._left.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        self._left[client] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
        return left >= 1


class Guard:
    """Pass on requests with an allowed host, origin and token, within the limits.

    `hosts` are the values of the header Host that are allowed, in lower case with their ports. A browser
    names the site of the page that sends a request as Origin; every route refuses other sites.
    """

    def __init__(self, app: App, *, hosts: Collection[str], token: str = "", tls: bool = False, limits: Limits) -> None:
        self._app, self._hosts, self._token, self._tls, self._limits = app, frozenset(hosts), token, tls, limits
        self._origins = frozenset(f"{'https' if tls else 'http'}://{host}" for host in hosts)
        self._sessions: OrderedDict[str, None] = OrderedDict()
        self._requests = Buckets(limits.rate, limits.burst)
        self._logins = Buckets(limits.logins / 60, limits.logins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [(name, value) for name, value in message.get("headers", ())]
                present = {name.lower() for name, _ in kept}
                added = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = kept + [(name, value) for name, value in added if name not in present]
            await send(message)

        received, most = 0, self._most(scope)

        async def receiving() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                raise TooLargeError(f"The request is larger than {most:,} bytes.")
            return message

        headers = _headers(scope)
        scope["local_rag"] = {
            "login": self.log_in,
            "logout": self.log_out,
            "needs_token": bool(self._token),
            "status": HTTPStatus.OK,
        }
        await (self._refusal(scope, headers) or self._app)(scope, receiving, sending)

    def _most(self, scope: Scope) -> int:
        """Return the most bytes that a body may have."""
        return self._limits.conversation if scope["path"].startswith(_CONVERSATIONS) else self._limits.body

    def _refusal(self, scope: Scope, headers: Mapping[str, list[str]]) -> Response | None:
        """Return the response that refuses a request, None if the request may pass."""
        if not self._requests.take(client_of(scope)):
            return _refuse(HTTPStatus.TOO_MANY_REQUESTS, "Too many requests; wait a moment.", {"retry-after": "1"})
        hosts = headers.get("host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _refuse(HTTPStatus.BAD_REQUEST, "This host is not served here; allow it with --allow-host.")
        if not self._same_site(scope, headers):
            return _refuse(HTTPStatus.FORBIDDEN, "Pages of other sites may not ask here.")
        return self._too_much(scope, headers) or self._unknown(scope, headers)

    def _too_much(self, scope: Scope, headers: Mapping[str, list[str]]) -> Response | None:
        """Refuse a request whose address or declared body is too large."""
        if len(scope.get("raw_path", b"")) + len(scope.get("query_string", b"")) > self._limits.target:
            return _refuse(HTTPStatus.REQUEST_URI_TOO_LONG, "The address is too long.")
        lengths, most = headers.get("content-length", ["0"]), self._most(scope)
        if not lengths[0].isascii() or not lengths[0].isdigit() or int(lengths[0][:20]) > most:
            return _refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The request is larger than {most:,} bytes.")
        return None

    def _unknown(self, scope: Scope, headers: Mapping[str, list[str]]) -> Response | None:
        """Refuse a request without the token, except for the form to log in."""
        if self._token and not scope["path"].startswith(_OPEN_TO_ALL) and not self._knows(headers):
            if scope["method"] == "GET" and "text/html" in "".join(headers.get("accept", [])):
                scope["path"], scope["raw_path"], scope["query_string"] = "/login", b"/login", b""
                scope["local_rag"]["status"] = HTTPStatus.UNAUTHORIZED
                return None
            return _refuse(
                HTTPStatus.UNAUTHORIZED,
                "A token is needed: log in, or send it as `Authorization: Bearer TOKEN`.",
                {"www-authenticate": "Bearer"},
            )
        return None

    def _same_site(self, scope: Scope, headers: Mapping[str, list[str]]) -> bool:
        """Return whether a request comes from a page of this server, or from no page."""
        origins = headers.get("origin", [])
        if any(origin.lower() not in self._origins for origin in origins):
            return False
        if headers.get("sec-fetch-site", ["none"])[0] in {"same-origin", "none"}:
            return True
        # A link on another site may lead to the empty form, but may not ask or embed anything.
        return scope["method"] == "GET" and scope["path"] == "/" and headers.get("sec-fetch-mode") == ["navigate"]

    def _knows(self, headers: Mapping[str, list[str]]) -> bool:
        """Return whether a request carries the token or the cookie of a session."""
        for value in headers.get("authorization", []):
            scheme, _, token = value.partition(" ")
            if scheme.lower() == "bearer" and self._is_token(token.strip()):
                return True
        session = _cookie(headers)
        return any(hmac.compare_digest(session.encode(), known.encode()) for known in self._sessions)

    def _is_token(self, token: str) -> bool:
        return hmac.compare_digest(token[:_LONGEST_TOKEN].encode(), self._token.encode())

    def log_in(self, scope: Scope, token: str, response: Response) -> HTTPStatus:
        """Check a token from the form, and set the cookie of a new session."""
        if not self._logins.take(client_of(scope)):
            return HTTPStatus.TOO_MANY_REQUESTS
        if not self._token or not self._is_token(token):
            return HTTPStatus.UNAUTHORIZED
        session = secrets.token_urlsafe(32)
        self._sessions[session] = None
        if len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        response.set_cookie(COOKIE, session, httponly=True, samesite="strict", secure=self._tls, path="/")
        return HTTPStatus.OK

    def log_out(self, scope: Scope, response: Response) -> None:
        """End the session of the client."""
        self._sessions.pop(_cookie(_headers(scope)), None)
        response.delete_cookie(COOKIE, path="/")


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _cookie(headers: Mapping[str, list[str]]) -> str:
    jar: SimpleCookie = SimpleCookie()
    try:
        jar.load("; ".join(headers.get("cookie", [])))
    except CookieError:
        return ""
    return jar[COOKIE].value if COOKIE in jar else ""


def _refuse(status: HTTPStatus, reason: str, headers: Mapping[str, str] | None = None) -> Response:
    return PlainTextResponse(reason + "\n", status, dict(headers or {}))
