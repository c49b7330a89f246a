"""The audit log: who asked what, and when."""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime

from local_rag.errors import LocalRagError
from local_rag.files import AUDIT_FILE
from local_rag.library import Library
from local_rag.serving.requests import Caller


def audit(library: Library, said: Mapping[str, object], caller: Caller) -> None:
    """Add a line with what was `said` to the audit log if the setting asks for one.

    Raise LocalRagError if the file cannot be written.
    """
    if not library.settings.retention.audit:
        return
    time, client = datetime.now(UTC).isoformat(timespec="seconds"), caller.address or "command line"
    line = {"time": time, "client": client, "route": caller.route, **said}
    if caller.person.name:
        line["person"] = caller.person.name
    path = library.folder / AUDIT_FILE
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, json.dumps(line).encode() + b"\n")  # at once, so that lines of two processes never mix
        finally:
            os.close(descriptor)
    except OSError as error:
        raise LocalRagError(
            f"The audit log {path} cannot be written ({error.strerror}), so nothing is done; make it writable "
            "or turn off the setting audit_log."
        ) from None
