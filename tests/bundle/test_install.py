"""Installing: what is there stays, a kill at any moment leaves the old version running, nothing is left behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from local_rag.bundle import installed
from local_rag.bundle.archive import BundleError
from local_rag.bundle.create import PYTHON, require_interpreter
from local_rag.bundle.install import install
from local_rag.bundle.prefix import MODELS, differences
from tests.conftest import Run
from tests.support.bundles import make_bundle, make_wheel, run_installer, started

_KILLED = """
import os, signal, sys
from pathlib import Path
from local_rag.bundle.install import install

steps = 0
def step(text):
    global steps
    if steps == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    steps += 1

install(Path(sys.argv[1]), Path(sys.argv[2]), step=step)
print("steps", steps)
"""


def contents(folder: Path) -> set[str]:
    """Name all that is in a folder."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return make_bundle(tmp_path / "old" / "bundle", "1.0", library=b"SQLite")


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return make_bundle(tmp_path / "new" / "bundle", "2.0", model=b"GGUF another")


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    return tmp_path / "it's here" / "local rag"


def test_install_update_roll_back_uninstall(old: Path, tmp_path: Path, prefix: Path, run: Run) -> None:
    done = run_installer(old, prefix, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["ok"], told["version"], told["command"]) == (True, "1.0", str(prefix / "bin" / "local-rag"))
    assert started(prefix) == "1.0"
    version = prefix / "current"
    assert (prefix / "libraries" / "papers" / "library.sqlite3").read_bytes() == b"SQLite"
    assert (version / "share" / "note.txt").exists()
    assert not list(prefix.rglob("*.tmp"))

    update = make_bundle(tmp_path / "update" / "bundle", "2.0", without_models=True)
    assert run_installer(update, prefix).returncode == 0
    assert started(prefix) == "2.0"
    assert run("bundle", "rollback", "--prefix", prefix).exit_code == 0
    assert started(prefix) == "1.0"
    assert json.loads(run("bundle", "rollback", "--prefix", prefix, "--json").output)["ok"]
    assert started(prefix) == "2.0"
    assert run("bundle", "uninstall", "--prefix", prefix).exit_code == 0
    assert not prefix.exists()
    assert run("bundle", "rollback", "--prefix", tmp_path).exit_code == 1


def test_uninstall_keeps_changed_files_and_files_of_others(old: Path, prefix: Path, run: Run) -> None:
    assert run_installer(old, prefix).returncode == 0
    (prefix / "models" / "own").mkdir(parents=True)
    (prefix / "models" / "own" / "own.gguf").write_bytes(b"GGUF")
    (prefix / "libraries" / "papers" / "library.sqlite3").write_bytes(b"SQLite, more")
    told = json.loads(run("bundle", "uninstall", "--prefix", prefix, "--json").output)
    assert told["kept"] == [str(prefix / "libraries" / "papers")]
    files = {path for path in contents(prefix) if (prefix / path).is_file()}
    assert files == {"models/own/own.gguf", "libraries/papers/library.sqlite3"}


def test_a_model_that_is_there_and_a_library_are_not_touched(old: Path, prefix: Path) -> None:
    model, library = prefix / "models" / "small" / "small.gguf", prefix / "libraries" / "papers" / "library.sqlite3"
    for path in (model, library):
        path.parent.mkdir(parents=True)
    model.write_bytes(b"GGUF" + bytes(range(256)) * 400)
    library.write_bytes(b"another one")
    before = [(path.stat().st_mtime_ns, path.stat().st_ino) for path in (model, library)]
    install(old, prefix)
    assert [(path.stat().st_mtime_ns, path.stat().st_ino) for path in (model, library)] == before
    installed.uninstall(prefix)
    assert library.read_bytes() == b"another one"
    assert model.exists()


def test_only_two_versions_are_kept_and_installing_again_restores_a_model(tmp_path: Path, prefix: Path) -> None:
    for number in range(3):
        bundle = make_bundle(tmp_path / str(number) / "bundle", f"{number}.0")
        install(bundle, prefix)
    assert len(list((prefix / "versions").iterdir())) == 2
    (prefix / "current" / MODELS / "small" / "small.gguf").resolve().unlink()
    install(bundle, prefix)
    assert (prefix / "current" / MODELS / "small" / "small.gguf").exists()
    assert installed.rollback(prefix)["current"].startswith("1.0")


def test_killed_at_any_step_the_old_version_runs_and_the_next_install_cleans_up(
    old: Path, new: Path, tmp_path: Path, prefix: Path
) -> None:
    def attempt(kill_at: int, target: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-c", _KILLED, str(new), str(target), str(kill_at)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    steps = int(attempt(-1, tmp_path / "counted").stdout.split()[1])
    assert steps >= 8
    for kill_at in range(steps):
        shutil.rmtree(prefix, ignore_errors=True)
        install(old, prefix)
        assert attempt(kill_at, prefix).returncode == -signal.SIGKILL
        assert started(prefix) == ("1.0" if kill_at < steps - 1 else "2.0")  # the last step comes after the switch
        install(new, prefix)
        assert started(prefix) == "2.0"
        assert not list(prefix.rglob(".*.tmp"))
        assert installed.rollback(prefix)["current"].startswith("1.0")
        assert not installed.uninstall(prefix)["kept"]
        assert not prefix.exists()


def test_an_older_bundle_is_installed_only_if_that_is_wanted(new: Path, tmp_path: Path, prefix: Path) -> None:
    old = make_bundle(tmp_path / "older" / "bundle", "1.0", committed=1_700_000_000)
    assert run_installer(new, prefix).returncode == 0
    done = run_installer(old, prefix, "--json")
    assert (done.returncode, json.loads(done.stdout)["kind"]) == (1, "older")
    assert "holds 1.0 of 2023-11-14, which is older than the installed 2.0 of an unknown day; give --yes" in done.stderr
    assert started(prefix) == "2.0"
    assert [path.name for path in (prefix / "versions").iterdir()] == [(prefix / "current").resolve().name]

    for typed, version in ((b"\n", "2.0"), (b"y\n", "1.0")):
        terminal, stdin = os.openpty()
        os.write(terminal, typed)
        done = run_installer(old, prefix, stdin=stdin)
        assert "Install it all the same? [y/N]" in done.stderr
        assert (done.returncode, started(prefix)) == (int(version == "2.0"), version)
    assert run_installer(new, prefix).returncode == 0
    assert run_installer(old, prefix, "--yes").returncode == 0
    assert started(prefix) == "1.0"


def test_of_one_version_the_bundle_of_an_older_commit_is_older(tmp_path: Path, prefix: Path) -> None:
    first = make_bundle(tmp_path / "1" / "bundle", model=b"GGUF 1", committed=1_000_000_000)
    second = make_bundle(tmp_path / "2" / "bundle", model=b"GGUF 2", committed=1_100_000_000)
    undated = make_bundle(tmp_path / "3" / "bundle", model=b"GGUF 3")
    install(first, prefix)
    install(second, prefix)
    install(second, prefix)
    for older in (first, undated):
        with pytest.raises(BundleError, match=r"older than the installed 1\.0 of 2004-11-09"):
            install(older, prefix)


def test_a_version_that_fails_its_test_is_not_used(old: Path, tmp_path: Path, prefix: Path) -> None:
    install(old, prefix)
    told = '{"ok": false, "problem": "faiss uses instructions that this processor does not have"}'
    broken = make_bundle(tmp_path / "broken" / "bundle", "2.0", tested=told)
    done = run_installer(broken, prefix, "--json")
    assert (done.returncode, json.loads(done.stdout)["kind"]) == (1, "self-test")
    assert "does not have" in done.stderr
    assert started(prefix) == "1.0"
    assert len(list((prefix / "versions").iterdir())) == 1


def test_a_full_disk_is_reported_before_anything_is_written(old: Path, prefix: Path) -> None:
    with pytest.raises(BundleError, match="MB are free") as told:
        install(old, prefix, free=lambda _: 1000)
    assert told.value.kind == "disk"
    assert not prefix.exists()


def mounted(options: str, command: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run a command with a file system of its own at `disk`; skip where none can be mounted."""
    (tmp_path / "disk").mkdir()
    mount = f"mount -t tmpfs -o {options} none '{tmp_path}/disk'"
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    environment = {**os.environ, "LOCAL_RAG_PYTHON": sys.executable}
    command = ["unshare", "-rm", "sh", "-c", f"{mount} && {command}"]  # type: ignore[assignment]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.skipif(not shutil.which("unshare"), reason="file systems are mounted with unshare")
@pytest.mark.parametrize("options", ["size=2m", "ro"])
def test_a_small_disk_and_a_read_only_one(old: Path, tmp_path: Path, options: str) -> None:
    done = mounted(options, f"sh '{old}/install.sh' --prefix '{tmp_path}/disk/prefix' --json", tmp_path)
    assert (done.returncode, json.loads(done.stdout)["kind"]) == (1, "disk")
    assert "Traceback" not in done.stderr


def test_a_disk_that_fills_while_unpacking_leaves_the_old_version(old: Path, tmp_path: Path, prefix: Path) -> None:
    install(old, prefix)
    new = make_bundle(tmp_path / "large" / "bundle", "2.0", model=b"GGUF" + bytes(20_000_000))
    script = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000_000, 10_000_000));"
        "import sys; from pathlib import Path; from local_rag.bundle.install import install;"
        "install(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, new, prefix], capture_output=True, text=True, check=False
    )
    assert "File too large" in done.stderr
    assert started(prefix) == "1.0"
    assert not list((prefix / "versions").glob(".*"))


def test_an_update_without_its_models_is_refused(tmp_path: Path, prefix: Path) -> None:
    update = make_bundle(tmp_path / "update" / "bundle", without_models=True)
    done = run_installer(update, prefix, "--json")
    assert (done.returncode, json.loads(done.stdout)["kind"]) == (1, "platform")
    assert "contains no models" in done.stderr
    assert not prefix.exists()


def test_a_damaged_bundle_is_not_installed(old: Path, prefix: Path) -> None:
    part = min(old.glob("*.tar.*"))
    part.write_bytes(part.read_bytes()[:-1])
    done = run_installer(old, prefix)
    assert done.returncode == 1
    assert f"Copy again: {part.name}" in done.stderr
    assert not prefix.exists()


def test_another_running_installation_is_reported(old: Path, prefix: Path) -> None:
    from local_rag.bundle.prefix import lock

    prefix.mkdir(parents=True)
    with lock(prefix), pytest.raises(BundleError, match="Another installation"):
        install(old, prefix)


def test_without_a_suitable_python_a_sentence_says_which(tmp_path: Path, prefix: Path) -> None:
    bundle = make_bundle(tmp_path / "bundle", python="3.99")
    text = (bundle / "install.sh").read_text().replace(f"wanted={PYTHON}", "wanted=3.99")
    (bundle / "install.sh").write_text(text)
    done = run_installer(bundle, prefix, "--json")
    assert done.returncode == 1
    assert "Python 3.99 is required" in done.stderr
    assert json.loads(done.stdout)["kind"] == "platform"


def make_interpreter(path: Path) -> Path:
    """Pack what stands for an interpreter: a program that starts this one."""
    (path.parent / "cpython" / "bin").mkdir(parents=True)
    program = path.parent / "cpython" / "bin" / f"python{PYTHON}"
    program.write_text(f'#!/bin/bash\nexec -a "$0" \'{os.path.realpath(sys.executable)}\' "$@"\n')
    program.chmod(0o755)
    with tarfile.open(path, "w:gz") as packed:
        packed.add(path.parent / "cpython", "cpython")
    return path


def test_an_interpreter_that_was_packed_runs_the_installer(tmp_path: Path, prefix: Path) -> None:
    python = make_interpreter(tmp_path / "cpython.tar.gz")
    require_interpreter(python)
    bundle = make_bundle(tmp_path / "with" / "bundle", interpreter=python)
    done = run_installer(bundle, prefix, LOCAL_RAG_PYTHON="")
    assert done.returncode == 0, done.stderr
    receipt = json.loads((prefix / "current" / "receipt.json").read_text())
    assert receipt["python"] == str(
        prefix / "versions" / receipt["id"] / "python" / "cpython" / "bin" / f"python{PYTHON}"
    )
    part = min(bundle.glob("*.tar.*"))
    part.write_bytes(part.read_bytes()[:-1])
    assert "copy the files listed above again" in run_installer(bundle, prefix, LOCAL_RAG_PYTHON="").stderr
    (tmp_path / "none.tar.gz").write_bytes(b"none")
    with pytest.raises(BundleError, match="not an archive of a Python interpreter"):
        require_interpreter(tmp_path / "none.tar.gz")


def test_a_wheel_with_unsafe_paths_is_refused(tmp_path: Path, prefix: Path) -> None:
    import zipfile

    from local_rag.bundle.install import _unpack_wheel

    path = make_wheel(tmp_path, "1.0")
    with zipfile.ZipFile(path, "a") as wheel:
        wheel.writestr("../../evil.py", "")
    with pytest.raises(BundleError, match="unsafe path"):
        _unpack_wheel(path, tmp_path / "staging", PYTHON)
    assert not list(tmp_path.rglob("evil.py"))


def test_doctor_says_what_differs_from_the_manifest(old: Path, prefix: Path) -> None:
    from local_rag.maintenance.checks import check_bundle

    install(old, prefix)
    environment = prefix / "current"
    receipt: Any = installed.receipt(environment)
    assert list(differences(environment)) == []
    assert "nothing differs" in check_bundle(receipt, []).message
    packages = environment / "lib" / f"python{PYTHON}" / "site-packages"
    (packages / "extra.py").write_text("")
    (environment / MODELS / "small" / "small.gguf").write_bytes(b"GGUF")
    record = next(packages.glob("*.dist-info/RECORD"))
    record.write_text("")
    found = list(differences(environment))
    assert len(found) >= 3
    assert check_bundle(receipt, found).severity == "failed"
    assert installed.receipt(prefix) is None
