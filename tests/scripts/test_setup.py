"""`scripts/setup.sh --gpu KIND`, with stand-ins for Python, pip and compilers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/setup.sh"
TOOLS = {"none": "c++", "vulkan": "glslc", "cuda": "nvcc", "metal": "xcrun", "rocm": "hipcc"}
# Creates the environment as a copy of itself, notes what is installed and how llama.cpp is compiled, and has no
# llama_cpp until it is. The compiler fails for the option in `fails`.
PYTHON = """#!/bin/sh
case "$*" in
    *"-m venv"*) mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
    *"import llama_cpp"*) [ -e .venv/llama ] ;;
    *"pip wheel"* | *" wheel "*)
        echo "$CMAKE_ARGS" >> compiled
        [ ! -e fails ] || case "$CMAKE_ARGS" in *"$(cat fails)"*) exit 1 ;; esac
        while [ "$1" != --wheel-dir ]; do shift; done
        touch "$2/llama_cpp_python-1-py3-none-any.whl" .venv/llama ;;
    *wheel_of_installed*) touch "$3/llama_cpp_python-1-py3-none-any.whl" ;;
    *"pip --disable-pip-version-check install"*) echo "$*" >> installed; cp local-rag .venv/bin/local-rag ;;
esac
"""
# Notes what is pulled; `doctor` says the speed of the build for the processor or for a GPU.
LOCAL_RAG = """#!/bin/sh
case "$1" in
    models) echo "$3" >> pulled ;;
    doctor) cat "speed-$(cat .venv/.gpu)"; exit 1 ;;
esac
"""
SPEED = "decoding: llama.cpp decodes with a model on {}: {} tokens per second read, {} written\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("pyproject.toml", "constraints.txt", "requirements.lock"):
        (tmp_path / name).write_text("")
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    (tmp_path / "bin").mkdir()
    for name in ("bash", "cat", "cksum", "cp", "cut", "dirname", "echo", "grep", "mkdir", "mktemp", "rm", "sh", "tail"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or f"/usr/bin/{name}")
    for name in ("awk", "touch", "tr", "uname", "kill"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or f"/usr/bin/{name}")
    tool(tmp_path, "python3", PYTHON)
    tool(tmp_path, "c++")
    tool(tmp_path, "../local-rag", LOCAL_RAG)
    return tmp_path


def tool(checkout: Path, name: str, content: str = "#!/bin/sh\n") -> None:
    path = checkout / "bin" / name
    path.write_text(content)
    path.chmod(0o755)


def setup(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(checkout / "bin"), "HOME": os.environ["HOME"]}
    command = ["bash", str(checkout / "scripts/setup.sh"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def compiled(checkout: Path) -> list[str]:
    return lines(checkout / "compiled")


@pytest.mark.parametrize(
    ("arguments", "following"),
    [
        ([], "(--slim). Next: .venv/bin/local-rag models pull starter"),
        (["--pull", "starter"], "(--slim). Next: .venv/bin/local-rag index FOLDER"),
        (["--core"], '(--core). Next: .venv/bin/python -m pytest -m "not slow and not rest and not integration"'),
    ],
)
def test_the_last_line_says_what_is_set_up_and_what_to_run_next(
    arguments: list[str], following: str, checkout: Path
) -> None:
    for _ in range(2):
        done = setup(checkout, *arguments)
        assert done.returncode == 0, done.stderr
        assert done.stderr.splitlines()[-1] == f"local-rag is set up in .venv {following}"


@pytest.mark.parametrize("arguments", [["--gpu"], ["--gpu", "opengl"], ["--cpu"], ["--gpu", "cuda", "rocm"]])
def test_an_unknown_gpu_is_wrong_usage(arguments: list[str], checkout: Path) -> None:
    done = setup(checkout, *arguments)
    assert done.returncode == 2
    assert done.stderr.endswith("is no GPU; use scripts/setup.sh --gpu auto, vulkan, cuda, metal, rocm or none.\n")
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize("kind", ["vulkan", "cuda", "metal", "rocm"])
def test_a_missing_compiler_is_named(kind: str, checkout: Path) -> None:
    done = setup(checkout, "--gpu", kind)
    assert done.returncode == 1
    assert f"There is no {TOOLS[kind]}, which llama.cpp needs to be compiled for {kind}" in done.stderr
    assert compiled(checkout) == []


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        ("vulkan", "-DGGML_VULKAN=ON"),
        ("cuda", "-DGGML_CUDA=ON"),
        ("metal", "-DGGML_METAL=ON"),
        ("rocm", "-DGGML_HIP=ON"),
    ],
)
def test_llama_is_compiled_for_the_gpu_and_stays_so(kind: str, option: str, checkout: Path) -> None:
    tool(checkout, TOOLS[kind])
    assert setup(checkout).returncode == 0
    (first,) = compiled(checkout)
    assert option not in first
    for arguments in (["--gpu", kind], ["--gpu", kind], []):  # the second and the third run find nothing to do
        done = setup(checkout, *arguments)
        assert done.returncode == 0, done.stderr
        assert len(compiled(checkout)) == 2
    assert option in compiled(checkout)[1]
    assert setup(checkout, "--gpu", "none").returncode == 0
    assert option not in compiled(checkout)[2]


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ("sys.version_info = (3, 10, 12, 'final', 0)", "needs Python 3.11.5 or later, and this one is 3.10.12"),
        ("sys.platform = 'linux'; os.confstr = lambda name: 'glibc 2.27'", "needs glibc 2.28 or later"),
        ("sys.platform = 'linux'; os.confstr = lambda name: None", "musl"),
        (
            "sys.platform = 'darwin'; platform.machine = lambda: 'arm64'; platform.mac_ver = lambda: ('13.6', '', '')",
            "needs macOS 14 or later",
        ),
        (
            "sys.platform = 'darwin'; platform.machine = lambda: 'x86_64'; platform.mac_ver = lambda: ('15.1', '', '')",
            "needs macOS 14 or later on Apple silicon",
        ),
        ("sys.platform = 'win32'", "on Windows use WSL"),
        ("raise SystemExit(1)", "needs Python 3.11.5 or later, and 'python3' is older or missing"),
    ],
)
def test_a_machine_that_is_too_old_is_refused_before_anything_is_made(
    checkout: Path, facts: str, sentence: str
) -> None:
    (checkout / "facts.py").write_text(f"import os, platform, sys\n{facts}\n")
    real = f'#!/bin/sh\n{{ cat "{checkout}/facts.py"; cat; }} | exec "{sys.executable}" -\n'
    tool(checkout, "python3", real)
    done = setup(checkout)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (checkout / ".venv").exists()


def test_the_core_needs_no_compiler_and_compiles_nothing(checkout: Path) -> None:
    (checkout / "bin" / "c++").unlink()
    assert setup(checkout).returncode == 1
    done = setup(checkout, "--core")
    assert done.returncode == 0, done.stderr
    assert compiled(checkout) == []
    assert (checkout / ".venv/.mode").read_text() == "core\n"


def test_torch_is_installed_only_on_request_and_then_stays(checkout: Path) -> None:
    def torch() -> int:
        return sum(line.endswith(" torch") for line in lines(checkout / "installed"))

    assert setup(checkout).returncode == 0
    assert torch() == 0
    assert setup(checkout, "--torch").returncode == 0
    assert torch() == 1
    (checkout / "pyproject.toml").write_text("# a new version")
    assert setup(checkout).returncode == 0
    assert torch() == 2
    assert setup(checkout, "--slim").returncode == 0
    assert torch() == 2
    assert len(compiled(checkout)) == 1


def test_an_environment_of_an_earlier_version_keeps_torch(checkout: Path) -> None:
    (checkout / ".venv").mkdir()
    (checkout / ".venv/.mode").write_text("default\n")
    assert setup(checkout).returncode == 0
    assert lines(checkout / ".venv/.mode") == ["torch"]


def test_models_are_pulled_also_when_there_is_nothing_to_set_up(checkout: Path) -> None:
    for count in (1, 2):
        done = setup(checkout, "--pull", "light")
        assert done.returncode == 0, done.stderr
        assert lines(checkout / "pulled") == ["light"] * count
    assert setup(checkout, "--pull").returncode == 2


def test_without_the_toolchain_of_a_gpu_auto_sets_up_for_the_processor(checkout: Path) -> None:
    done = setup(checkout, "--gpu", "auto")
    assert done.returncode == 0, done.stderr
    assert "There is no toolchain of a GPU" in done.stderr
    assert len(compiled(checkout)) == 1
    assert lines(checkout / ".venv/.gpu") == ["none"]


@pytest.mark.parametrize(
    ("speed", "stays"),
    [((400, 60), "cuda"), ((205, 31), "none"), ((100, 30), "none"), (None, "none")],
)
def test_auto_keeps_the_build_for_a_gpu_only_if_it_is_faster(
    checkout: Path, speed: tuple[int, int] | None, stays: str
) -> None:
    tool(checkout, "nvcc")
    (checkout / "speed-none").write_text(SPEED.format("the CPU", 200, 30))
    (checkout / "speed-cuda").write_text(SPEED.format("a GPU", *speed) if speed else "decoding: crashed\n")
    done = setup(checkout, "--gpu", "auto")
    assert done.returncode == 0, done.stderr
    assert "Processor: 200 tokens per second read, 30 written." in done.stderr
    if speed:
        assert f"cuda: {speed[0]} tokens per second read, {speed[1]} written." in done.stderr
    assert done.stderr.count("local-rag is set up") == 1
    assert done.stderr.endswith("Next: .venv/bin/local-rag index FOLDER\n")
    assert len(compiled(checkout)) == 2
    assert lines(checkout / ".venv/.gpu") == [stays]
    assert lines(checkout / "pulled") == ["starter"]
    assert setup(checkout).returncode == 0
    assert len(compiled(checkout)) == 2
    wheels = [line for line in lines(checkout / "installed") if line.endswith(".whl")]
    assert len(wheels) == (2 if stays == "cuda" else 3)


def test_auto_keeps_the_build_for_the_processor_if_the_other_does_not_compile(checkout: Path) -> None:
    tool(checkout, "hipcc")
    (checkout / "fails").write_text("GGML_HIP")
    (checkout / "speed-none").write_text(SPEED.format("the CPU", 200, 30))
    done = setup(checkout, "--gpu", "auto")
    assert done.returncode == 0, done.stderr
    assert "The build for rocm is no gain" in done.stderr
    assert lines(checkout / ".venv/.gpu") == ["none"]
    assert (checkout / ".venv/.set-up").exists()


def test_auto_compiles_nothing_for_a_gpu_if_no_model_can_be_measured(checkout: Path) -> None:
    tool(checkout, "nvcc")
    (checkout / "speed-none").write_text("models: none\n")
    done = setup(checkout, "--gpu", "auto")
    assert done.returncode == 0, done.stderr
    assert "could not measure" in done.stderr
    assert len(compiled(checkout)) == 1
