"""Know the layout of an installation and switch between its versions. Uses only the standard library.

An installation is one folder, the prefix:

    bin/local-rag       starts the current version
    selected            link to a folder that holds the two links `current` and `previous`, so both change in one step
    current, previous   links to the version in use and the previous one, through `selected`
    versions/ID/        program and packages, links to its models, manifest, receipt; never changed
    content/SHA256      the models of all versions, by their content
    models/             the user's own models, and copies that the program makes
    libraries/NAME/     a library from a bundle; an existing one is never changed
    ledger.json         every library from a bundle, recorded before it is written

What is being written or removed has a name that begins with a dot and ends with `.tmp`; `clean` removes it.
"""

import base64
import csv
import errno
import fcntl
import hashlib
import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

if __package__:
    from local_rag.bundle import archive
else:  # in the bundle's folder, without the package; install.py has loaded archive.py before
    import sys

    archive = sys.modules["archive"]

LEDGER, RECEIPT, MANIFEST = "ledger.json", "receipt.json", "manifest.json"
MODELS = "packed-models"  # in a version's folder; local_rag/models/registry.py looks there first
_LINKS = ("current", "previous")
START = "from local_rag.cli.main import main; main()"
LAUNCHER = """#!/bin/sh
# Starts local-rag as it was installed from a bundle.
prefix={prefix}
unset PYTHONPATH PYTHONHOME
PYTHONNOUSERSITE=1
LOCAL_RAG_MODELS=${{LOCAL_RAG_MODELS:-$prefix/models}}
LOCAL_RAG_DEFAULT_PROFILE={profile}
export PYTHONNOUSERSITE LOCAL_RAG_MODELS LOCAL_RAG_DEFAULT_PROFILE
exec "$prefix/versions/{folder}/bin/python" -P -c '{start}' "$@"
"""
ENTRY = """#!/bin/sh
exec {prefix}/current/bin/local-rag "$@"
"""


@contextmanager
def lock(prefix: Path) -> Iterator[None]:
    """Hold the lock of an installation, so only one process changes it."""
    with (prefix / ".lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            text = f"Another installation is running in {prefix}; wait until it has finished."
            raise archive.BundleError("disk", text) from None
        yield


def current(prefix: Path, link: str = "current") -> str:
    """Return the folder's name of the version that a link points to, or an empty string."""
    path = prefix / "selected" / link
    return path.readlink().name if path.is_symlink() and path.is_dir() else ""


def switch(prefix: Path, version: str) -> None:
    """Make a version current and the version in use the previous one, both by renaming one link."""
    before = current(prefix)
    if before.partition("~")[0] == version.partition("~")[0]:  # installed again, perhaps beside a changed one
        before = current(prefix, "previous")
    write_program(prefix / "bin" / "local-rag", ENTRY.format(prefix=shlex.quote(str(prefix))))
    for link in _LINKS:
        if not (prefix / link).is_symlink():
            (prefix / link).symlink_to(Path("selected") / link)
    number = 1 + max((int(path.name[1:]) for path in prefix.glob("@*") if path.name[1:].isdecimal()), default=0)
    links = prefix / f"@{number}"
    links.mkdir()
    for link, name in zip(_LINKS, (version, before), strict=True):
        if name:
            (links / link).symlink_to(Path("..") / "versions" / name)
    temporary = prefix / ".selected.tmp"
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(links.name)
    temporary.replace(prefix / "selected")


def clean(prefix: Path, *, models: bool = True) -> None:
    """Remove what killed runs left, versions before the previous one and, with `models`, those that no version has."""
    kept = {current(prefix, link) for link in _LINKS} - {""}
    selected = prefix / "selected"
    for path in prefix.glob("@*"):
        if not selected.is_symlink() or path.name != selected.readlink().name:
            remove(path)
    for folder in (prefix, *(prefix / name for name in ("bin", "content", "versions"))):
        for path in folder.glob(".*.tmp"):
            remove(path)
    wanted = set[str]()
    for name in kept:
        try:
            wanted |= _models(prefix / "versions" / name)
        except (OSError, ValueError, KeyError, TypeError):  # a changed manifest: keep all models
            wanted |= {path.name for path in (prefix / "content").glob("*")}
    for path in (prefix / "versions").glob("*"):
        if path.name not in kept:
            hidden = path.with_name(f".{path.name}.tmp")
            path.rename(hidden)
            remove(hidden)
    for path in (prefix / "content").glob("*") if models else ():
        if path.name not in wanted:
            path.unlink()


def _models(version: Path) -> set[str]:
    manifest = json.loads((version / MANIFEST).read_text())
    return {one["sha256"] for one in (*manifest["members"], *manifest["needs_models"]) if one["kind"] == "model"}


def differences(environment: Path, *, models: bool = True) -> Iterator[str]:
    """Compare a version's files with the manifest and the receipt; yield each difference as half a sentence."""
    try:
        installed = json.loads((environment / RECEIPT).read_text())
        manifest = json.loads((environment / MANIFEST).read_text())
        python, packed = manifest["platform"]["python"], installed["packages"]
    except (OSError, ValueError, KeyError, TypeError):
        yield f"{environment / RECEIPT} or {MANIFEST} is missing or changed"
        return
    for name in ("bin/python", "bin/local-rag"):
        if not (environment / name).exists():
            yield f"{environment / name} is missing"
    packages = environment / "lib" / f"python{python}" / "site-packages"
    known = set[Path]()
    for name, sha in packed.items():
        record = packages / name / "RECORD"
        if not record.is_file() or sha256(record) != sha:
            yield f"{record} is missing or changed"
            continue
        for file, wanted, _ in csv.reader(record.read_text().splitlines()):
            path = packages / file
            known.add(path)
            if wanted and not file.startswith("../") and ".data/" not in file and _digest(path) != wanted:
                yield f"{path} is missing or changed"
    for path in packages.rglob("*"):
        is_record = path.name == "RECORD" and path.parent.parent == packages
        if path.is_file() and path not in known and path.suffix != ".pyc" and not is_record:
            yield f"{path} does not belong to any package"
    for member in [*manifest["members"], *manifest["needs_models"]]:
        if member["kind"] == "model" and models:
            path = environment / MODELS / str(member["path"]).partition("/")[2]
            if not path.is_file() or sha256(path) != member["sha256"]:
                yield f"{path} is missing or changed"


def _digest(path: Path) -> str:
    with suppress(OSError), path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
        return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return ""


def record(prefix: Path, library: str, files: dict[str, str]) -> None:
    """Record the files of a library in the ledger before they are written, so uninstall always knows them."""
    ledger = read_ledger(prefix) | {library: files}
    temporary = prefix / f".{LEDGER}.tmp"
    temporary.write_text(json.dumps(ledger, indent=1, sort_keys=True))
    temporary.replace(prefix / LEDGER)


def read_ledger(prefix: Path) -> dict[str, dict[str, str]]:
    """Return the libraries from bundles: name -> path in the library -> SHA-256."""
    path = prefix / LEDGER
    return dict(json.loads(path.read_text())) if path.exists() else {}


def remove(path: Path) -> None:
    """Remove a file, a link or a folder; a missing one is no error."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """Hash a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_program(path: Path, text: str) -> None:
    """Write an executable file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text)
    temporary.chmod(0o755)
    temporary.replace(path)


def run(command: Sequence[object], **how: Any) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end, and take what it prints."""
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace", check=False, **how)


def last_line(done: "subprocess.CompletedProcess[str]", otherwise: str = "no reason given") -> str:
    """Return the last line of what a program has printed to standard error."""
    return (done.stderr.strip().splitlines() or [otherwise])[-1]
