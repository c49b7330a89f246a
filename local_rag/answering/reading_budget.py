"""Decide how many tokens of sources a model reads: as many as this machine reads in _SECONDS seconds."""

import contextlib
import time

from local_rag.llama.generator import Generator
from local_rag.llama.model import llama_build
from local_rag.machine import physical_cores
from local_rag.models.measurements import TIMED_TEXT, load_measurement, store_measurement

USUAL = 1024
_SECONDS, _STEP, _FEWEST, _MOST = 10, 128, 768, 4096
_TRIAL_TOKENS = 256


def reading_budget(generator: Generator) -> int:
    """Return the number of prompt tokens, measured when the model is first used on this machine.

    The number is stored, and measured in processor time, which does not depend on other programs, so that a question is
    always answered from the same sources.
    """
    path = generator.model.path
    with contextlib.suppress(OSError):
        if isinstance(known := load_measurement("reading", path, llama_build()), int) and known > 0:
            return known
        found = _round(_tokens_per_second(generator) * _SECONDS)
        store_measurement("reading", path, found, llama_build())
        return found
    return USUAL


def _tokens_per_second(generator: Generator) -> float:
    tokens = (generator.model.tokenize(TIMED_TEXT) * _TRIAL_TOKENS)[: 2 * _TRIAL_TOKENS]
    generator.log_probabilities(tokens[:_TRIAL_TOKENS], tokens[-1:])  # the first run also loads the model's pages
    started = time.process_time()
    generator.log_probabilities(tokens, tokens[-1:])
    return _TRIAL_TOKENS * physical_cores() / (time.process_time() - started)


def _round(tokens: float) -> int:
    return int(min(_MOST, max(_FEWEST, tokens))) // _STEP * _STEP
