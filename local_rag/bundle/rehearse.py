"""Rehearse: install a bundle from its parts into a new folder, without network, and ask it a question."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from local_rag.bundle.archive import BundleError
from local_rag.bundle.prefix import last_line, run

# Runs in another process, because a closed network cannot be opened again.
_SEALED = (
    "import os, sys; from local_rag.offline import close; close(); os.execvpe(sys.argv[1], sys.argv[1:], os.environ)"
)


def rehearse(
    bundle: Path, models: Mapping[str, Path], folder: Path, library: tuple[str, str] | None = None
) -> dict[str, Any]:
    """Install and test a bundle below a folder; return the result of the self-test, or raise BundleError.

    The environment has a minimal PATH, no pip configuration and an empty home. A bundle without models uses those that
    it was packed with, given by their SHA-256. A library, given by its name and words of it, is searched and asked.
    """
    with tempfile.TemporaryDirectory(prefix="rehearsal-", dir=folder) as temporary:
        prefix, home = Path(temporary) / "prefix", Path(temporary) / "home"
        home.mkdir()
        (prefix / "content").mkdir(parents=True)
        for sha, path in models.items():
            (prefix / "content" / sha).symlink_to(path.resolve())
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "TMPDIR": temporary}
        environment["LOCAL_RAG_PYTHON"] = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        command = ["sh", str(bundle / "install.sh"), "--prefix", str(prefix), "--json"]
        environment["PYTHONPATH"] = str(Path(__file__).parents[2])
        done = _run(command, environment)
        try:
            result = dict(json.loads(done.stdout.strip().splitlines()[-1]))
        except (ValueError, IndexError):
            reason = last_line(done, f"exit code {done.returncode}")
            raise BundleError("self-test", f"The rehearsal failed ({reason}); nothing was packed.") from None
        if not result["ok"]:
            raise BundleError(result["kind"], f"The rehearsal failed: {result['message']}")
        if library and library[1]:
            _ask(prefix, library, environment)
        return dict(result["self_test"])


def _ask(prefix: Path, library: tuple[str, str], environment: Mapping[str, str]) -> None:
    name, words = library
    for command in ("search", "ask"):
        program = [str(prefix / "bin" / "local-rag"), command, words, "--json"]
        done = _run([*program, "--library", str(prefix / "libraries" / name)], environment)
        try:
            found = json.loads(done.stdout)
        except ValueError:
            found = None
        passages = found.get("passages") if isinstance(found, dict) else found
        if done.returncode or not passages:
            reason = last_line(done, "nothing was found")
            text = f"The rehearsal failed: `local-rag {command}` cannot use the packed library ({reason})"
            raise BundleError("self-test", f"{text}; nothing was packed.")


def _run(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-P", "-c", _SEALED, *command], env=environment)
