"""Download files from a repository of the Hugging Face Hub, or of the mirror that HF_ENDPOINT names."""

import functools
import hashlib
import io
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_rag.errors import NetworkError
from local_rag.files import file_sha256
from local_rag.models.registry import HubSource, ModelFile

_CONNECT_SECONDS = 5.0
_TIMES_ESTIMATE, _SMALL = 2, 1_000_000  # how much larger than estimated a file may be whose size is not known


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

        def report_length(length: int, before: int = before) -> None:
            report(before + length)

        path = folder / (file.sha256 or f"{hashlib.sha256(file.name.encode()).hexdigest()}.unknown")
        if not file.sha256:
            path.unlink(missing_ok=True)  # nothing tells whether its beginning is right
        resumed = path.exists()
        found = _download(source, file, path, report_length, pace)
        if resumed and found != file.sha256:  # perhaps only what was there before is wrong
            path.unlink()
            found = _download(source, file, path, report_length, pace)
        yield file, path, found
        before += file.bytes


def _download(source: HubSource, file: ModelFile, path: Path, report: Callable[[int], None], pace: Pace | None) -> str:
    import httpx2
    from huggingface_hub import hf_hub_url

    # `hf_hub_download` deletes partial files when it is stopped. The function that it calls can resume.
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]
    from huggingface_hub.utils.tqdm import silent_tqdm

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    url = hf_hub_url(source.repository, source.file.format(file=file.name), revision=source.revision)
    most = file.bytes if file.sha256 else _TIMES_ESTIMATE * file.bytes + _SMALL
    with _BoundedFile(path, most, report, pace) as out:
        try:
            if out.tell() < most:
                if problem := hub_problem():
                    raise NetworkError(_failure(file, url, problem))
                http_get(url, out, resume_size=out.tell(), headers=build_hf_headers(), tqdm_class=silent_tqdm)
        except _TooLongError:
            pass  # its hash is wrong, too
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise NetworkError(_failure(file, url, _reason(error))) from error
    return file_sha256(path)


@functools.cache
def unreachable(endpoint: str) -> str:
    """Return why no server answers at a hub's address, or ""; ask once, so a profile does not wait for each file."""
    import httpx2
    from huggingface_hub.utils import get_session  # type: ignore[attr-defined]

    try:
        get_session().head(endpoint, timeout=_CONNECT_SECONDS, follow_redirects=False)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        return _reason(error)
    return ""


def hub_problem() -> str:
    """Return why the hub, or the mirror that HF_ENDPOINT names, does not answer, or ""."""
    from huggingface_hub import constants

    return unreachable(constants.ENDPOINT)


def _failure(file: ModelFile, url: str, reason: str) -> str:
    return (
        f"Cannot download {file.name} from {url} ({reason}); check the network or set a mirror with HF_ENDPOINT, then "
        "run the same command to resume."
    )


def _reason(error: Exception) -> str:
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code} {response.reason_phrase}".rstrip()
    return str(error).splitlines()[0] if str(error) else type(error).__name__


class _TooLongError(Exception):
    """Stop a download that is longer than the file should be."""


class _BoundedFile(io.FileIO):
    """An unbuffered file that reports its length after each write, so a kill loses nothing, and ends a bad download."""

    def __init__(self, path: Path, bytes_wanted: int, report: Callable[[int], None], pace: Pace | None) -> None:
        super().__init__(path, "ab")
        self._most, self._report, self._pace = bytes_wanted + 1, report, pace  # one more, so its hash differs
        self._since, self._length_then = pace.clock() if pace else 0.0, self.tell()

    def write(self, data: Any) -> int:
        written = super().write(data[: self._most - self.tell()])
        length = self.tell()
        self._report(length)
        if length >= self._most:
            raise _TooLongError
        if self._pace and (elapsed := self._pace.clock() - self._since) > self._pace.seconds:
            if length - self._length_then < self._pace.bytes:
                raise TimeoutError(f"only {length - self._length_then:,} bytes in {elapsed:.0f} seconds")
            self._since, self._length_then = self._pace.clock(), length
        return written
