"""Measure how long one, two and six people who ask at the same moment wait for the last of their answers.

    python -m scripts.benchmarks last_answer --library .local-rag --json docs/measurements/last-answer.json

A real `serve` answers one question after another; the library is one of corpus/. Beside that, its answer model reads
and writes as many prompts of the usual length, one after another and in one batch: so much could answers gain that are
decoded together. No prompt is read twice, and no answer is given again. Figures are medians of `--rounds`, in seconds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local_rag.library import Library
from local_rag.llama.generator import Generator, Request
from local_rag.llama.models_in_use import open_engine
from local_rag.models.choice import find
from scripts.benchmarks.serve_load import MAIN, QUESTIONS, ask, wait_until_loaded

PEOPLE = (1, 2, 6)
PROMPT, WRITTEN = 600, 40  # tokens: what answers to the questions of corpus/ read and write
TEXT = Path(__file__).parents[2] / "corpus" / "manuals" / "tide-data-service.md"


def main() -> None:
    """Measure both, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, default=Path(".local-rag"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    report = {
        "served": served(arguments.library, arguments.rounds),
        "decoded": decoded(arguments.library, arguments.rounds),
        "load": [round(one, 1) for one in os.getloadavg()],
        "cores": os.cpu_count(),
    }
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def served(library: Path, rounds: int) -> dict[str, Any]:
    """Let people ask a server at once; return when the first and the last of them had an answer."""
    with serving(library) as address, ThreadPoolExecutor(max(PEOPLE)) as pool:
        ask(address, QUESTIONS[-1])  # the first answer is the slowest

        def asked(question: str) -> float:
            ask(address, question)
            return time.monotonic()

        found: dict[int, list[tuple[float, float]]] = {count: [] for count in PEOPLE}
        for turn in range(rounds):
            for count in PEOPLE:
                questions = [QUESTIONS[(turn + place) % len(QUESTIONS)] for place in range(count)]
                began = time.monotonic()
                ended = [moment - began for moment in pool.map(asked, questions)]
                found[count].append((min(ended), max(ended)))
    return {
        f"{count} people": {"first": median(one for one, _ in took), "last": median(one for _, one in took)}
        for count, took in found.items()
    }


@contextmanager
def serving(library: Path) -> Iterator[str]:
    """Serve a library without keeping answers; yield the address once the models are loaded."""
    environment = os.environ | {"LOCAL_RAG_ANSWER_CACHE": "false", "LOCAL_RAG_HISTORY": "false"}
    command = [sys.executable, "-P", "-c", MAIN, "serve", "--no-token", "--port", "0", "--library", str(library)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[-1]
            wait_until_loaded(address)
            yield address
        finally:
            server.terminate()


def decoded(library: Path, rounds: int) -> dict[str, Any]:
    """Let the answer model of a library complete prompts one after another, and together in one batch."""
    with Library(library) as opened:
        model = find(opened.settings, "answer")
    room = 2 * max(PEOPLE) * (PROMPT + WRITTEN)
    with open_engine(model.path, context_tokens=lambda _length, _sequences: room, adapter=model.adapter) as engine:
        tokens = engine.model.tokenize(TEXT.read_text(encoding="utf-8") * 20)
        begin = 0

        def prompts(count: int) -> list[Request]:
            """Return prompts that share no beginning with any other."""
            nonlocal begin
            begins = [begin + 37 * place for place in range(count)]
            begin += 37 * count
            return [Request(str(at), [], tokens[at : at + PROMPT], WRITTEN) for at in begins]

        def one_by_one(requests: list[Request]) -> None:
            for request in requests:
                together(engine, [request])

        ways: dict[str, Callable[[list[Request]], None]] = {
            "one after another": one_by_one,
            "in one batch": lambda requests: together(engine, requests),
        }
        took: dict[tuple[int, str], list[float]] = {(count, way): [] for count in PEOPLE for way in ways}
        one_by_one(prompts(1))
        for _ in range(rounds):
            for (count, way), seconds in took.items():
                requests = prompts(count)
                began = time.monotonic()
                ways[way](requests)
                seconds.append(time.monotonic() - began)
    return {f"{count} prompts": {way: median(took[count, way]) for way in ways} for count in PEOPLE}


def together(engine: Generator, requests: list[Request]) -> None:
    """Complete requests in one batch."""
    for _ in engine.stream(requests):
        pass


def median(values: Iterable[float]) -> float:
    """Return the median of seconds."""
    return round(statistics.median(values), 1)


if __name__ == "__main__":
    main()
