"""Download files from a repository of the Hugging Face Hub, or of the mirror that HF_ENDPOINT names."""

import functools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO

from local_rag.errors import NetworkError
from local_rag.files import file_sha256
from local_rag.models.registry import HubSource, ModelFile

_SECONDS = (5.0, 10.0)  # to connect, and between two pieces
_BLOCK = 65536


@dataclass(frozen=True, slots=True)
class Pace:
    """How slow a source may be while another one is left: fewer bytes in a period are too few."""

    bytes: int = 2_000_000
    seconds: float = 60.0
    clock: Callable[[], float] = time.monotonic


def download_from_hub(
    source: HubSource, files: Sequence[ModelFile], folder: Path, report: Callable[[int], None], pace: Pace | None
) -> Iterator[tuple[ModelFile, Path, str]]:
    """Yield each file with its temporary path in `folder` and its actual SHA-256; raise NetworkError.

    A file is named by the hash it should have, so the download of another version is never continued, but that of
    another source is. Without a `pace`, any speed will do.
    """
    before = 0
    for file in files:
        path = folder / file.sha256
        arguments = source, file, path, lambda length, before=before: report(before + length), pace
        resumed, found = path.exists(), _download(*arguments)
        if resumed and found != file.sha256:  # perhaps only what was there before is wrong
            path.unlink()
            found = _download(*arguments)
        yield file, path, found
        before += file.bytes


def _download(source: HubSource, file: ModelFile, path: Path, report: Callable[[int], None], pace: Pace | None) -> str:
    """Append what a file lacks, as long as each request brings some of it; return its SHA-256."""
    url = f"{_endpoint()}/{source.repository}/resolve/{source.revision}/{file.name}"
    with path.open("ab", buffering=0) as out:  # unbuffered, so a kill loses nothing
        reason, session = "" if out.tell() >= file.bytes else hub_problem(), _session()
        while not reason and (length := out.tell()) < file.bytes:
            try:
                reason = _append(session, url, file.bytes, out, report, pace)
            except (OSError, ValueError) as error:
                reason = "" if out.tell() > length else _reason(error)
            if out.tell() <= length:  # the server has no more of it
                break
    if reason:
        raise NetworkError(
            f"Cannot download {file.name} from {url} ({reason}); check the network or set a mirror with HF_ENDPOINT, "
            "then run the same command to resume."
        )
    return file_sha256(path)


def _append(session: Any, url: str, most: int, out: BinaryIO, report: Callable[[int], None], pace: Pace | None) -> str:
    """Write what a server sends after the end of `out`, at most one byte too many; return why not all, or ""."""
    began = pace.clock() if pace else 0.0
    with session.get(url, headers={"Range": f"bytes={out.tell()}-"}, stream=True, timeout=_SECONDS) as response:
        if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and out.tell():
            return ""
        if not response.ok:
            return f"the server answered {response.status_code} {response.reason}".rstrip()
        if response.status_code != HTTPStatus.PARTIAL_CONTENT:  # it sends the whole file
            out.seek(out.truncate(0))
        length_then = out.tell()
        for block in response.iter_content(_BLOCK):
            out.write(block[: most + 1 - out.tell()])
            report(length := out.tell())
            if length > most:
                break
            if pace and (elapsed := pace.clock() - began) > pace.seconds:
                if length - length_then < pace.bytes:
                    return f"only {length - length_then:,} bytes in {elapsed:.0f} seconds"
                began, length_then = pace.clock(), length
    return ""


def _session() -> Any:
    """Return a session that waits for a network that is away for some seconds, and has the user's token."""
    import requests
    from urllib3 import Retry

    session = requests.Session()
    session.headers.update({"Accept-Encoding": "identity", "User-Agent": "local-rag"})
    if token := os.environ.get("HF_TOKEN"):
        session.headers["Authorization"] = f"Bearer {token}"
    for scheme in ("http://", "https://"):
        session.mount(scheme, requests.adapters.HTTPAdapter(max_retries=Retry(connect=4, read=False, backoff_factor=1)))
    return session


def _endpoint() -> str:
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def hub_problem() -> str:
    """Return why the hub, or the mirror that HF_ENDPOINT names, does not answer, or ""."""
    return _unreachable(_endpoint())


@functools.cache
def _unreachable(endpoint: str) -> str:
    """Return why no server answers at a hub's address; ask once, so a profile does not wait for each file."""
    import requests

    try:
        requests.head(endpoint, timeout=_SECONDS, allow_redirects=False)
    except (OSError, ValueError) as error:
        return _reason(error)
    return ""


def _reason(error: BaseException) -> str:
    """Return what an error began with: requests and urllib3 wrap it in sentences of their own."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    text = getattr(error, "strerror", None) or str(error)
    return str(text).splitlines()[0] if text else type(error).__name__
