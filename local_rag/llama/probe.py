"""Check in another process that llama.cpp can decode: a build for another processor crashes without a message.

`python -m local_rag.llama.probe` prints the build's instruction sets; given a model's path and the layers on a GPU, it
also decodes a few tokens, and with `speed` measures how fast.
"""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from local_rag.errors import ModelError
from local_rag.llama.engine import EngineSettings, SharedPrefixEngine
from local_rag.llama.generator import Request
from local_rag.llama.model import LlamaModel
from local_rag.llama.native import ALL_LAYERS, build_with, devices, native
from local_rag.models.models_folder import load_measurement, store_measurement

REBUILD = "rm -r .venv && scripts/setup.sh"
PROGRAM = (sys.executable, "-P", "-m", "local_rag.llama.probe")
_SECONDS = 180.0
_TIMED_TOKENS = 256


def probe_model(
    path: Path, program: Sequence[str] = PROGRAM, gpu_layers: int = ALL_LAYERS, *, encodes: bool = False
) -> str | None:
    """Return one sentence about why llama.cpp cannot decode with a model on this machine, or None if it can.

    A model that `encodes` is an embedder or reranker. Only success is stored, so a fix takes effect at once.
    """
    build = build_with(gpu_layers)
    if load_measurement("probes", path, build):
        return None
    problem = run_probe(path, program=program, gpu_layers=gpu_layers, task="encode" if encodes else "")[1]
    if problem is None:
        store_measurement("probes", path, True, build)
    return problem


def require_working(path: Path, gpu_layers: int = ALL_LAYERS, *, encodes: bool = False) -> None:
    """Raise ModelError if llama.cpp cannot decode with a model on this machine."""
    if problem := probe_model(path, gpu_layers=gpu_layers, encodes=encodes):
        raise ModelError(problem)


def run_probe(
    path: Path | None = None,
    *,
    seconds: float = _SECONDS,
    program: Sequence[str] = PROGRAM,
    gpu_layers: int = ALL_LAYERS,
    task: Literal["", "speed", "encode"] = "",
) -> tuple[str, str | None]:
    """Run the probe in another process; return its output, and the problem as a sentence or None.

    With `speed`, the last line says what computes and how many tokens per second it reads and writes.
    """
    step = f"decoding with {path}" if path else "loading"
    command = [*program, *([str(path), str(gpu_layers), *filter(None, [task])] if path else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return "", f"llama.cpp took over {seconds:.0f} seconds {step}; stop other programs or choose a smaller model."
    if done.returncode == -signal.SIGKILL:
        return "", f"llama.cpp was killed while {step}, probably out of memory; choose a smaller profile."
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        return "", f"llama.cpp crashed with {name} while {step} on this processor; rebuild it with `{REBUILD}`."
    if done.returncode:
        return "", (done.stderr.strip().splitlines() or [f"llama.cpp failed while {step}."])[-1]
    return done.stdout.strip(), None


def _main() -> None:
    print(native().llama_print_system_info().decode().strip())
    if "encode" in sys.argv[3:]:
        from local_rag.llama.encoder import LlamaEncoder

        LlamaEncoder(Path(sys.argv[1]), context_length=0, pooling="mean").run([[0, 1, 2]] * 2)
    elif len(sys.argv) > 1:
        model = LlamaModel(Path(sys.argv[1]), gpu_layers=int(sys.argv[2]))
        engine = SharedPrefixEngine(model, context_tokens=512)
        prompt = model.tokenize("The boat leaves the harbour at seven and carries")
        list(engine.complete([Request(str(number), prompt, prompt, 4) for number in range(2)]))
        if "speed" in sys.argv[3:]:
            from local_rag.llama.optimize import measure_rates

            reads, writes = measure_rates(model, EngineSettings(sequences=1), decoded=16, prefix_tokens=_TIMED_TOKENS)
            on = " and ".join(devices()) if sys.argv[2] != "0" else "the CPU, since gpu_layers is 0"
            print(f"{on}: {reads:.0f} tokens per second read, {writes:.0f} written")


if __name__ == "__main__":
    try:
        _main()
    except (ModelError, ImportError) as error:
        sys.exit(str(error))
