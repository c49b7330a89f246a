"""Write what the checker is trained with: the queries that the planner thinks of, and whether their result is right.

python -m scripts.training.rows.queries MODEL OUTPUT SET...
"""

import argparse
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from local_rag.tables.answer import candidates, views_for
from local_rag.tables.checker import Said
from local_rag.tables.planner import TrainedPlanner
from scripts.training.rows.evaluate import asked_together, is_right


class NoChecker:
    """Finds all queries alike: those of the planner are wanted."""

    def odds(self, question: str, queries: Sequence[Said]) -> Sequence[float]:
        """Return nothing for each."""
        return [0.0] * len(queries)


def queries_of(held: Any, one: dict[str, Any], planner: TrainedPlanner) -> dict[str, Any]:
    question, answer = one["question"], list(map(str, one["answer"]))
    found = candidates(question, list(views_for(question, held)), held, planner)
    return {
        "file": one["file"],
        "question": question,
        "queries": [
            {"said": each.said, "right": bool(one["answerable"] and is_right(each.table, answer))} for each in found
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("sets", type=Path, nargs="+")
    options = parser.parse_args()
    options = argparse.Namespace(**vars(options), wiki=0, held_out=None, together=False, every=1)
    planner = TrainedPlanner(options.model)
    planner.checker = NoChecker()
    made = [queries_of(held, one, planner) for held, some in asked_together(options) for one in some]
    options.output.write_bytes(pickle.dumps(made))
    right = sum(any(each["right"] for each in one["queries"]) for one in made)
    print(f"{len(made)} questions, {right} with a right query among them")


if __name__ == "__main__":
    main()
