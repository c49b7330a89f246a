"""Fit a model to this machine: measure how it runs fastest, and make a faster copy of it for writing contexts.

Both are done once. The copy has the same weights in a type that llama.cpp repacks at load time: a Q4_K_M file of a
small model holds most weights in types that llama.cpp cannot repack for the processor's widest multiplication
instructions. It can repack IQ4_NL, so prompts are evaluated much faster. IQ4_NL was chosen among the 4-bit types, since
its contexts make passages as easy to find as the original's; see docs/results.md. Answers are always generated with the
original file.
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from local_rag.errors import ModelError
from local_rag.files import file_sha256, write_whole
from local_rag.llama.engine import EngineSettings, SharedPrefixEngine
from local_rag.llama.generator import Request
from local_rag.llama.model import LlamaModel
from local_rag.llama.native import ALL_LAYERS, build_with, llama_build, native
from local_rag.machine import Neighbours, physical_cores
from local_rag.model_records import InstalledModel
from local_rag.models.models_folder import TIMED_TEXT, default_models_directory, load_measurement, store_measurement

# The approximate cost of a chunk: its own tokens and the request after it are evaluated, its context is generated.
_PROMPT_TOKENS, _CONTEXT_TOKENS = 200, 40
_PREFIX_TOKENS = 512
Measure = Callable[..., tuple[float, float]]  # measure_rates, or a fake
Rates = Callable[[Path], tuple[float, float]]
_WORTH_KEEPING = 1.15  # speed-up; a smaller one is not worth the disk space


@dataclass(frozen=True, slots=True)
class Optimization:
    """Rates of a file and of its copy, in tokens per second of prompts and of decoding; `copy` is None if not kept."""

    copy: Path | None
    rates: tuple[float, float]
    copy_rates: tuple[float, float]

    @property
    def gain(self) -> float:
        """Return the speed-up of writing contexts."""
        return seconds_per_chunk(*self.rates) / seconds_per_chunk(*self.copy_rates)


def fastest_file(model: InstalledModel) -> Path:
    """Return the copy of a model if `optimize` kept one, else its own file."""
    copy = optimized_copy(model)
    return copy if copy.is_file() and _checksum(copy).is_file() else model.path


def file_for_many(model: InstalledModel, note: Callable[[str], None], *, rates: Rates | None = None) -> Path:
    """Return the file to write many contexts with; try once per machine to make a faster copy.

    A file whose weights can be repacked as they are is as fast as any copy.
    """
    fastest = fastest_file(model)
    if fastest != model.path or load_measurement("copies", model.path, llama_build()):
        return fastest
    with contextlib.suppress(ModelError):  # the original works too
        if _is_repacked(model.path):
            return model.path
        note("making a faster copy for this processor (once)")
        made = optimize(model, rates=rates or _rates)
        store_measurement(
            "copies", model.path, {"gain": round(made.gain, 2), "kept": made.copy is not None}, llama_build()
        )
    return fastest_file(model)


def _is_repacked(path: Path) -> bool:
    with LlamaModel(path, vocabulary_only=True) as model:
        llama = native()
        return model.file_type in {llama.LLAMA_FTYPE_MOSTLY_Q4_0, llama.LLAMA_FTYPE_MOSTLY_IQ4_NL}


def optimized_copy(model: InstalledModel) -> Path:
    """Return the path of a model's copy, which is named after the weights, not after the model or its adapter."""
    return default_models_directory() / ".optimized" / f"{(model.base or model.identity)[:16]}-iq4_nl.gguf"


def _rates(path: Path) -> tuple[float, float]:
    with LlamaModel(path) as model:
        measure_rates(model, EngineSettings(), decoded=1)  # reads the file from disk, which must not be timed
        return measure_rates(model, EngineSettings(), decoded=8)


def optimize(model: InstalledModel, *, rates: Rates = _rates) -> Optimization:
    """Make the copy, time both files, and keep the copy if it is faster. Takes about a minute for 0.5B.

    Raise ModelError if the copy cannot be made.
    """
    copy = optimized_copy(model)
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(copy.parent).free < model.path.stat().st_size:
            raise ModelError(f"Not enough disk space in {copy.parent} for a copy of {model.path.name}; free some.")
        for leftover in copy.parent.glob(f"{copy.stem}.*.tmp"):  # left by a killed run
            leftover.unlink()
        temporary = copy.with_suffix(f".{os.getpid()}.tmp")
        try:
            _quantize(model.path, temporary)
            result = Optimization(copy, rates(model.path), rates(temporary))
            if result.gain < _WORTH_KEEPING:
                return replace(result, copy=None)
            _checksum(copy).unlink(missing_ok=True)
            checksum = file_sha256(temporary)
            temporary.replace(copy)
            write_whole(_checksum(copy), f"{checksum}  {copy.name}\n")
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ModelError(f"Cannot write a copy of {model.name} to {copy.parent} ({error}).") from None
    return result


def damaged_gguf_copies(models_directory: Path) -> list[Path]:
    """Hash the copies and return those that no longer match their checksums."""
    copies = sorted((models_directory / ".optimized").glob("*.gguf"))
    return [copy for copy in copies if not _matches(copy)]


def _matches(copy: Path) -> bool:
    try:
        return _checksum(copy).read_bytes().partition(b" ")[0] == file_sha256(copy).encode()
    except OSError:
        return False


def _checksum(copy: Path) -> Path:
    return copy.with_suffix(".gguf.sha256")


def _quantize(source: Path, target: Path) -> None:
    """Write the copy in another process, which Ctrl-C ends at once; the call itself cannot be interrupted."""
    command = [sys.executable, "-P", "-m", "local_rag.llama.optimize", str(source), str(target)]
    if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
        raise ModelError(f"llama.cpp cannot requantize {source}; pull the model again or use it without a copy.")


def stored_settings(path: Path, cores: int = 0, gpu_layers: int = ALL_LAYERS) -> EngineSettings | None:
    """Return the tuned settings of a model file, or None if there are none or they were tuned with fewer cores."""
    cores = cores or physical_cores()  # this process may be allowed another number of cores each time
    with contextlib.suppress(OSError, TypeError, KeyError):
        found = load_measurement("calibration", path, build_with(gpu_layers))
        if cores <= found["cores"]:
            settings = EngineSettings(**{name: value for name, value in found.items() if name != "cores"})
            return replace(settings, threads=min(settings.threads, cores))
    return None


def tune(
    model: LlamaModel,
    report: Callable[[str], None],
    *,
    measure: Measure | None = None,
    cores: int = 0,
    neighbours: Neighbours | None = None,
) -> EngineSettings:
    """Try thread counts, batch sizes, flash attention and numbers of sequences one after another; store the best.

    If other programs were busy meanwhile, return the settings without storing them, so the next run tries again.
    """
    measure, cores, neighbours = measure or measure_rates, cores or physical_cores(), neighbours or Neighbours()
    busy = False
    best, best_seconds = EngineSettings(threads=cores), float("inf")
    trials: list[dict[str, int | bool]] = [{}]
    trials += [{"threads": cores - 1}] if cores > 2 else []  # noqa: PLR2004  one core of two is too much to give up
    trials += [{"batch_tokens": 256}, {"batch_tokens": 1024}, {"flash_attention": False}]
    trials += [{"sequences": 8}, {"sequences": 32}]
    for number, change in enumerate(trials, start=1):
        report(f"tuning to this machine ({number} of {len(trials)})")
        settings = replace(best, **change)  # type: ignore[arg-type]
        seconds = seconds_per_chunk(*measure(model, settings, decoded=4))
        busy |= neighbours.threads(cores) < cores
        # A smaller difference is noise. The settings tried first are known to be good.
        if seconds < 0.97 * best_seconds:
            best, best_seconds = settings, seconds
    if not busy:
        found = {**asdict(best), "cores": cores}
        store_measurement("calibration", model.path, found, build_with(model.gpu_layers))
    return best


def seconds_per_chunk(prefill: float, decode: float) -> float:
    """Estimate the seconds that writing a chunk's context takes at these rates, in tokens per second."""
    return _PROMPT_TOKENS / prefill + _CONTEXT_TOKENS / decode


def measure_rates(
    model: LlamaModel, settings: EngineSettings, *, decoded: int, prefix_tokens: int = _PREFIX_TOKENS
) -> tuple[float, float]:
    """Return the rates, in tokens per second, of evaluating a prompt and of decoding `decoded` tokens per sequence."""
    tokens = (model.tokenize(TIMED_TEXT) * prefix_tokens)[: max(prefix_tokens, settings.batch_tokens) + 1]
    cells = len(tokens) + settings.sequences * (decoded + 4)
    with contextlib.closing(SharedPrefixEngine(model, context_tokens=cells, settings=settings)) as engine:
        started = time.perf_counter()
        engine.log_probabilities(tokens[:-1], tokens[-1:])
        prefill = (len(tokens) - 1) / (time.perf_counter() - started)
        many = [Request(str(n), tokens[:-1], [tokens[n]], decoded + 1) for n in range(settings.sequences)]
        seen, started = 0, time.perf_counter()
        for event in engine.stream(many):
            seen += event.token is not None
            if seen == len(many) and event.token is not None:  # every sequence has its first token
                started = time.perf_counter()
        decode = max(1, seen - len(many)) / (time.perf_counter() - started)
    return prefill, decode


def _main() -> int:
    llama = native()
    parameters = llama.llama_model_quantize_default_params()
    parameters.ftype = llama.LLAMA_FTYPE_MOSTLY_IQ4_NL
    parameters.allow_requantize = True
    parameters.nthread = physical_cores()
    source, target = (argument.encode() for argument in sys.argv[1:])
    return int(llama.llama_model_quantize(source, target, ctypes.byref(parameters)))


if __name__ == "__main__":
    sys.exit(_main())
