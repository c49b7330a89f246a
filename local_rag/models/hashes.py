"""Hash the files of other programs once, and again whenever they change."""

import contextlib
import json
from pathlib import Path

from local_rag.files import file_sha256, write_whole

_FILE = ".hashes.json"
_MAX_ENTRIES = 500


def sha256_of(path: Path, models_directory: Path) -> str:
    """Return a file's SHA-256: the stored one if size and time of change are those of the file that was hashed."""
    path = path.resolve()
    status = path.stat()
    key = f"{path} {status.st_size} {status.st_mtime_ns} {status.st_ino}"
    stored = models_directory / _FILE
    known: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(stored.read_text(encoding="utf-8"))
        known = found if isinstance(found, dict) else {}
    if key not in known:
        known = {**dict(list(known.items())[-_MAX_ENTRIES:]), key: file_sha256(path)}
        with contextlib.suppress(OSError):  # with a read-only models folder it is hashed each time
            write_whole(stored, json.dumps(known, indent=1))
    return str(known[key])
