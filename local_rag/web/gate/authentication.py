"""Who may come in: with the token, with the cookie of a session, or once through the link that `--open` opens."""

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.responses import Response

from local_rag.asking import HOST, Person
from local_rag.errors import LibraryError
from local_rag.keys import token_hash
from local_rag.serving.http import cookie_in

FEWEST, MOST = 20, 1000  # characters of a token
_MOST_SESSIONS = 50  # of one person
_MOST_CLIENTS, _MOST_WRONG = 10_000, 10_000
_INVITATION_SECONDS = 300.0

People = Mapping[str, Person]  # by the hashes of their tokens
Entry = Person | HTTPStatus  # who comes in, or why nobody does


class Buckets:
    """Count the actions of each client: `rate` per second, and up to `burst` at once."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def has(self, client: str) -> bool:
        """Return whether this client may do one more."""
        return self._count(client) >= 1

    def take(self, client: str) -> bool:
        """Return whether this client may do one more, and count it."""
        left = self._count(client)
        self._left.pop(client, None)
        self._left[client] = (left - 1 if left >= 1 else left, time.monotonic())
        if len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
        return left >= 1

    def _count(self, client: str) -> float:
        left, then = self._left.get(client, (self._burst, time.monotonic()))
        return min(self._burst, left + (time.monotonic() - then) * self._rate)


class Access:
    """Check tokens and cookies; without a `token` and without people all may come in.

    The `token` is that of who serves the library; each of the people, who are given by the hashes of their tokens, has
    another. However a wrong token arrives, a client may try `tries` different ones a minute. `invitation` lets in once.
    """

    def __init__(
        self, token: str = "", *, cookie: str = "local_rag_session", secure: bool = False, tries: float = 5.0,
        invitation: str = "",
    ) -> None:  # fmt: skip
        self._token, self._secure, self._invitation = token, secure, invitation
        # Browsers send a cookie to every port of a host; with the prefix they keep it to this one over TLS.
        self.cookie = f"__Host-{cookie}" if secure else cookie
        self._invited, self._invited_until = "", time.monotonic() + _INVITATION_SECONDS
        # By their hashes, with the ids of the people: one for each library, where there are several.
        self._sessions: OrderedDict[bytes, frozenset[str]] = OrderedDict()
        self._wrong: OrderedDict[tuple[str, bytes], None] = OrderedDict()
        self._tries = Buckets(tries / 60, tries)
        self._key = hashlib.sha256(b"session" + token.encode("utf-8", "surrogatepass")).digest()

    def needed(self, people: People) -> bool:
        """Return whether a token is needed."""
        return bool(self._token or people)

    def entry(self, client: str, headers: Headers, people: People) -> Entry:
        """Return who sends a request with the cookie of a session or a token, or why it may not come in."""
        if not self.needed(people):
            return HOST
        session = self._session(headers)
        if person := self._of_session(session, people):
            return person
        for token in _bearers(headers):
            return self._try(client, token, people)
        if session and _hashed(session) not in self._sessions and not self._is_ours(session):
            return self._try(client, session, people)
        return HTTPStatus.UNAUTHORIZED

    def may_know(self, headers: Headers) -> bool:
        """Return whether a request may be of somebody known: it brings a session or a token, or none is needed."""
        return not self._token or bool(self._session(headers)) or any(_bearers(headers))

    def knows(self, client: str, headers: Headers, people: People) -> bool:
        """Return whether a request would come in; a token that is wrong here may be right elsewhere: it is no try."""
        if not self.needed(people) or self._of_session(self._session(headers), people):
            return True
        tokens = [*_bearers(headers)][:1]
        return self._tries.has(client) and any(self._of_token(token, people) for token in tokens)

    def _of_session(self, session: str, people: People) -> Person | None:
        """Return the person of a session; one of somebody who was removed is of nobody."""
        identifiers = self._sessions.get(_hashed(session), frozenset()) if session else frozenset()
        if HOST.id in identifiers:
            return HOST
        return next((person for person in people.values() if person.id in identifiers), None)

    def log_in(
        self,
        client: str,
        token: str,
        response: Response,
        people: People,
        headers: Headers = Headers(),  # noqa: B008
    ) -> HTTPStatus:
        """Check a token from the form, and set the cookie of a new session, which stays one of other libraries too."""
        entry = self._try(client, token, people) if self.needed(people) else HTTPStatus.UNAUTHORIZED
        if isinstance(entry, HTTPStatus):
            return entry
        before = self._sessions.get(_hashed(self._session(headers)), frozenset())
        self._begin(response, entry, before - {HOST.id} - {person.id for person in people.values()})
        return HTTPStatus.OK

    def log_in_once(self, client: str, invitation: str, response: Response) -> HTTPStatus:
        """Begin a session with the invitation; where it comes a second time, end the session of the first.

        Other users of the machine see the command line of a browser that is started with it.
        """
        if not self._invitation or not self._same(invitation, self._invitation):
            self._try(client, invitation, {})
            return HTTPStatus.UNAUTHORIZED
        if self._invited or time.monotonic() > self._invited_until:
            self._sessions.pop(_hashed(self._invited), None)
            return HTTPStatus.UNAUTHORIZED
        self._invited = self._begin(response, HOST)
        return HTTPStatus.OK

    def let_in(self, person: Person, response: Response) -> None:
        """Begin a session of a person who has come through a link, and end all other ones: their token is another."""
        for hashed in [hashed for hashed, identifiers in self._sessions.items() if person.id in identifiers]:
            del self._sessions[hashed]
        self._begin(response, person)

    def may_try(self, client: str, code: str) -> bool:
        """Return whether a client may try one more code of a link."""
        return self._try(client, code, {}) is not HTTPStatus.TOO_MANY_REQUESTS

    def log_out(self, headers: Headers, response: Response) -> None:
        """End the session of a client."""
        self._sessions.pop(_hashed(self._session(headers)), None)
        response.delete_cookie(self.cookie, path="/", secure=self._secure, httponly=True, samesite="strict")

    def _begin(self, response: Response, person: Person, others: frozenset[str] = frozenset()) -> str:
        name = secrets.token_urlsafe(32)
        session = f"{name}.{self._signed(name)}"
        own = [hashed for hashed, identifiers in self._sessions.items() if person.id in identifiers]
        if len(own) >= _MOST_SESSIONS:
            del self._sessions[own[0]]
        self._sessions[_hashed(session)] = others | {person.id}
        response.set_cookie(self.cookie, session, httponly=True, samesite="strict", secure=self._secure, path="/")
        return session

    def _try(self, client: str, token: str, people: People) -> Entry:
        """Compare a token, unless the client has tried too many; the same wrong one again tells nobody anything."""
        if not self._tries.has(client):
            return HTTPStatus.TOO_MANY_REQUESTS
        if person := self._of_token(token, people):
            return person
        wrong = client, hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        if wrong not in self._wrong:
            self._tries.take(client)
            self._wrong[wrong] = None
            if len(self._wrong) > _MOST_WRONG:
                self._wrong.popitem(last=False)
        return HTTPStatus.UNAUTHORIZED

    def _of_token(self, token: str, people: People) -> Person | None:
        if self._token and self._same(token, self._token):
            return HOST
        return people.get(token_hash(token[: MOST + 1]))  # the time of the search tells of hashes, not of tokens

    @staticmethod
    def _same(given: str, wanted: str) -> bool:
        cut = given[: MOST + 1].encode("utf-8", "surrogatepass")
        return hmac.compare_digest(cut, wanted.encode("utf-8", "surrogatepass"))

    def _signed(self, name: str) -> str:
        return hmac.new(self._key, name.encode("utf-8", "surrogatepass"), "sha256").hexdigest()

    def _is_ours(self, session: str) -> bool:
        """Whether a cookie was made with this token, perhaps before a restart: then it is old, and no guess."""
        name, _, signed = session.partition(".")
        return signed.isascii() and hmac.compare_digest(self._signed(name), signed)

    def _session(self, headers: Headers) -> str:
        session = cookie_in(headers.getlist("cookie"), self.cookie)
        return session if session.isascii() else ""


def _hashed(session: str) -> bytes:
    """Return what a session is looked up by: the time of that tells of hashes, not of sessions."""
    return hashlib.sha256(session.encode()).digest()


def _bearers(headers: Headers) -> Iterator[str]:
    for value in headers.getlist("authorization"):
        scheme, _, token = value.partition(" ")
        if scheme.lower() == "bearer":
            yield token.strip()


def require_good(token: str, place: str) -> str:
    """Return a token; raise LibraryError where it is too short to be safe, or cannot be sent in a header."""
    problem = ""
    if not FEWEST <= len(token) <= MOST:
        problem = f"has {len(token):,} characters, which must be {FEWEST} to {MOST:,}"
    elif not token.isascii() or not token.isprintable() or " " in token:
        problem = "holds other signs than ASCII letters, digits and punctuation"
    if problem:
        raise LibraryError(
            f"The token in {place} {problem}; make one with "
            "`python3 -c 'import secrets; print(secrets.token_urlsafe(24))'`."
        )
    return token
