"""Compare ways to fuse a reranker's order with that of search, on the half of the questions kept for choosing.

    .venv/bin/python scripts/measure/tune_reranker.py DATASET LIBRARY --json docs/measurements/tuning-reranker.json

LIBRARY is one that `local-rag eval DATASET` has made. The first sixty fused passages are scored once; each row then
orders them by 1 / (k + rank by the reranker) + weight / (k + rank before). The JSON is added to, a set at a time.
"""

import argparse
import json
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from local_rag import Library
from local_rag.evaluation.dataset import load_dataset
from local_rag.evaluation.evaluate import POOL, Ranker, index_dataset
from local_rag.evaluation.metrics import METRICS, measure
from local_rag.models.load import load_reranker
from local_rag.models.registry import resolve
from local_rag.models.reranker import reranked_text

CANDIDATES = 60
NOTE = (
    f"The first {CANDIDATES} fused passages, ordered by 1 / (k + rank by minilm-l6-reranker) + weight / (k + fused "
    "rank), on the half of the questions kept for choosing."
)


def main() -> None:
    """Score, blend and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("library", type=Path)
    parser.add_argument("--context", choices=["llm", "headings", "none"], default="headings")
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    dataset = load_dataset(arguments.dataset)
    reranker = load_reranker(resolve("minilm-l6-reranker", "rerank"))
    found: list[tuple[Any, list[int], list[int]]] = []
    with Library(arguments.library, context=arguments.context) as library:
        ranker = Ranker(dataset, index_dataset(dataset, library, lambda _progress: None))
        for question in dataset.questions:
            if not question.has_golden or question.part != "choose":
                continue
            trace = library.trace(question.text, top=POOL, rerank=False)
            scores = reranker.score(question.text, [reranked_text(one) for one in trace.passages[:CANDIDATES]])
            found.append((question, trace.rankings["fused"], np.argsort(-np.asarray(scores), kind="stable").tolist()))

    def row(name: str, k: int, weight: float) -> dict[str, Any]:
        measured = []
        for question, fused, order in found:
            rank_of = {index: rank for rank, index in enumerate(order, start=1)}
            scores = {index: 1 / (k + rank) + weight / (k + index + 1) for index, rank in rank_of.items()}
            ranking = [fused[index] for index in sorted(scores, key=lambda index: -scores[index])] + fused[len(order) :]
            golden, ranks = ranker.ranks(question, {"reranked": ranking})
            measured.append(measure(ranks["reranked"], golden))
        return {"variant": name, **{metric: fmean(values[metric] for values in measured) for metric in METRICS}}

    rows = [row("fused alone", 10, 1e9), row("reranker alone", 10, 0.0)]
    rows += [row(f"k = {k}, weight {weight}", k, weight) for weight in (0.5, 1, 2, 3) for k in (10, 20, 40)]
    report: dict[str, Any] = {"note": NOTE, "sets": {}}
    if arguments.json.exists():
        report = json.loads(arguments.json.read_text())
    report["sets"][f"{arguments.dataset.name}, {arguments.context}"] = rows
    arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
