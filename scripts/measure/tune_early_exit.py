"""Compare rules for when to stop reranking, on the half of the questions kept for choosing or for reporting.

    .venv/bin/python scripts/measure/tune_early_exit.py DATASET LIBRARY --questions 40 --json early.json

LIBRARY is one that `local-rag eval DATASET` has made. All candidates are scored once. A rule scores `first` of them and
then sixteen at a time, until a round brings none among the best twenty; `share` is how much of the scoring is left.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from local_rag import Library
from local_rag.evaluation.dataset import load_dataset
from local_rag.evaluation.evaluate import Ranker, index_dataset
from local_rag.evaluation.metrics import METRICS, measure, paired_test
from local_rag.models.load import load_reranker
from local_rag.models.registry import resolve
from local_rag.models.reranker import reranked_text
from local_rag.retrieval.search import rerank_passages

POOL, KEPT = 150, 20
CANDIDATES = {"all": 0, "the first 75": 75, "the first 60": 60, "early exit": 0}


@dataclass
class Scored:
    """A reranker whose scores are known."""

    scores: dict[str, float]
    fused_weight: float
    pairs_per_second: float = 0.0
    asked: int = 0

    def score(self, _question: str, texts: Sequence[str]) -> list[float]:
        """Look the scores up."""
        self.asked += len(texts)
        return [self.scores[text] for text in texts]


def main() -> None:
    """Score, apply the rules and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("library", type=Path)
    parser.add_argument("--part", choices=["choose", "report"], default="choose")
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    dataset = load_dataset(arguments.dataset)
    reranker = load_reranker(resolve("minilm-l6-reranker", "rerank"))
    found: dict[str, list[Mapping[str, float]]] = {rule: [] for rule in CANDIDATES}
    shares: dict[str, list[float]] = {rule: [] for rule in CANDIDATES}
    with Library(arguments.library, context="headings") as library:
        ranker = Ranker(dataset, index_dataset(dataset, library, lambda _progress: None))
        questions = [one for one in dataset.questions if one.has_golden and one.part == arguments.part]
        for question in questions[: arguments.questions]:
            trace = library.trace(question.text, top=POOL, rerank=False)
            texts = [reranked_text(passage) for passage in trace.passages]
            scores = dict(zip(texts, reranker.score(question.text, texts), strict=True))
            for rule, candidates in CANDIDATES.items():
                known, kept = Scored(scores, reranker.fused_weight), KEPT if rule == "early exit" else 0
                ranked = rerank_passages(question.text, trace.passages, known, candidates=candidates, kept=kept)
                golden, ranks = ranker.ranks(question, {"reranked": [passage.chunk_id for passage in ranked]})
                found[rule].append(measure(ranks["reranked"], golden))
                shares[rule].append(known.asked / len(texts))
    rows: list[dict[str, Any]] = []
    for rule, values in found.items():
        row: dict[str, Any] = {"rule": rule, "questions": len(values), "share": round(fmean(shares[rule]), 3)}
        for metric in METRICS:
            mine, all_scored = ([one[metric] for one in some] for some in (values, found["all"]))
            row[metric] = round(fmean(mine), 4)
            row[f"p of {metric}"] = round(paired_test(mine, all_scored), 3)
        rows.append(row)
        print(json.dumps(row), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({"dataset": arguments.dataset.name, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
