"""Compare ways to ask for a chunk's context, by the retrieval that the contexts of each give.

    python scripts/measure/tune_contexts.py DATASET --libraries FOLDER --json docs/measurements/tuning-prompts.json

All chunks of the dataset get a context in each way, by the same model; each way has a library of its own in FOLDER, so
that a stopped run goes on where it was. The JSON has recall of every stage without reranking, and a paired test of the
shipped way against each other one, on all questions and on the half for choosing.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from local_rag import Library
from local_rag.evaluation.dataset import load_dataset
from local_rag.evaluation.evaluate import compare, evaluate
from local_rag.indexing import contextualize
from local_rag.indexing.contextualize import MAX_TOKENS, ContextJob
from local_rag.indexing.indexer import Progress
from local_rag.llama.engine import Request
from local_rag.llama.model import LlamaModel

SHIPPED = "shipped"
QUOTED_WORDS = 12  # at each end of a chunk
SHORTER = (
    "Please give a short context to situate the last chunk within the document for search retrieval, in one sentence."
)
NAMES = (
    "For a search engine, say in one short sentence what the document is about and what its last chunk holds. "
    "Use the names that stand in the text."
)


def words(chunk: str) -> str:
    """Return the first and last words of a chunk."""
    parts = chunk.split()
    if len(parts) <= 2 * QUOTED_WORDS:
        return " ".join(parts)
    return f"{' '.join(parts[:QUOTED_WORDS])} ... {' '.join(parts[-QUOTED_WORDS:])}"


def behind_window(quote: Callable[[str], str]) -> tuple[Any, ...]:
    """Ask with the whole window and behind it a quotation of the chunk, as contexts are usually asked for."""
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

    return shipped_but(prompt_requests=requests, _SUFFIX_TOKENS=512)


def shipped_but(**names: Any) -> tuple[Any, ...]:
    """Change these names of the context writer."""
    return tuple(patch.object(contextualize, name, value) for name, value in names.items())


NARROWER = {"WINDOW_TOKENS": 1024}
WAYS = {
    SHIPPED: (),
    "windows of 1,024 tokens": shipped_but(**NARROWER),
    "shorter instruction": shipped_but(_INSTRUCTION=SHORTER),
    "shorter instruction, windows of 1,024 tokens": shipped_but(_INSTRUCTION=SHORTER, **NARROWER),
    "names asked for": shipped_but(_INSTRUCTION=NAMES),
    "chunk repeated": behind_window(str),
    "first and last words repeated": behind_window(words),
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

        def say(progress: Progress, way: str = way) -> None:
            if progress.done % 100 == 0:
                print(way, progress.stage, progress.done, progress.total, progress.detail, flush=True)

        folder = arguments.libraries / way.replace(" ", "-").replace(",", "")
        with Library(folder, context="llm") as library, ExitStack() as changes:
            for change in WAYS[way]:
                changes.enter_context(change)
            runs[way] = {
                part: evaluate(dataset, library, part=part, rerank=False, progress=say) for part in ("all", "choose")
            }
        report[way] = {"recall": {part: run["stages"] for part, run in runs[way].items()}}
        if way != SHIPPED:
            report[way]["shipped_minus_this"] = {
                part: compare(runs[SHIPPED][part], run)["stages"] for part, run in runs[way].items()
            }
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
        fused = report[way]["recall"]["all"]["fused"]
        print(way, *(f"{fused[f'recall@{depth}']:.1f}" for depth in (5, 10, 20)), flush=True)


if __name__ == "__main__":
    main()
