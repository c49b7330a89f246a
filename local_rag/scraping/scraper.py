"""Scrape web pages into a folder, the main content of each page as a Markdown file with front matter."""

import contextlib
import functools
import hashlib
import json
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from local_rag.errors import LocalRagError, NetworkError
from local_rag.files import SCRAPE_STATE, file_sha256, write_whole
from local_rag.scraping.checked_connection import is_private, resolve
from local_rag.scraping.convert import CONTENT_TYPES, check_selector, convert
from local_rag.scraping.fetch import Fetcher, Response, describe_status, host_of, normalize_url, server_of, site_of
from local_rag.serialization import from_plain

_LONGEST_NAME = 80  # characters of a file name, before a hash and the suffix
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # invalid as file names on Windows


@dataclass(frozen=True, slots=True)
class ScrapedPage:
    """The result of one address; if it was skipped, `path` is None and `reason` says why."""

    url: str
    path: Path | None
    status: Literal["written", "unchanged", "skipped"]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _PageState:
    """The state of a page between runs: its file, hash and selector, and the server's validators."""

    file: str
    sha256: str
    etag: str | None
    last_modified: str | None
    selector: str | None = None


@dataclass(frozen=True, slots=True)
class _Visit:
    """An address to fetch; follow links from it up to `depth` away, `home` and `site` as in fetch."""

    url: str
    depth: int
    home: str | None
    site: str | None


def scrape(
    urls: Iterable[str],
    *,
    output: Path,
    depth: int = 0,
    same_site: bool = True,
    max_pages: int = 100,
    selector: str | None = None,
    delay: float = 1.0,
    allow_private: bool = False,
    timeout: float = 30.0,
    max_bytes: int = 20_000_000,
    resolve: Callable[[str], Iterable[str]] = resolve,
) -> Iterator[ScrapedPage]:
    """Fetch pages into `output`, and pages up to `depth` links away; yield each result.

    From HTML pages, keep the elements that match the CSS `selector`, or the main content without one. `delay` and
    `timeout` are in seconds. Pages written so far remain if the iteration is stopped. Raise NetworkError for an invalid
    address and LocalRagError for an invalid selector before fetching anything; yield pages that cannot be fetched as
    skipped.
    """
    if selector is not None:
        check_selector(selector)
    queue: deque[_Visit] = deque()
    for url in dict.fromkeys(normalize_url(url) for url in urls):
        # A host with a public and a private address may be an attacker's, meant to reach a private service.
        kinds = set(map(is_private, resolve(host_of(url))))
        queue.append(_Visit(url, depth, server_of(url) if kinds == {True} else None, None))
    seen = {visit.url for visit in queue}
    done: set[str] = set()
    state = _load_state(output)
    stored = functools.partial(_conditions, output=output, state=state, selector=selector)
    fetcher = Fetcher(delay=delay, timeout=timeout, allow_private=allow_private, resolve=resolve)
    count = 0
    with contextlib.closing(fetcher):
        while queue and count < max_pages:
            visit = queue.popleft()
            if visit.url in done:  # a redirect already led there
                continue
            count += 1
            base = visit.url
            links: list[str] = []
            try:
                response = fetcher.fetch(
                    visit.url,
                    CONTENT_TYPES,
                    max_bytes=max_bytes,
                    home=visit.home,
                    site=visit.site,
                    conditions=None if visit.depth else stored,  # an unchanged page is sent without its links
                )
                if response.url in done:
                    raise NetworkError(f"it redirects to {response.url}, which was already fetched")
                base = response.url
                done |= {visit.url, base}
                page, links = _keep(response, visit.url, output, state, selector)
            except NetworkError as error:
                page = ScrapedPage(visit.url, None, "skipped", str(error))
            yield page
            for link in links if visit.depth else ():
                if count + len(queue) >= max_pages:
                    break
                if link not in seen and (not same_site or site_of(link) == site_of(base)):
                    seen.add(link)
                    home = visit.home if server_of(base) == visit.home else None
                    queue.append(_Visit(link, visit.depth - 1, home, site_of(base) if same_site else None))


def file_name(url: str, suffix: str) -> str:
    """Derive a relative file name from an address: stable, and unique among the addresses of a host.

    If the name loses information (a query, upper case, unusual characters, length), it ends in a hash of the address;
    so does the host's folder. http and https give the same name.
    """
    parts = urlsplit(url)
    host = parts.netloc.replace(":", "_")
    folder = _slug(host)
    if folder != host:
        folder += "-" + _hash(parts.netloc)
    stem = _slug(parts.path.strip("/").replace("/", "_")).removesuffix(suffix)
    lossless = "/" if stem == "index" else "/" + stem.replace("_", "/") + (suffix if suffix == ".pdf" else "")
    if parts.query or parts.path != lossless:
        stem += "-" + _hash(url.partition("://")[2])
    return f"{folder}/{stem}{suffix}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _slug(text: str) -> str:
    """Reduce a text to lower-case letters, digits, dots, hyphens and underscores: a valid name on every system."""
    slug = re.sub(r"[^a-z0-9._-]+", "-", unquote(text).lower())[:_LONGEST_NAME].strip("._-") or "index"
    return f"page-{slug}" if _RESERVED.fullmatch(slug) else slug


def _conditions(url: str, output: Path, state: Mapping[str, _PageState], selector: str | None) -> dict[str, str]:
    """Return headers that request a page only if it changed; none if its file is gone or the selector changed."""
    known = state.get(url)
    if known is None or known.selector != selector or not (output / known.file).is_file():
        return {}
    headers = {"If-None-Match": known.etag, "If-Modified-Since": known.last_modified}
    return {name: value for name, value in headers.items() if value}


def _keep(
    response: Response, url: str, output: Path, state: dict[str, _PageState], selector: str | None
) -> tuple[ScrapedPage, list[str]]:
    """Write a page and the state, unless nothing changed or the user edited the file; return result and links."""
    known = state.get(response.url)
    if response.status == HTTPStatus.NOT_MODIFIED and known is not None:
        return ScrapedPage(url, output / known.file, "unchanged"), []
    if response.status != HTTPStatus.OK:
        raise NetworkError(describe_status(response.status))
    content, suffix, links = convert(response, selector)
    if not content:
        reason = "it contains no text" if selector is None else f"no text in it matches the selector {selector}"
        return ScrapedPage(url, None, "skipped", reason), links
    file = file_name(response.url, suffix)
    sha256 = hashlib.sha256(content).hexdigest()
    unchanged = known is not None and (known.file, known.sha256) == (file, sha256) and (output / file).is_file()
    if not unchanged:
        ours = {sha256, *(entry.sha256 for entry in state.values() if entry.file == file)}  # http and https
        if _is_edited(output / file, ours):
            reason = f"{output / file} was edited; move or delete it to fetch the page again"
            return ScrapedPage(url, None, "skipped", reason), links
        _write(output / file, content)
    state.update(_load_state(output))  # another run may have written it
    state[response.url] = _PageState(file, sha256, response.etag, response.last_modified, selector)
    _write(output / SCRAPE_STATE, json.dumps({key: asdict(value) for key, value in state.items()}, indent=1).encode())
    return ScrapedPage(url, output / file, "unchanged" if unchanged else "written"), links


def _is_edited(path: Path, ours: Collection[str]) -> bool:
    try:
        return file_sha256(path) not in ours
    except OSError:
        return path.is_file()


def _load_state(output: Path) -> dict[str, _PageState]:
    """Load the state of earlier runs; pages whose state is damaged are fetched again."""
    state: dict[str, _PageState] = {}
    with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):
        for url, entry in json.loads((output / SCRAPE_STATE).read_bytes()).items():
            with contextlib.suppress(ValueError):
                state[url] = from_plain(_PageState, entry)
    return state


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise LocalRagError(f"Cannot write {path} ({error.strerror}); choose another folder with --output") from error
