"""`pipx install FILE` and `uv tool install FILE` with the built wheel, as docs/install.md says, outside the checkout.

Nothing is compiled: LLAMA_WHEEL names a file of scripts/build_wheel.sh. Everything else comes from the package index.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from local_rag.bundle import wheels
from local_rag.files import constraints
from local_rag.models.models_folder import default_models_directory

pytestmark = pytest.mark.rest


@pytest.mark.parametrize("installer", ["pipx", "uv"])
def test_the_built_wheel_installs_and_searches(installer: str, tmp_path: Path) -> None:
    llama = Path(os.environ.get("LLAMA_WHEEL", ""))
    if not llama.is_file():
        pytest.skip("LLAMA_WHEEL names no file of scripts/build_wheel.sh")
    venv.create(tmp_path / "tools", with_pip=True)
    python = tmp_path / "tools/bin/python"
    got = subprocess.run([python, "-m", "pip", "install", "--quiet", installer], capture_output=True, check=False)
    if got.returncode:
        pytest.skip(f"the package index has no {installer}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LOCAL_RAG_", "PYTHON"))}
    environment |= {name: str(tmp_path / "bin") for name in ("UV_TOOL_BIN_DIR", "PIPX_BIN_DIR")}
    environment |= {name: str(tmp_path / "home") for name in ("UV_TOOL_DIR", "PIPX_HOME", "HOME", "XDG_DATA_HOME")}
    environment |= {"LOCAL_RAG_MODELS": str(default_models_directory())}
    wheel, pins = wheels.program_wheel(tmp_path), constraints()
    places = ["--find-links", str(llama.parent), "--constraint", str(pins)]
    command = {
        "uv": ["tool", "install", "--python", sys.executable, *places, "--no-build-package", wheels.LLAMA, str(wheel)],
        "pipx": [
            "install", "--python", sys.executable, str(wheel),
            "--pip-args", " ".join([*places, "--only-binary", wheels.LLAMA]),
        ],
    }[installer]  # fmt: skip
    subprocess.run([tmp_path / "tools/bin" / installer, *command], env=environment, cwd=tmp_path, check=True)
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents/boat.txt").write_text("The boat leaves the harbour at seven.\n")
    for arguments in (["index", "documents", "--profile", "tiny", "--context", "headings"], ["search", "boat"]):
        done = subprocess.run(
            [tmp_path / "bin/local-rag", *arguments],
            capture_output=True, text=True, cwd=tmp_path, env=environment, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert "boat.txt:1" in done.stdout
