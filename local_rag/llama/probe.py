"""Find out in another process whether llama.cpp can decode here: a build for another processor dies without a word.

`python -m local_rag.llama.probe` prints what llama.cpp was built for; with the path of a model it also decodes a few
tokens.
"""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from local_rag.errors import ModelError
from local_rag.llama.engine import SharedPrefixEngine
from local_rag.llama.generator import Request
from local_rag.llama.model import LlamaModel, llama_build, native
from local_rag.models.measurements import recall, remember

REBUILD = "rm -r .venv && scripts/setup.sh"
PROGRAM = (sys.executable, "-P", "-m", "local_rag.llama.probe")
_SECONDS = 180.0


def probe_model(path: Path, program: Sequence[str] = PROGRAM) -> str | None:
    """Return what keeps llama.cpp from decoding with a model on this machine, in a sentence, or None.

    A success is remembered; a failure is not, so that it is seen at once when it has been mended.
    """
    if recall("probes", path, llama_build()):
        return None
    problem = run_probe(path, program=program)[1]
    if problem is None:
        remember("probes", path, True, llama_build())
    return problem


def require_working(path: Path) -> None:
    """Raise ModelError when llama.cpp cannot decode with a model on this machine."""
    if problem := probe_model(path):
        raise ModelError(problem)


def run_probe(
    path: Path | None = None, *, seconds: float = _SECONDS, program: Sequence[str] = PROGRAM
) -> tuple[str, str | None]:
    """Run the probe in another process; return what it printed, and the problem in a sentence or None."""
    what = f"decodes with {path}" if path else "is loaded"
    command = [*program, *([str(path)] if path else [])]
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


def _main() -> None:
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
