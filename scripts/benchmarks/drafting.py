"""Measure what drafting tokens would gain and change: the cost of evaluating several at once, and their logits.

    python -m scripts.benchmarks drafting MODEL.gguf --json drafting.json

A draft (prompt lookup) is verified by evaluating its tokens in one batch. This pays if the batch costs less than the
tokens that are accepted would cost one by one, and it changes no answer only if both ways compute the same logits. The
model reads as much of a page as the prompt of an answer has, and then its continuation in batches of each size. `cost`
is the time of a batch divided by that of a single token, and `other_argmax` counts the tokens after which the most
probable next token differs.
"""

import argparse
import json
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from local_rag.llama.engine import EngineSettings, SharedPrefixEngine
from local_rag.llama.model import LlamaModel
from local_rag.llama.native import native

TEXT = Path(__file__).parents[2] / "docs" / "how-it-works.md"
READ, SIZES = 600, (1, 2, 3, 4, 6, 8, 12, 16)


def evaluate(engine: SharedPrefixEngine, tokens: Sequence[int], size: int) -> tuple[np.ndarray, float]:
    """Return the logits after each token behind the first READ ones, and the seconds of a batch of `size` of them."""
    native().llama_memory_seq_rm(engine._memory, 0, -1, -1)
    rows, batches = list[np.ndarray](), [tokens[:READ]]
    batches += [tokens[start : start + size] for start in range(READ, len(tokens), size)]
    started, position = 0.0, 0
    for number, batch in enumerate(batches):
        engine._batch.n_tokens = 0
        for token in batch:
            engine._submit(token, position, 0, logits=number > 0)
            position += 1
        engine._evaluate()
        if number:
            rows += [engine._logits(row).copy() for row in range(len(batch))]
        else:
            started = time.perf_counter()
    return np.array(rows), (time.perf_counter() - started) / (len(batches) - 1)


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    report = dict[str, dict[str, float]]()
    with LlamaModel(arguments.model) as model:
        tokens = model.tokenize(TEXT.read_text(encoding="utf-8"))[: READ + arguments.tokens]
        with closing(SharedPrefixEngine(model, context_tokens=2048, settings=EngineSettings(sequences=4))) as engine:
            single, single_seconds = evaluate(engine, tokens, 1)
            for size in SIZES:
                logits, seconds = evaluate(engine, tokens, size)
                report[str(size)] = {
                    "cost": round(seconds / single_seconds, 2),
                    "identical": bool(np.array_equal(logits, single)),
                    "largest_difference": round(float(np.abs(logits - single).max()), 3),
                    "other_argmax": int((logits.argmax(1) != single.argmax(1)).sum()),
                }
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
