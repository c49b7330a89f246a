"""Tell where everything of an installation stands, and switch between its versions. Standard library only.

What is installed stands below one folder, the prefix:

    bin/local-rag       starts what `current` leads to
    current, previous   links to the version in use and the one before
    versions/ID/        program and packages, manifest, receipt; never changed once it is there
    models/             shared by the versions; what is there already with the same hash is left alone
    libraries/NAME/     a library that came along; one that is there is never touched
    ledger.json         every model and library that a bundle put there, written before it is put
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
else:  # beside the parts, where no package is: whoever loads this file has loaded that one
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
    """Let one process at a time change an installation."""
    with (prefix / ".lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            raise archive.BundleError("disk", f"Another install works in {prefix}; wait until it has ended.") from None
        yield


def current(prefix: Path, link: str = "current") -> str:
    """Name the version that a link leads to; empty where there is none."""
    path = prefix / link
    return path.readlink().name if path.is_symlink() else ""


def switch(prefix: Path, version: str) -> None:
    """Make a version current and the one in use the previous one, each by renaming a link."""
    before = current(prefix)
    if before and before != version:
        _lead(prefix / "previous", before)
    _lead(prefix / "current", version)
    (prefix / "bin").mkdir(exist_ok=True)
    temporary = prefix / "bin" / ".local-rag.tmp"
    write_program(temporary, ENTRY.format(prefix=quoted(prefix)))
    temporary.replace(prefix / "bin" / "local-rag")


def _lead(link: Path, version: str) -> None:
    temporary = link.with_name(f".{link.name}.tmp")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(Path("versions") / version)
    temporary.replace(link)


def record(prefix: Path, kind: str, path: str, sha: str) -> None:
    """Remember a file before it is put, so that uninstall knows it whatever happens."""
    ledger = read_ledger(prefix)
    ledger.setdefault(kind, {})[path] = sha
    temporary = prefix / f".{LEDGER}.tmp"
    temporary.write_text(json.dumps(ledger, indent=1, sort_keys=True))
    temporary.replace(prefix / LEDGER)


def read_ledger(prefix: Path) -> dict[str, dict[str, str]]:
    """Return what bundles put beside the versions: kind -> path below the prefix -> SHA-256."""
    path = prefix / LEDGER
    return dict(json.loads(path.read_text())) if path.exists() else {}


def remove(folder: Path) -> None:
    """Remove a folder of ours, if it is there."""
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)


def sha256(path: Path) -> str:
    """Hash a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_program(path: Path, text: str) -> None:
    """Write a file that can be started."""
    path.write_text(text)
    path.chmod(0o755)


def quoted(value: object) -> str:
    """Write a value for a shell."""
    return "'" + str(value).replace("'", "'\\''") + "'"
