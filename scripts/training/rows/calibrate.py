"""Fit the probability of the planner to what `evaluate` found on sheets that it was not trained with.

    python -m scripts.training.rows.calibrate MODEL EVALUATED... [--right 0.88]

The threshold is the lowest with which so many of the answers that are given are right; an answer to a question that has
none is wrong.
"""

import argparse
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.tables.planner import CALIBRATION_FILE

FEATURES = ("fits", "total", "odds", "rival", "results", "unused", "names", "words")
FEATURES += ("conditions", "empty", "several", "counts", "listed")
_DECAY = 0.001  # of the weights
_FEWEST = 20  # right answers that say something of a threshold


def fitted(features: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the bias and the weights of a logistic regression, by Newton's method."""
    given = np.hstack([np.ones((len(features), 1)), features])
    weights = np.zeros(given.shape[1])
    decay = np.diag([0.0] + [_DECAY * len(features)] * features.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-given @ weights))
        slope = given.T @ (chance - right) + decay @ weights
        curve = given.T @ (given * (chance * (1 - chance))[:, None]) + decay
        weights -= np.linalg.solve(curve + 1e-9 * np.eye(len(weights)), slope)
    return weights


def outcomes(rows: list[dict[str, Any]], chance: Any, least: float) -> tuple[int, int, int]:
    """Return how many answers are right, wrong, and given to questions that have none."""
    given = [one for one in rows if chance(one["features"]) >= least]
    right = sum(one["right"] for one in given)
    return right, len(given) - right, sum(not one["answerable"] for one in given)


def main() -> None:
    """Fit, choose the threshold, and write both beside the model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("evaluated", type=Path, nargs="+")
    parser.add_argument("--right", type=float, default=0.82)
    options = parser.parse_args()
    every = [one for path in options.evaluated for one in pickle.loads(path.read_bytes())]
    rows = [one for one in every if "features" in one]
    features = np.array([[one["features"][name] for name in FEATURES] for one in rows])
    weights = fitted(features, np.array([float(one["right"]) for one in rows]))

    def chance(found: dict[str, float]) -> float:
        return float(1 / (1 + np.exp(-weights[0] - sum(weights[1:] * [found[name] for name in FEATURES]))))

    answerable = sum(one["answerable"] for one in every)
    tried = [hundredths / 100 for hundredths in range(40, 96)]
    counted = [(least, *outcomes(rows, chance, least)) for least in tried]
    enough = (least for least, right, wrong, _ in counted if right >= options.right * (right + wrong) >= _FEWEST)
    least = next(enough, tried[-1])
    right, wrong, none = outcomes(rows, chance, least)
    print(
        f"{right + wrong - none} of {answerable} answered, {right} right; "
        f"{none} of {len(every) - answerable} without an answer answered"
    )
    before = json.loads((options.model / CALIBRATION_FILE).read_bytes())
    found = {
        "bias": round(float(weights[0]), 4),
        "weights": {name: round(float(value), 4) for name, value in zip(FEATURES, weights[1:], strict=True)},
        "answer_from": least,
        "common": before["common"],
    }
    (options.model / CALIBRATION_FILE).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
