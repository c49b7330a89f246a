"""Tune how the engine runs a model to this machine: measure alternatives once and store the fastest."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from local_rag.llama.engine import EngineSettings, SharedPrefixEngine
from local_rag.llama.generator import Request
from local_rag.llama.model import ALL_LAYERS, LlamaModel, build_with
from local_rag.machine import Neighbours, physical_cores
from local_rag.models.measurements import TIMED_TEXT, load_measurement, store_measurement

# The approximate cost of a chunk: its own tokens and the request after it are evaluated, its context is generated.
_PROMPT_TOKENS, _CONTEXT_TOKENS = 200, 40
_PREFIX_TOKENS = 512
Measure = Callable[..., tuple[float, float]]  # measure_rates, or a fake


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
    engine = SharedPrefixEngine(model, context_tokens=cells, settings=settings)
    try:
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
    finally:
        engine.close()
    return prefill, decode
