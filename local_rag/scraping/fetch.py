"""Fetch web pages politely, within limits, as robots.txt asks (RFC 9309), and only from sites that the user meant."""

import contextlib
import functools
import math
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from importlib.metadata import version
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from protego import Protego

from local_rag.errors import NetworkError
from local_rag.scraping.checked_connection import CheckedSession, is_private, resolve

PRODUCT = "local-rag"
MAX_BYTES = 1_000_000  # the rest is ignored; the RFC requires at least 500 KiB
_AGENT = re.compile(r"^\s*user[-\s]*agent\b[\s:]*(\*(?=[\s#]|$)|[\w-]*).*", re.IGNORECASE)

USER_AGENT = f"{PRODUCT}/{version('local-rag')} (+respecting robots.txt)"
_ATTEMPTS = 3
_REDIRECTS = 10
_LONGEST_PAUSE = 60.0  # seconds between two requests; a site that asks for more is skipped
_TEMPORARY = {429, 500, 502, 503, 504}


@dataclass(frozen=True, slots=True)
class Response:
    """A server's response; `url` is the address after redirects, `body` is empty unless `status` is 200."""

    url: str
    status: int
    content_type: str
    charset: str | None
    etag: str | None
    last_modified: str | None
    location: str | None
    robots: str  # the header X-Robots-Tag
    body: bytes


def normalize_url(url: str) -> str:
    """Return the canonical form of a web address without its fragment; raise NetworkError if it is not one."""
    request = requests.PreparedRequest()
    try:
        request.prepare_url(url.strip(), None)
        parts = urlsplit(request.url or "")
        host = parts.hostname
    except (requests.RequestException, ValueError):
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise NetworkError(
            f"{url!r} is not a web address; write it with http:// or https://, such as https://example.org/page"
        )
    if "@" in parts.netloc:
        raise NetworkError(f"an address at {host} contains a user name or password; put these in ~/.netrc")
    port = ":80" if parts.scheme == "http" else ":443"
    return parts._replace(netloc=parts.netloc.removesuffix(port), fragment="").geturl()


def host_of(url: str) -> str:
    """Return the host of a web address."""
    return urlsplit(url).hostname or ""


def server_of(url: str) -> str:
    """Return the host and port of a web address."""
    parts = urlsplit(url)
    return parts.netloc if parts.port is not None else f"{parts.netloc}:{80 if parts.scheme == 'http' else 443}"


def site_of(url: str) -> str:
    """Return the site of a web address: its host without a leading "www."."""
    return host_of(url).removeprefix("www.")


def describe_status(status: int) -> str:
    """Describe a server's status in words."""
    known = status in {known.value for known in HTTPStatus}
    return f"the server answered {status}" + (f" {HTTPStatus(status).phrase}" if known else "")


class _TemporaryError(NetworkError):
    """A failure that may be temporary; `pause` is how many seconds the server asks to wait."""

    pause = 0.0


class Fetcher:
    """Fetch pages one at a time over one session, obeying each site's robots.txt and the limits.

    `delay` is in seconds between two requests to one host, `timeout` in seconds without a byte (as in CheckedSession).
    """

    def __init__(
        self,
        *,
        delay: float,
        timeout: float,
        allow_private: bool,
        resolve: Callable[[str], Iterable[str]] = resolve,
    ) -> None:
        self._delay = delay
        self._timeout = timeout
        self._allow_private = allow_private
        self._resolve = resolve
        self._session = CheckedSession(self._check_address)
        self._private_is_allowed = allow_private  # by the fetch in progress
        self._session.headers["User-Agent"] = USER_AGENT
        self._robots: dict[str, Protego | NetworkError] = {}
        self._delays: dict[str, float] = {}
        self._finished: dict[str, float] = {}
        self._closed_until: dict[str, float] = {}

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def fetch(
        self,
        url: str,
        content_types: Collection[str],
        *,
        max_bytes: int,
        home: str | None = None,
        site: str | None = None,
        conditions: Callable[[str], Mapping[str, str]] | None = None,
        obey_robots: bool = True,
        cut: bool = False,
    ) -> Response:
        """Fetch an address, checking and following redirects; raise NetworkError with the reason if that fails.

        `max_bytes` limits a body after decompression; with `cut`, a longer one is read until there. `home` is a private
        host and port that are allowed, `site` a host that redirects may not leave. `conditions` returns the
        If-None-Match and If-Modified-Since headers of an address. The response may have any status.
        """
        read = functools.partial(_read, content_types=content_types, max_bytes=max_bytes, cut=cut)
        for _ in range(_REDIRECTS + 1):
            home = home if server_of(url) == home else None  # a public site may not redirect back to it
            private_is_allowed = self._allow_private or home is not None
            if not private_is_allowed and any(map(is_private, self._resolve(host_of(url)))):
                raise NetworkError(f"it leads to the private address {server_of(url)}; allow that with --allow-private")
            if site is not None and site_of(url) != site:
                raise NetworkError(f"it redirects to another site, {url}; follow that with --any-site")
            if obey_robots:
                self._obey_robots(url, home)
            self._private_is_allowed = private_is_allowed  # only now, because fetching robots.txt changes it
            response = self._get(url, conditions(url) if conditions else {}, read)
            if response.location is None:
                return response
            try:
                url = normalize_url(urljoin(url, response.location))
            except (NetworkError, ValueError):
                raise NetworkError(f"it redirects to {response.location}, which is not a web address") from None
        raise NetworkError(f"it redirects more than {_REDIRECTS} times")

    def _check_address(self, address: str) -> None:
        if not self._private_is_allowed and is_private(address):
            raise NetworkError(f"it leads to the private address {address}; allow that with --allow-private")

    def _obey_robots(self, url: str, home: str | None) -> None:
        robots_url = urljoin(url, "/robots.txt")
        if robots_url not in self._robots:
            try:
                self._robots[robots_url] = self._read_robots(robots_url, home)
            except NetworkError as error:
                self._robots[robots_url] = error  # try a dead host once, not once per link
        rules = self._robots[robots_url]
        if isinstance(rules, NetworkError):
            raise NetworkError(f"the site is skipped because its robots.txt cannot be fetched ({rules})")
        if not rules.can_fetch(url, PRODUCT):
            raise NetworkError("the site's robots.txt forbids it")
        crawl_delay = rules.crawl_delay(PRODUCT) or 0.0
        if crawl_delay > _LONGEST_PAUSE:
            raise NetworkError(f"the site's robots.txt asks for over {_LONGEST_PAUSE:g} seconds between two requests")
        self._delays[host_of(url)] = max(self._delay, crawl_delay)

    def _read_robots(self, robots_url: str, home: str | None) -> Protego:
        """Fetch and parse a robots.txt; without one, everything is allowed (RFC 9309)."""
        response = self.fetch(robots_url, (), max_bytes=MAX_BYTES, home=home, obey_robots=False, cut=True)
        if response.status == HTTPStatus.OK:
            body = response.body
            return parse_robots(body if len(body) <= MAX_BYTES else body[:MAX_BYTES].rpartition(b"\n")[0])
        if HTTPStatus.BAD_REQUEST <= response.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            return Protego()
        raise NetworkError(describe_status(response.status))

    def _get(
        self, url: str, headers: Mapping[str, str], read: Callable[[str, requests.Response], Response]
    ) -> Response:
        """Request one address without redirects, and try again after a temporary failure.

        urllib3's own Retry would read a failed response to its end, whatever its length, and would not try again if a
        body is incomplete.
        """
        host = host_of(url)
        pause = self._delays.get(host, self._delay)
        attempt = 1
        while True:
            now = time.monotonic()
            closed = self._closed_until.get(host, now) - now
            if closed > _LONGEST_PAUSE:
                raise NetworkError(f"the server asked to be left alone for {math.ceil(closed / 60)} minutes")
            time.sleep(max(0.0, closed, self._finished.get(host, -math.inf) + pause - now))
            try:
                return self._request(url, headers, read)
            except _TemporaryError as error:
                # All addresses of a host wait as long as it asks for one of them.
                self._closed_until[host] = max(self._closed_until.get(host, 0.0), time.monotonic() + error.pause)
                if attempt == _ATTEMPTS or error.pause > _LONGEST_PAUSE:
                    raise
                attempt += 1
                pause *= 2
            finally:
                self._finished[host] = time.monotonic()

    def _request(
        self, url: str, headers: Mapping[str, str], read: Callable[[str, requests.Response], Response]
    ) -> Response:
        """Request one address once; turn every failure into a NetworkError."""
        try:
            with self._session.get(url, headers=dict(headers), stream=True, timeout=self._timeout) as response:
                return read(url, response)
        except requests.exceptions.SSLError as error:
            raise NetworkError("its certificate cannot be verified; set your own with REQUESTS_CA_BUNDLE") from error
        except (requests.Timeout, urllib3.exceptions.TimeoutError) as error:
            raise _TemporaryError(f"the server did not answer within {self._timeout:g} seconds") from error
        except (requests.ConnectionError, urllib3.exceptions.ProtocolError) as error:
            raise _TemporaryError("the connection failed or was interrupted") from error
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise NetworkError(f"the request failed ({error})") from error


def _read(
    url: str, response: requests.Response, content_types: Collection[str], max_bytes: int, *, cut: bool
) -> Response:
    """Read a response within the limits; read its body only if it has one of the `content_types` (any if empty)."""
    if response.status_code in _TEMPORARY:
        failure = _TemporaryError(describe_status(response.status_code))
        with contextlib.suppress(urllib3.exceptions.InvalidHeader):
            failure.pause = urllib3.Retry().get_retry_after(response.raw) or 0.0
        raise failure
    header = Message()
    header["Content-Type"] = response.headers.get("Content-Type", "")
    content_type = header.get_content_type() if header["Content-Type"] else "no content type"
    body = bytearray()
    if response.status_code == HTTPStatus.OK:
        if content_types and content_type not in content_types:
            raise NetworkError(f"it is not a page but {content_type}")
        length = 0 if cut else response.raw.length_remaining or 0
        while length <= max_bytes and (piece := response.raw.read1(65536, decode_content=True)):
            body += piece
            length = len(body)
        if length > max_bytes and not cut:
            raise NetworkError(f"it is larger than {max_bytes:,} bytes")
    # A Location is UTF-8 in practice, though http.client decodes it as Latin-1.
    location = response.headers["Location"].encode("latin-1").decode(errors="replace") if response.is_redirect else None
    return Response(
        url=url,
        status=response.status_code,
        content_type=content_type,
        charset=header.get_content_charset(),
        etag=response.headers.get("ETag"),
        last_modified=response.headers.get("Last-Modified"),
        location=location,
        robots=response.headers.get("X-Robots-Tag", ""),
        body=bytes(body),
    )


def parse_robots(body: bytes) -> Protego:
    """Parse the rules for this program and for all robots."""
    lines = body.decode("utf-8-sig", errors="replace").splitlines()
    return Protego.parse("\n".join(_AGENT.sub(_rename_others, line) for line in lines))


def _rename_others(line: re.Match[str]) -> str:
    """Give all other robots the same name.

    Protego stores a copy of the rules for each robot of a group, so a hostile file could fill the memory. It would also
    apply rules for "local" to this program, and ignore those for "local-rag/2.0".
    """
    name = line[1].lower()
    return f"User-agent: {name if name in ('*', PRODUCT) else 'other'}"
