"""Measure what a busy program costs: contexts and embeddings per second beside it, as a share of the idle rate.

    python -m scripts.benchmarks under_load --json load.json
    PYTHONPATH=CHECKOUT python -m scripts.benchmarks under_load --json before.json     # an earlier version

Contexts are written for the first chunks of a document, and its chunks are embedded: on an idle machine and beside a
program that keeps one core busy, in turns, over `--rounds`. Run it on a machine that does nothing else.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from local_rag.indexing.situating_prompts import context_room, plan_contexts, write_contexts
from local_rag.library import Parts
from local_rag.llama.model import LlamaModel
from local_rag.llama.models_in_use import open_engine
from local_rag.models.embedder import tokenizer_of
from local_rag.models.registry import resolve
from local_rag.reading.read import read
from local_rag.reading.split import split

CHUNK_TOKENS = 145
DOCUMENT = Path(__file__).parents[2] / "corpus" / "manuals" / "tide-data-service.md"


@contextmanager
def busy() -> Iterator[None]:
    """Keep one core busy."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(1)
        yield
    finally:
        process.kill()
        process.wait()


def rates(work: Callable[[], int], rounds: int) -> tuple[float, float]:
    """Return the idle rate per second, and the rate beside a busy program as a share of it."""
    found: dict[bool, list[float]] = {False: [], True: []}
    work()
    for _ in range(rounds):
        for loaded in (False, True):
            if loaded:
                with busy():
                    found[loaded].append(timed(work))
            else:
                found[loaded].append(timed(work))
    idle = statistics.median(found[False])
    return round(idle, 2), round(statistics.median(found[True]) / idle, 3)


def timed(work: Callable[[], int]) -> float:
    """Return the rate of a function that returns how much it has done."""
    started = time.perf_counter()
    return work() / (time.perf_counter() - started)


def main() -> None:
    """Measure contexts and embeddings, print and write the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="qwen2.5-coder-0.5b-instruct")
    parser.add_argument("--chunks", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    embed_model, context_model = resolve("all-minilm-l6-v2", "embed"), resolve(arguments.model, "context")
    document = read(DOCUMENT)
    chunks = split(document, tokenizer=tokenizer_of(embed_model), max_tokens=CHUNK_TOKENS)[: arguments.chunks]
    embedder = Parts().load_embedder(embed_model)
    texts = [chunk.text for chunk in chunks] * 8

    def embed() -> int:
        return len(embedder.embed_passages(texts))

    with LlamaModel(context_model.path) as model:
        jobs = plan_contexts(
            document.title, document.text, chunks, vocabulary=model, plan="load", form=context_model.context_form
        )

    def write() -> int:
        return sum(1 for _ in write_contexts(jobs, engine))

    with open_engine(context_model.path, context_tokens=context_room, adapter=context_model.adapter) as engine:
        contexts, contexts_share = rates(write, arguments.rounds)
        embedded, embedding_share = rates(embed, arguments.rounds)
    report = {
        "contexts_share": contexts_share,
        "embedding_share": embedding_share,
        "contexts_per_second": contexts,
        "embedded_per_second": embedded,
    }
    print(json.dumps(report))
    if arguments.json:
        arguments.json.write_text(json.dumps(report) + "\n", encoding="utf-8")
