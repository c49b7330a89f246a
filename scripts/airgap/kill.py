"""Install a bundle and die at the n-th step; exit 0 if it has ended before: kill.py N BUNDLE PREFIX."""

import importlib.util
import os
import signal
import sys
from pathlib import Path

sys.dont_write_bytecode = True
number, bundle, prefix = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
found = importlib.util.spec_from_file_location("install", bundle / "install.py")
assert found is not None
assert found.loader is not None
install = importlib.util.module_from_spec(found)
found.loader.exec_module(install)
steps = 0


def step(text: str) -> None:
    """Count the steps; die at the n-th."""
    global steps  # noqa: PLW0603
    steps += 1
    if steps == number:
        os.kill(os.getpid(), signal.SIGKILL)


install.install(bundle, prefix, step=step, self_test=False)
