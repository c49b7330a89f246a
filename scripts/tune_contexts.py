"""Compare ways to ask for a chunk's context, by the retrieval that the contexts of each give.

    .venv/bin/python scripts/tune_contexts.py DATASET --libraries FOLDER --json docs/measurements/tuning-prompts.json

All chunks of the dataset get a context in each way, by the same model, in windows of the same chunks; each way has a
library of its own in FOLDER, so that a stopped run goes on where it was. The JSON has recall of every stage without
reranking, and a paired test of the shipped way against each other one, on all questions and on the half for choosing.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from local_rag import Library, contextualize, index
from local_rag.contextualize import MAX_TOKENS, ContextJob
from local_rag.dataset import load_dataset
from local_rag.evaluate import compare, evaluate
from local_rag.index import Progress
from local_rag.llama.engine import Request
from local_rag.llama.model import LlamaModel

SHIPPED = "shipped"
QUOTED_WORDS = 12  # at each end of a chunk
SHORT = (
    "Please give a short context to situate the last chunk within the document for search retrieval, in one sentence."
)
NAMES = (
    "For a search engine, say in one short sentence what the document is about and what its last chunk holds. "
    "Use the names that stand in the text."
)
BARE = "Situate the last chunk."


def words(chunk: str) -> str:
    """Return the first and last words of a chunk."""
    parts = chunk.split()
    if len(parts) <= 2 * QUOTED_WORDS:
        return " ".join(parts)
    return f"{' '.join(parts[:QUOTED_WORDS])} ... {' '.join(parts[-QUOTED_WORDS:])}"


def behind_window(quote: Callable[[str], str]) -> Callable[[Iterable[ContextJob], LlamaModel], Iterator[Request]]:
    """Return a prompt of the whole window and behind it a quotation of the chunk, as contexts are usually asked for."""
    instruction = contextualize._INSTRUCTION.replace("the last chunk", "this chunk")

    def requests(jobs: Iterable[ContextJob], model: LlamaModel) -> Iterator[Request]:
        before, after = model.chat_frame(contextualize._SYSTEM)
        head = model.tokenize(f"{before}<document>\n", special=True)
        between = model.tokenize("\n</document>\n\nHere is a chunk of this document:\n<chunk>\n")
        end = model.tokenize(f"\n</chunk>\n\n{instruction}{after}{contextualize._OPENING}", special=True)
        window, prefix = None, list[int]()
        for job in jobs:
            if job.window is not window:
                window = job.window
                prefix = [*head, *model.tokenize("\n".join((window.head, *window.pieces)))]
            chunk = model.tokenize(quote(window.pieces[job.piece]))
            yield Request(job.key, prefix, [*between, *chunk, *end], MAX_TOKENS)

    return requests


def instruction(text: str) -> Any:
    """Put another instruction behind the cut document."""
    return patch.object(contextualize, "_INSTRUCTION", text)


ROOM = patch.object(contextualize, "_SUFFIX_TOKENS", 512)
WINDOWS = patch.object(contextualize, "WINDOW_TOKENS", 1024)
WAYS: dict[str, tuple[Any, ...]] = {
    SHIPPED: (),
    "chunk repeated": (patch.object(contextualize, "prompt_requests", behind_window(str)), ROOM),
    "first and last words repeated": (patch.object(contextualize, "prompt_requests", behind_window(words)), ROOM),
    "cut, shorter instruction": (instruction(SHORT),),
    "cut, names asked for": (instruction(NAMES),),
    "cut, windows of 1,024 tokens": (WINDOWS,),
    "cut, shorter instruction, windows of 1,024 tokens": (instruction(SHORT), WINDOWS),
    "cut, instruction in front": (
        instruction(BARE),
        patch.object(
            contextualize,
            "_SYSTEM",
            f"{contextualize._SYSTEM} The user shows a document, chunk by chunk. "
            + contextualize._INSTRUCTION.removeprefix("Please g").replace("ive", "Give", 1),
        ),
    ),
}


def main() -> None:
    """Write contexts in each way asked for, search with them, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--libraries", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=list(WAYS))
    arguments = parser.parse_args()
    dataset = load_dataset(arguments.dataset)
    report: dict[str, Any] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
    runs = {}
    for way in dict.fromkeys((SHIPPED, *arguments.ways)):
        spent = [0.0, 0]

        def timed(*given: Any, spent: list[float] = spent) -> Iterator[tuple[str, str, str]]:
            started = time.perf_counter()
            for spent[1], written in enumerate(contextualize.write_contexts(*given), start=1):
                spent[0] = time.perf_counter() - started
                yield written

        def say(progress: Progress, way: str = way) -> None:
            if progress.done % 100 == 0:
                print(way, progress.stage, progress.done, progress.total, progress.detail, flush=True)

        patches = (*WAYS[way], patch.object(index, "write_contexts", timed))
        with Library(arguments.libraries / way.replace(" ", "-").replace(",", ""), context="llm") as library:
            for one in patches:
                one.start()
            runs[way] = {
                part: evaluate(dataset, library, part=part, rerank=False, progress=say) for part in ("all", "choose")
            }
            for one in patches:
                one.stop()
        entry: dict[str, Any] = {"recall": {part: run["stages"] for part, run in runs[way].items()}}
        if spent[1]:  # a library made by an earlier run says nothing about time
            entry["chunks_per_second"] = spent[1] / spent[0]
        elif "chunks_per_second" in report.get(way, {}):
            entry["chunks_per_second"] = report[way]["chunks_per_second"]
        if way != SHIPPED:
            entry["shipped_minus_this"] = {
                part: compare(runs[SHIPPED][part], run)["stages"] for part, run in runs[way].items()
            }
        report[way] = entry
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
        fused = entry["recall"]["all"]["fused"]
        print(way, *(f"{fused[f'recall@{depth}']:.1f}" for depth in (5, 10, 20)), flush=True)


if __name__ == "__main__":
    main()
