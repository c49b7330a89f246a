"""`scripts/release.sh` builds a wheel of this checkout and lists the hash of everything that is uploaded."""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


def release(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHON": sys.executable}
    command = ["bash", str(checkout / "scripts/release.sh"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def committed(folder: Path, *names: str) -> Path:
    """Copy files and folders of this checkout and commit them, because a release has no changes."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (CHECKOUT / name).is_dir():
            shutil.copytree(CHECKOUT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(CHECKOUT / name, folder / name)
    (folder / ".gitignore").write_text("dist/\n__pycache__/\n")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "--all"], [*identity, "commit", "-qm", "All"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    """Return a wheel with kernels for two processors, as scripts/build_wheel.sh builds it."""
    path = tmp_path / "llama_cpp_python-0.3.36-py3-none-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for kernel in ("haswell", "x64"):
            wheel.writestr(f"llama_cpp/lib/libggml-cpu-{kernel}.so", "")
    return path


@pytest.mark.slow
def test_a_release_holds_both_wheels_the_pins_a_note_and_their_hashes(tmp_path: Path, llama: Path) -> None:
    pytest.importorskip("hatchling")
    shipped = [str(path.parent.relative_to(CHECKOUT)) for path in (CHECKOUT / "models").glob("*/MODEL_CARD.md")]
    described = ("pyproject.toml", "README.md", "LICENSE", "constraints.txt", "requirements.lock")
    names = ("local_rag", "scripts/release.sh", "models/registry.toml", *shipped, *described)
    checkout = committed(tmp_path / "checkout", *names)
    done = release(checkout, "--llama", str(llama))
    assert done.returncode == 0, done.stderr
    folder = checkout / "dist/release"
    (program,) = folder.glob("local_rag-*-py3-none-any.whl")
    assert {path.name for path in folder.iterdir()} == {
        program.name, llama.name, "constraints.txt", "NOTE.md", "SHA256SUMS",
    }  # fmt: skip
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert "kernels for haswell, x64" in (folder / "NOTE.md").read_text()
    with zipfile.ZipFile(program) as wheel:
        assert "local_rag/constraints.txt" in wheel.namelist()
    again = release(checkout, "--llama", str(llama))
    assert again.returncode == 1
    assert "dist/release exists" in again.stderr


def test_a_release_is_refused_while_the_checkout_has_changes(tmp_path: Path, llama: Path) -> None:
    checkout = committed(tmp_path / "checkout", "scripts/release.sh", "README.md")
    (checkout / "README.md").write_text("changed")
    done = release(checkout, "--llama", str(llama))
    assert done.returncode == 1
    assert done.stderr == "The checkout has changes; commit them first.\n"
    assert not (checkout / "dist").exists()


@pytest.mark.parametrize("arguments", [["--llama"], ["--llama", "missing.whl"], ["--upload"]])
def test_wrong_arguments_of_a_release_are_refused(arguments: list[str]) -> None:
    assert release(CHECKOUT, *arguments).returncode == 2
