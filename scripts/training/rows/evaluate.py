"""Ask the questions of a set of sheets, and tell right from wrong by the answers.

python -m scripts.training.rows.evaluate MODEL OUTPUT SET... [--held-out NAMES] [--together]

Each file is asked alone, or all of a set --together, as in a folder.
"""

import argparse
import json
import pickle
import random
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from local_rag.answer_records import TableAnswer
from local_rag.tables.answer import best_candidate, views_for
from local_rag.tables.planner import CALIBRATION_FILE, TrainedPlanner
from scripts.benchmarks import wikitablequestions
from scripts.training.rows.calibrate import FEATURES
from scripts.training.rows.examples import opened
from scripts.training.rows.search import matches


def values_of(table: TableAnswer) -> list[str]:
    return [str(table.value)] if table.value is not None else [one.label for one in table.values]


def is_right(table: TableAnswer, answer: list[str]) -> bool:
    return matches(values_of(table), answer) or matches([str(one.value) for one in table.values], answer)


def asked_of(held: Any, one: dict[str, Any], planner: TrainedPlanner) -> dict[str, Any]:
    started = time.perf_counter()
    best = best_candidate(one["question"], list(views_for(one["question"], held)), held, planner)
    row: dict[str, Any] = {key: one[key] for key in ("file", "question", "answerable", "answer", "kind") if key in one}
    if best:
        table = best.table
        row |= {
            "features": best.features(one["question"], planner.common),
            "score": best.score,
            "operation": best.program.operation,
            "view": best.view.kind,
        }
        row |= {
            "said": values_of(table)[:8],
            "how": table.said,
            "right": bool(one["answerable"] and is_right(table, list(map(str, one["answer"])))),
        }
    row["seconds"] = time.perf_counter() - started
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("sets", type=Path, nargs="+")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--wiki", type=int, default=0, help="so many questions of WikiTableQuestions, of SET pristine")
    parser.add_argument("--held-out", type=Path, help="the names of the files to ask; all without it")
    parser.add_argument("--together", action="store_true", help="ask all files of a set together")
    options = parser.parse_args()
    if not (options.model / CALIBRATION_FILE).is_file():
        nothing = {"bias": 0, "weights": dict.fromkeys(FEATURES, 0), "answer_from": 0, "common": []}
        (options.model / CALIBRATION_FILE).write_text(json.dumps(nothing), encoding="utf-8")
    planner = TrainedPlanner(options.model)
    rows = [asked_of(held, one, planner) for held, some in asked_together(options) for one in some]
    options.output.write_bytes(pickle.dumps(rows))
    report(rows)


def asked_together(options: argparse.Namespace) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
    """Yield the tables that are open together, and what is asked of them."""
    if options.wiki:
        every = wikitablequestions.load(options.sets[0], "pristine-unseen-tables")
        by_table = defaultdict(list)
        for asked in random.Random(3).sample(every, options.wiki):
            known = {"file": asked.table, "question": asked.question, "answerable": True, "answer": list(asked.answer)}
            by_table[asked.table].append(known)
        for table, some in by_table.items():
            with wikitablequestions.open_table(options.sets[0] / table) as held:
                yield held, some
        return
    kept = set(options.held_out.read_text().splitlines()) if options.held_out else None
    for folder in options.sets:
        by = defaultdict(list)
        for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            if kept is None or one["file"] in kept:
                by[one["file"]].append(one)
        groups = [list(by)] if options.together else [[file] for file in by]
        for files in groups:
            with opened(*(folder / "files" / file for file in files)) as held:
                yield held, [one for file in files for one in by[file]][:: options.every]


def report(rows: list[dict[str, Any]]) -> None:
    answerable = [one for one in rows if one["answerable"]]
    right = sum(one.get("right", False) for one in answerable)
    failed = sum("said" not in one for one in answerable)
    none = len(rows) - len(answerable)
    print(f"answerable {len(answerable)}: best right {right}, nothing {failed}; unanswerable {none}")
    scored = sorted((one for one in rows if "said" in one), key=lambda one: -(score(one)))
    for share in (0.2, 0.3, 0.4, 0.5, 0.6):
        said = good = bad = 0
        for one in scored:
            if said >= share * len(answerable):
                break
            said, good, bad = said + one["answerable"], good + one.get("right", False), bad + (not one["answerable"])
        print(f"  {share:.0%} answered: right {good} of {said} ({good / max(1, said):.0%}), unanswerable stated {bad}")


def score(one: dict[str, Any]) -> float:
    features = one["features"]
    return float(features["fits"] * 0.3 + features["total"] - 0.7 * features["unused"] - 0.7 * features["names"])


if __name__ == "__main__":
    main()
