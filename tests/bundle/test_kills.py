"""Killed at any write of an install, update, rollback or uninstall, a version with its models remains."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.bundles import make_bundle, started

pytestmark = pytest.mark.slow

# Runs an operation again and again on a copy of a prefix, each time in a child that is killed before its n-th write.
_SWEEP = """
import os, shutil, signal, sys
from pathlib import Path
from local_rag.bundle import installed, prefix as layout
from local_rag.bundle.install import install

operation, first, second, base, work = sys.argv[1], *map(Path, sys.argv[2:])
prefix = work / "prefix"
OLD, NEW = b"GGUF old", b"GGUF new"
WRITES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.link", "os.chmod"}
state = {"left": 0}

def writes(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        if not flags & (os.O_WRONLY | os.O_RDWR):
            return False
    elif event not in WRITES:
        return False
    return any(str(prefix) in os.fsdecode(one) for one in arguments if isinstance(one, (str, bytes, os.PathLike)))

def hook(event, arguments):
    if state["left"] and writes(event, arguments):
        state["left"] -= 1
        if not state["left"]:
            os.kill(os.getpid(), signal.SIGKILL)

def work_on():
    if operation in ("install", "update", "reinstall"):
        install(first if operation == "install" else second, prefix, self_test=False)
    elif operation == "rollback":
        installed.rollback(prefix)
    else:
        installed.uninstall(installed.require_prefix(prefix))

def model_of(link):
    # The launcher names its version, whose link leads to its own model.
    text = (prefix / link / "bin" / "local-rag").read_text()
    assert f"versions/{layout.current(prefix, link)}/bin/python" in text
    assert not list(layout.differences(prefix / link))
    return (prefix / link / layout.MODELS / "small" / "small.gguf").read_bytes()

def usable():
    # The version in use, started as a user does.
    return (prefix / "bin" / "local-rag").is_file() and bool(layout.current(prefix))

os.sync = os.fsync = lambda *_: None  # a killed process loses nothing that it has written
sys.addaudithook(hook)
kills = 0
while True:
    shutil.rmtree(prefix, ignore_errors=True)
    if base.exists():
        shutil.copytree(base, prefix, symlinks=True)
    child = os.fork()
    if not child:
        state["left"] = kills + 1
        work_on()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    finished = not os.WIFSIGNALED(status)
    assert finished or os.WTERMSIG(status) == signal.SIGKILL, status
    if operation in ("update", "reinstall", "rollback"):
        assert usable(), (operation, kills)
        found = model_of("current")
        allowed = {"update": (OLD, NEW), "reinstall": (NEW,), "rollback": (OLD, NEW)}[operation]
        assert found in allowed, (operation, kills, found)
        other = model_of("previous") if layout.current(prefix, "previous") else None
        assert other is None or other != found, (operation, kills)
        assert operation == "update" or other is not None, (operation, kills)
    if operation == "uninstall" and usable():
        assert model_of("current") == NEW
    if not finished:
        # Run again, it ends as if nothing had happened.
        if operation == "rollback":
            installed.rollback(prefix)
        elif operation != "uninstall" or prefix.exists() and (usable() or (prefix / ".removed.tmp").exists()):
            work_on()
    if operation == "uninstall":
        left = [str(path) for path in prefix.rglob("*")] if prefix.exists() else []
        assert left in ([], [str(prefix / ".lock")]), (kills, left)
    else:
        assert not list(prefix.rglob(".*.tmp")), (operation, kills)
        if operation != "rollback":
            assert model_of("current") == (OLD if operation == "install" else NEW), (operation, kills)
    if finished:
        break
    kills += 1
print(kills)
"""


def sweep(operation: str, old: Path, new: Path, base: Path, work: Path) -> int:
    """Return at how many writes an operation was killed."""
    work.mkdir()
    command = [sys.executable, "-P", "-c", _SWEEP, operation, str(old), str(new), str(base), str(work)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout)


@pytest.mark.parametrize("operation", ["install", "update", "reinstall", "rollback", "uninstall"])
def test_killed_at_every_write_a_version_with_its_models_remains(operation: str, tmp_path: Path) -> None:
    from local_rag.bundle.install import install

    old = make_bundle(tmp_path / "old" / "bundle", "1.0", model=b"GGUF old", library=b"SQLite")
    new = make_bundle(tmp_path / "new" / "bundle", "2.0", model=b"GGUF new", library=b"SQLite")
    base, work = tmp_path / "base", tmp_path / "work"
    prefix = work / "prefix"
    if operation != "install":
        # Installed where the sweep works, since launchers hold the path.
        install(old, prefix, self_test=False)
        if operation != "update":
            install(new, prefix, self_test=False)
        shutil.copytree(prefix, base, symlinks=True)
        shutil.rmtree(work)
    assert sweep(operation, old, new, base, work) >= {"install": 30, "rollback": 5}.get(operation, 8)
    if operation == "update":
        assert started(prefix) == "2.0"
