"""Install a bundle from its own parts into a fresh folder, with the network closed, and have it answer a question."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from local_rag.bundle.archive import BundleError

# Run in a process of its own, since nothing opens a network again that was closed.
_SEALED = (
    "import os, sys; from local_rag.offline import close; close(); os.execvpe(sys.argv[1], sys.argv[1:], os.environ)"
)


def rehearse(bundle: Path, manifest: dict[str, Any], models: Path) -> dict[str, Any]:
    """Install and test; return what the self-test found, or raise BundleError with its reason.

    The environment has no compiler in its PATH, no pip configuration and an empty home. A bundle without models is
    installed beside those that it was packed with.
    """
    with tempfile.TemporaryDirectory(prefix="local-rag-rehearsal-", dir=bundle.parent) as temporary:
        prefix, home = Path(temporary) / "prefix", Path(temporary) / "home"
        home.mkdir()
        if manifest["needs_models"]:
            prefix.mkdir()
            (prefix / "models").symlink_to(models)
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "TMPDIR": temporary}
        environment["LOCAL_RAG_PYTHON"] = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        command = ["sh", str(bundle / "install.sh"), "--prefix", str(prefix), "--json"]
        done = subprocess.run(
            [sys.executable, "-P", "-c", _SEALED, *command],
            env=environment | {"PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        try:
            told = dict(json.loads(done.stdout.strip().splitlines()[-1]))
        except (ValueError, IndexError):
            reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise BundleError("self-test", f"The rehearsal failed ({reason}); nothing was packed.") from None
        if not told["ok"]:
            raise BundleError(told["kind"], f"The rehearsal failed: {told['message']}")
        return dict(told["self_test"])
