"""Find out in another process whether llama.cpp can decode here: a build for another processor dies without a word.

`python -m local_rag.llama.probe` prints what llama.cpp was built for; with the path of a model it also decodes a few
tokens.
"""

import contextlib
import hashlib
import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from local_rag.errors import ModelError
from local_rag.models.registry import default_models_directory

REBUILD = "rm -r .venv && scripts/setup.sh"
_SECONDS = 180.0


def probe_model(path: Path) -> str | None:
    """Return what keeps llama.cpp from decoding with a model on this machine, in a sentence, or None.

    A success is remembered in the models folder for this model, this build of llama.cpp and this processor; a failure
    is not, so that it is seen at once when it has been mended.
    """
    memory = default_models_directory() / ".probes.json"
    key = machine_key(path)
    known: list[str] = []
    with contextlib.suppress(OSError, ValueError):
        known = [entry for entry in json.loads(memory.read_text()) if isinstance(entry, str)]
    if key in known:
        return None
    problem = run_probe(path)[1]
    if problem is None:
        remember(memory, [*known[-50:], key])
    return problem


def remember(memory: Path, found: Any) -> None:
    """Store what was found out about this machine; a models folder that may only be read costs a trial each time."""
    with contextlib.suppress(OSError):
        temporary = memory.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps(found, indent=1))
        temporary.replace(memory)


def require_working(path: Path) -> None:
    """Raise ModelError when llama.cpp cannot decode with a model on this machine."""
    if problem := probe_model(path):
        raise ModelError(problem)


def run_probe(path: Path | None = None, *, seconds: float = _SECONDS) -> tuple[str, str | None]:
    """Run the probe in another process; return what it printed, and the problem in a sentence or None."""
    what = f"decodes with {path}" if path else "is loaded"
    command = [sys.executable, "-P", "-m", "local_rag.llama.probe", *([str(path)] if path else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return "", f"llama.cpp {what} for over {seconds:.0f} seconds; stop other programs, or choose a smaller model."
    if done.returncode == -signal.SIGKILL:
        return "", f"llama.cpp is killed when it {what}, probably for want of memory; choose a smaller profile."
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        return "", f"llama.cpp dies with {name} when it {what} on this processor; build it anew with `{REBUILD}`."
    if done.returncode:
        return "", (done.stderr.strip().splitlines() or [f"llama.cpp fails when it {what}."])[-1]
    return done.stdout.strip(), None


def processor() -> str:
    """Name the processor's model."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def machine_key(path: Path) -> str:
    """Name a model file, a build of llama.cpp and a processor."""
    spec = importlib.util.find_spec("llama_cpp")
    libraries = sorted(Path(spec.origin).parent.glob("lib/*")) if spec and spec.origin else []
    files = [path, *libraries]
    parts = [(file.name, status.st_size, status.st_mtime_ns) for file in files if (status := file.stat())]
    build = [version("llama-cpp-python"), processor(), platform.machine()]
    return hashlib.sha256(json.dumps([str(path), parts, build]).encode()).hexdigest()


def _main() -> None:
    from local_rag.llama.engine import Request, SharedPrefixEngine
    from local_rag.llama.model import LlamaModel, native

    print(native().llama_print_system_info().decode().strip())
    if len(sys.argv) > 1:
        model = LlamaModel(Path(sys.argv[1]))
        engine = SharedPrefixEngine(model, context_tokens=512)
        prompt = model.tokenize("The boat leaves the harbour at seven and carries")
        list(engine.complete([Request(str(number), prompt, prompt, 4) for number in range(2)]))


if __name__ == "__main__":
    try:
        _main()
    except (ModelError, ImportError) as error:
        sys.exit(str(error))
