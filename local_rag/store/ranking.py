"""Rank rows by their scores, always in the same order."""

import numpy as np


def best_rows(rows: np.ndarray, scores: np.ndarray, top: int, order: np.ndarray | None) -> list[tuple[int, float]]:
    """Return the rows with the best scores, best first; of equal ones those of the lowest order, then the first."""
    if len(rows) > top:
        # All that equal the last one are compared, so that the first win wherever the list ends.
        kept = scores >= np.partition(scores, -top)[-top]
        rows, scores = rows[kept], scores[kept]
    ranks = rows if order is None else order[rows]
    best = np.lexsort((rows, ranks, -scores))[:top]
    return [(int(rows[one]), float(scores[one])) for one in best]
