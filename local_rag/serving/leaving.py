"""Leave a process behind that keeps a library and its models for the next commands. Nothing heavy is imported for it.

The command makes the socket and hands it over, so it can ask at once, while the process is still being started. The
process has a session of its own and nothing of the terminal; what seals the command seals it too.
"""

import fcntl
import os
import socket
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

from local_rag.files import SETTINGS_FILE
from local_rag.serving.socket_client import SECRETS, environment, is_private, is_served, socket_path

# Settings that decide whether there is such a process: how long it stays, and whether it would reach other machines.
_DECIDING = ("KEEP_WARM", "ANSWER_MODEL", "CLUSTER_ADDRESS", "SEARCH_ENGINE_ADDRESS")


def may_leave(library: Path) -> bool:
    """Return whether a process may stay behind for a library: it is indexed here, and the settings want it.

    Where other processes or machines do the work, each command reaches them itself, so none stays.
    """
    if not (library / "CURRENT").exists():
        return False
    if not any(os.environ.get(f"LOCAL_RAG_{name}") for name in _DECIDING) and not (library / SETTINGS_FILE).exists():
        return True
    # Imported here because most commands do not need to read settings at this point.
    from local_rag.errors import LocalRagError
    from local_rag.models.engine_address import is_engine
    from local_rag.settings import resolve_settings

    with suppress(LocalRagError):  # of which the command tells
        settings = resolve_settings(library)
        elsewhere = settings.cluster.address or settings.search_engine.address or is_engine(settings.answer_model)
        return settings.keep_warm > 0 and not elsewhere
    return False


def leave(library: Path) -> bool:
    """Start a process for a library; return whether it may be asked. It is not started where a server is running."""
    with suppress(OSError):
        listener = listen(library)
        if listener is None:
            return False
        with closing(listener):
            descriptor = listener.fileno()
            command = [sys.executable, "-P", "-m", "local_rag.serving.left", str(library), str(descriptor)]
            subprocess.Popen(
                command,
                pass_fds=[descriptor],
                env=_environment(),
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            return True
    return False


def listen(library: Path) -> socket.socket | None:
    """Return a socket that listens for this user alone, in the place of one that a killed server left.

    Return None where a server of the library is running; raise OSError where there can be no such socket.
    """
    path = socket_path(library)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_private(path.parent):
        raise OSError(f"other users may enter {path.parent}")
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # else two commands could each take the socket of the other for a leftover
        if is_served(library):
            return None
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        path.chmod(0o600)  # before anybody can connect; the folder lets only this user in
        listener.listen()
        return listener
    finally:
        os.close(folder)


def _environment() -> dict[str, str]:
    """Return the environment of the process, in which no path depends on the folder that one works in."""
    kept = {name: value for name, value in os.environ.items() if name not in SECRETS}
    kept |= {name: value for name, value in environment().items() if name in kept}
    if searched := kept.get("PYTHONPATH"):
        kept["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, searched.split(os.pathsep)))
    return kept
