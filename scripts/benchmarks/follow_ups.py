"""Measure how much earlier questions help a follow-up question, and how much they harm a change of subject.

    python -m scripts.benchmarks follow_ups DATASET --library FOLDER --json follow-ups.json

DATASET is a dataset of `local-rag eval` whose questions have a `history`. Each question is searched in three ways:
alone, with its own history, and with the history of another conversation, as after an unannounced change of subject.
The report has recall@5 of each way in each list for the parts to choose and to report on, and p of a paired permutation
test against the question alone.

It also has, for each threshold of similarity between a question and the one before it, recall@5 if the history is
ignored below the threshold: with its own history and with another one.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from local_rag import Library
from local_rag.evaluation.dataset import Question, load_dataset
from local_rag.evaluation.evaluate import POOL, Ranker, index_dataset
from local_rag.evaluation.ranking_metrics import paired_test, recall
from local_rag.llama.models_in_use import load_embedder
from local_rag.models.choice import find
from local_rag.progress_records import Progress

DEPTH = 5
THRESHOLDS = (-1.0, 0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)

Row = dict[str, Any]


def strangers(questions: Sequence[Question]) -> list[tuple[str, ...]]:
    """Return for each question the history of the next question from another conversation."""
    others = []
    for number, question in enumerate(questions):
        following = (*questions[number + 1 :], *questions[:number])
        others.append(next(one.earlier for one in following if one.earlier[0] != question.earlier[0]))
    return others


def measure_rows(library: Library, ranker: Ranker, questions: Sequence[Question], rerank: bool) -> list[Row]:
    """Ask every question in every way; return the recall of each list and the similarity to the previous question."""
    embedder = load_embedder(find(library.settings, "embed"))
    rows: list[Row] = []
    for question, other in zip(questions, strangers(questions), strict=True):
        row: Row = {"question": question.text, "part": question.part}
        vector = embedder.embed_query(question.text)
        for way, earlier in (("bare", ()), ("own", question.earlier), ("other", other)):
            trace = library.retrieval.trace(question.text, top=POOL, rerank=rerank, earlier=earlier)
            golden, ranks = ranker.ranks(question, trace.rankings)
            row[way] = {stage: 100 * recall(found, golden, DEPTH) for stage, found in ranks.items()}
            if earlier:
                row[f"{way}_similarity"] = float(vector @ embedder.embed_query(earlier[-1]))
        rows.append(row)
        print(f"{len(rows)} of {len(questions)}", end="\r", flush=True)
    return rows


def summarize(rows: Sequence[Row]) -> dict[str, Any]:
    """Return means and p for each list, and the effect of ignoring dissimilar histories for each threshold."""
    stages: dict[str, Any] = {}
    for stage in rows[0]["bare"]:
        values = {way: [row[way][stage] for row in rows] for way in ("bare", "own", "other")}
        stages[stage] = {way: round(fmean(numbers), 2) for way, numbers in values.items()}
        for way in ("own", "other"):
            stages[stage][f"p_{way}"] = paired_test(values[way], values["bare"])
    return {"questions": len(rows), "stages": stages, "thresholds": [noticing(rows, one) for one in THRESHOLDS]}


def noticing(rows: Sequence[Mapping[str, Any]], threshold: float) -> dict[str, float]:
    """Return fused recall if a history is used only when its last question is similar enough."""
    found: dict[str, float] = {"threshold": threshold}
    for way in ("own", "other"):
        kept = [row[f"{way}_similarity"] >= threshold for row in rows]
        found[way] = round(
            fmean(row[way if keeps else "bare"]["fused"] for row, keeps in zip(rows, kept, strict=True)), 2
        )
        found[f"{way}_kept"] = round(100 * fmean(kept), 1)
    return found


def main() -> None:
    """Index the dataset if necessary, ask, print and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--profile", default="starter")
    parser.add_argument("--rerank", action="store_true", help="rerank as well, with the bare question")
    parser.add_argument("--json", type=Path, help="where to write the report")
    arguments = parser.parse_args()
    dataset = load_dataset(arguments.dataset)
    questions = [question for question in dataset.questions if question.has_golden and question.earlier]

    def ignore(_progress: Progress) -> None:
        pass

    with Library(arguments.library, profile=arguments.profile, context="headings") as library:
        chunks = index_dataset(dataset, library, ignore)
        rows = measure_rows(library, Ranker(dataset, chunks), questions, arguments.rerank)
    report: dict[str, Any] = {"dataset": dataset.folder.resolve().name, "all": summarize(rows)}
    report |= {part: summarize([row for row in rows if row["part"] == part]) for part in ("choose", "report")}
    print(json.dumps(report, indent=1))
    if arguments.json:
        # Without the questions, which have a licence of their own.
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
