"""Rank rows by their scores, always in the same order."""

import numpy as np

_GROUP = 64  # scores of which only the highest is compared first


def contenders(scores: np.ndarray, top: int) -> np.ndarray:
    """Return the rows, ascending, whose scores are above 0 and may be among the best `top`: few rows of a long array.

    At least `top` groups have a score that reaches the bound, so no row below it can be among the best.
    """
    groups = scores[: len(scores) // _GROUP * _GROUP].reshape(-1, _GROUP).max(axis=1)
    bound = np.partition(groups, -top)[-top] if len(groups) > top else 0.0
    return np.flatnonzero(scores >= bound if bound > 0 else scores > 0)


def best_rows(rows: np.ndarray, scores: np.ndarray, top: int, order: np.ndarray | None) -> list[tuple[int, float]]:
    """Return the rows with the best scores, best first; equal scores rank by `order`, then by row."""
    if len(rows) > top:
        # Keep all that equal the last one, so ties at the end of the list are decided by order too.
        kept = scores >= np.partition(scores, -top)[-top]
        rows, scores = rows[kept], scores[kept]
    ranks = rows if order is None else order[rows]
    best = np.lexsort((rows, ranks, -scores))[:top]
    return [(int(rows[one]), float(scores[one])) for one in best]
