"""The project's wheel works outside of a checkout: what it needs beside its code is inside."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

from local_rag.bundle import wheels

_TRY = """
from pathlib import Path
import local_rag
from local_rag.bundle.wheels import pins
from local_rag.models.registry import load_registry, verify
from local_rag.models.own_models import ONNX_FILE
import local_rag.web

assert Path(local_rag.__file__).is_relative_to(Path.cwd()), local_rag.__file__
for name in ("all-minilm-l6-v2", "minilm-l6-reader"):
    entry = load_registry().models[name]
    assert verify(entry, models_directory=Path("none")) == ()
    assert (entry.path(Path("none")) / ONNX_FILE).is_file()
assert list((Path(local_rag.web.__file__).parent / "templates").glob("*.html"))
assert list((Path(local_rag.web.__file__).parent / "static").iterdir())
assert pins()["click"]
folder = Path(local_rag.__file__).parent / "bundle"
assert {"verify.py", "archive.py", "install.py", "prefix.py", "install.sh"} <= {one.name for one in folder.iterdir()}
"""


def test_the_wheel_holds_registry_reranker_templates_and_installer(tmp_path: Path) -> None:
    (tmp_path / "wheel").mkdir()
    wheel = wheels.program_wheel(tmp_path / "wheel")
    (tmp_path / "again").mkdir()
    assert wheels.program_wheel(tmp_path / "again").read_bytes() == wheel.read_bytes()
    empty = tmp_path / "empty"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(empty)]
    subprocess.run([*command, str(wheel)], check=True, capture_output=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCAL_RAG_")}
    environment |= {"PYTHONPATH": str(empty), "HOME": str(tmp_path)}
    for code in (_TRY, "from local_rag.cli.main import main; import sys; sys.argv[1:] = ['models', 'list']; main()"):
        done = subprocess.run(
            [sys.executable, "-P", "-c", code], capture_output=True, text=True, cwd=empty, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr
    assert "minilm-l6-reader" in done.stdout


def test_the_wheel_installs_into_an_environment_of_its_own_as_pipx_and_uv_do(tmp_path: Path) -> None:
    wheel, home = wheels.program_wheel(tmp_path), tmp_path / "tool"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    packages = next((home / "lib").glob("python*/site-packages"))
    # The packages that it needs, without the checkout itself, which is installed there by a file that names it.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LOCAL_RAG_", "PYTHON"))}
    environment["HOME"] = environment["XDG_DATA_HOME"] = str(tmp_path)
    where = "import local_rag; print(local_rag.__file__)"
    done = subprocess.run(
        [python, "-P", "-c", where], capture_output=True, text=True, cwd=tmp_path, env=environment, check=True
    )
    assert Path(done.stdout.strip()).is_relative_to(home)
    for arguments in (["--version"], ["models", "list"], ["bundle", "create", "--help"]):
        command = [str(home / "bin" / "local-rag"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
        assert done.returncode == 0, done.stderr


def test_a_wheel_is_the_same_in_whatever_order_its_files_were_written(tmp_path: Path) -> None:
    files = {"pkg/a.py": b"1\n", "pkg/b.py": b"2\n", "pkg-1.dist-info/RECORD": b"pkg/a.py,x,2\npkg/b.py,y,2\n"}
    built_in = "lib/pkgconfig/pkg.pc"
    first, second = tmp_path / "first.whl", tmp_path / "second.whl"
    with zipfile.ZipFile(first, "w") as out:
        for name, data in files.items():
            out.writestr(name, data)
    with zipfile.ZipFile(second, "w") as out:
        for name, data in reversed(files.items()):
            record = f"pkg/b.py,y,2\n{built_in},z,9\npkg/a.py,x,2\n".encode()
            out.writestr(name, record if name.endswith("RECORD") else data)
        out.writestr(built_in, "prefix=/tmp/x\n")
    assert first.read_bytes() != second.read_bytes()
    for path in (first, second):
        wheels.put_in_order(path)
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as wheel:
        assert {name: wheel.read(name) for name in wheel.namelist()} == files
