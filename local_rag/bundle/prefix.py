"""Know the layout of an installation and switch between its versions. Uses only the standard library.

An installation is one folder, the prefix:

    bin/local-rag       starts the current version
    current, previous   links to the version in use and the previous one
    versions/ID/        program and packages, manifest, receipt; never changed
    models/             shared by the versions; an existing file with the same hash is kept
    libraries/NAME/     a library from a bundle; an existing one is never changed
    ledger.json         every model and library from a bundle, recorded before it is written
"""

import errno
import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if __package__:
    from local_rag.bundle import archive
else:  # in the bundle's folder, without the package; install.py has loaded archive.py before
    import sys

    archive = sys.modules["archive"]

LEDGER, RECEIPT, MANIFEST = "ledger.json", "receipt.json", "manifest.json"
START = "from local_rag.cli.main import main; main()"
LAUNCHER = """#!/bin/sh
# Starts local-rag as it was installed from a bundle.
prefix={prefix}
unset PYTHONPATH PYTHONHOME
PYTHONNOUSERSITE=1
LOCAL_RAG_MODELS=${{LOCAL_RAG_MODELS:-$prefix/models}}
LOCAL_RAG_DEFAULT_PROFILE={profile}
export PYTHONNOUSERSITE LOCAL_RAG_MODELS LOCAL_RAG_DEFAULT_PROFILE
exec "$prefix/versions/{id}/bin/python" -P -c '{start}' "$@"
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
    """Return the version that a link points to, or an empty string."""
    path = prefix / link
    return path.readlink().name if path.is_symlink() else ""


def switch(prefix: Path, version: str) -> None:
    """Make a version current and the version in use the previous one, each by renaming a link."""
    before = current(prefix)
    if before and before != version:
        _point(prefix / "previous", before)
    _point(prefix / "current", version)
    (prefix / "bin").mkdir(exist_ok=True)
    temporary = prefix / "bin" / ".local-rag.tmp"
    write_program(temporary, ENTRY.format(prefix=quoted(prefix)))
    temporary.replace(prefix / "bin" / "local-rag")


def _point(link: Path, version: str) -> None:
    temporary = link.with_name(f".{link.name}.tmp")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(Path("versions") / version)
    temporary.replace(link)


def record(prefix: Path, kind: str, path: str, sha: str) -> None:
    """Record a file in the ledger before it is written, so uninstall always knows it."""
    ledger = read_ledger(prefix)
    ledger.setdefault(kind, {})[path] = sha
    temporary = prefix / f".{LEDGER}.tmp"
    temporary.write_text(json.dumps(ledger, indent=1, sort_keys=True))
    temporary.replace(prefix / LEDGER)


def read_ledger(prefix: Path) -> dict[str, dict[str, str]]:
    """Return the models and libraries from bundles: kind -> path in the prefix -> SHA-256."""
    path = prefix / LEDGER
    return dict(json.loads(path.read_text())) if path.exists() else {}


def remove(folder: Path) -> None:
    """Remove a folder if it exists; ignore links."""
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)


def sha256(path: Path) -> str:
    """Hash a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_program(path: Path, text: str) -> None:
    """Write an executable file."""
    path.write_text(text)
    path.chmod(0o755)


def quoted(value: object) -> str:
    """Quote a value for a shell."""
    return "'" + str(value).replace("'", "'\\''") + "'"
