"""Reciprocal rank fusion."""

from collections.abc import Mapping, Sequence


def reciprocal_rank_fusion(
    rankings: Mapping[str, Sequence[int]], *, k: int = 60, weights: Mapping[str, float] | None = None
) -> list[tuple[int, float]]:
    """Fuse ranked lists of ids into one list of ids with scores, best first (Cormack et al., SIGIR 2009).

    An id scores the sum of weight / (k + rank) over the lists that hold it, rank counted from 1. A list without a
    weight weighs 1. Equal scores keep the order in which the ids were first met.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    scores: dict[int, float] = {}
    for name, ranking in rankings.items():
        weight = 1.0 if weights is None else weights.get(name, 1.0)
        for rank, identifier in enumerate(ranking, start=1):
            scores[identifier] = scores.get(identifier, 0.0) + weight / (k + rank)
    return sorted(scores.items(), key=lambda item: -item[1])
