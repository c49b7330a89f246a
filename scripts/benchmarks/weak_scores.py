"""Choose the score of a reranker below which a passage counts as weak: `weak_below` in the registry.

    python -m scripts.benchmarks weak_scores corpus/questions.jsonl --library .local-rag --json weak-scores.json

Every question that a single passage answers is searched and reranked. The passage with the words that answer it is
golden, all others are not. The value is the highest one, in tenths, that leaves 95 % of the golden passages of the
choosing half unmarked. For this half and the quarter to report on, the report has the share of golden passages that it
marks, and that of the others.
"""

import argparse
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from local_rag import Library, Passage
from local_rag.evaluation.dataset import Question

KEPT = 0.95
_LINES = re.compile(r":\d+(?:-\d+)?\Z")  # the lines at the end of a golden passage


def score_of(passage: Passage) -> float | None:
    """Return the reranker's score of a passage, or None if it was not reranked."""
    return next((hit.score for hit in passage.hits if hit.list_name == "rerank"), None)


def is_golden(passage: Passage, question: dict[str, Any]) -> bool:
    """Return whether a passage contains the words that answer a question."""
    words, text = (" ".join(part.split()) for part in (question["passage"], passage.text))
    file = _LINES.sub("", question["golden"][0])
    return passage.path.endswith(file) and words in text


def threshold_of(golden: Sequence[float]) -> float:
    """Return the highest score, in tenths, with at most 5 % of the golden scores below it."""
    allowed = int(len(golden) * (1 - KEPT))
    return math.floor(sorted(golden)[allowed] * 10) / 10


def shares(rows: Sequence[tuple[float, bool]], threshold: float) -> dict[str, Any]:
    """Return the number of golden and other passages, and the share of each that is marked."""
    found: dict[str, Any] = {}
    for name, wanted in (("golden", True), ("others", False)):
        scores = [score for score, golden in rows if golden is wanted]
        found[name] = {"passages": len(scores), "marked": round(sum(s < threshold for s in scores) / len(scores), 3)}
    return found


def main() -> None:
    """Search all questions, print and write the value and what it marks in each half."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--library", type=Path, default=Path(".local-rag"))
    parser.add_argument("--candidates", type=int, default=30, help="passages to rerank")
    parser.add_argument("--json", type=Path, help="where to write the report")
    arguments = parser.parse_args()
    rows: dict[str, list[tuple[float, bool]]] = {"choose": [], "report": []}
    with Library(arguments.library, rerank_candidates=arguments.candidates) as library:
        for line in arguments.questions.read_text(encoding="utf-8").splitlines():
            question = json.loads(line)
            part = Question(question["question"]).part
            if part in rows and isinstance(question.get("passage"), str):  # one passage answers it
                for passage in library.search(question["question"]):
                    if (score := score_of(passage)) is not None:
                        rows[part].append((score, is_golden(passage, question)))
    value = threshold_of([score for score, golden in rows["choose"] if golden])
    report = {"weak_below": value, **{part: shares(found, value) for part, found in rows.items()}}
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
