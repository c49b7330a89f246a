"""Metrics of a ranking, their confidence intervals, and a paired test between two runs.

Relevance is binary, so the ranks (from 1) of the golden passages found and the number of all golden passages suffice.
"""

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

RECALL_DEPTHS = (1, 5, 10, 20, 150)
METRICS = (*(f"recall@{depth}" for depth in RECALL_DEPTHS), "mrr@10", "ndcg@10")
_RESAMPLES, _BATCH = 9999, 1000
_CONFIDENCE = 0.95
_NORMAL_QUANTILE = 1.96  # of _CONFIDENCE


def golden_ranks(ranking: Sequence[Hashable], golden: Collection[Hashable]) -> list[int]:
    """Return the ranks, from 1, of the golden ids in a ranking, best first."""
    return [rank for rank, item in enumerate(ranking, start=1) if item in golden]


def recall(ranks: Sequence[int], golden: int, depth: int) -> float:
    """Return the share of the golden passages among the first `depth`: "Pass@k" of Anthropic's contextual retrieval."""
    return sum(rank <= depth for rank in ranks) / golden


def reciprocal_rank(ranks: Sequence[int], depth: int) -> float:
    """Return 1 / rank of the first golden passage, or 0 if none is among the first `depth`."""
    first = min(ranks, default=depth + 1)
    return 1 / first if first <= depth else 0.0


def ndcg(ranks: Sequence[int], golden: int, depth: int) -> float:
    """Return the normalised discounted cumulative gain of the first `depth` (Järvelin and Kekäläinen, 2002)."""
    gain = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= depth)
    return gain / sum(1 / math.log2(rank + 1) for rank in range(1, min(golden, depth) + 1))


def measure(ranks: Sequence[int], golden: int) -> Mapping[str, float]:
    """Return all metrics of a question: recall in percent, MRR and nDCG from 0 to 1, as usual in papers."""
    return {
        **{f"recall@{depth}": 100 * recall(ranks, golden, depth) for depth in RECALL_DEPTHS},
        "mrr@10": reciprocal_rank(ranks, 10),
        "ndcg@10": ndcg(ranks, golden, 10),
    }


def by_question(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int], Mapping[str, Any]]:
    """Key each row by its question and the number of earlier rows with it: a dataset may repeat a question."""
    seen, named = Counter[str](), {}
    for row in rows:
        named[row["question"], seen[row["question"]]] = row
        seen[row["question"]] += 1
    return named


def confidence_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean over questions (percentile method)."""
    if len(set(values)) < 2:  # noqa: PLR2004  equal values have no variance
        return values[0], values[0]
    array, chance = np.asarray(values), np.random.default_rng(0)
    means = [
        array[chance.integers(0, len(array), (min(_BATCH, _RESAMPLES - done), len(array)))].mean(axis=1)
        for done in range(0, _RESAMPLES, _BATCH)
    ]
    low, high = np.quantile(np.concatenate(means), [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return float(low), float(high)


def wilson_interval(count: int, whole: int) -> tuple[float, float]:
    """Return the 95 % interval of a share in percent (Wilson, 1927)."""
    share, spread = count / whole, _NORMAL_QUANTILE**2 / whole
    centre = (share + spread / 2) / (1 + spread)
    half = math.sqrt(share * (1 - share) * spread + spread**2 / 4) / (1 + spread)
    return 100 * max(0.0, centre - half), 100 * min(1.0, centre + half)


def paired_test(values: Sequence[float], others: Sequence[float]) -> float:
    """Return the two-sided p-value of the hypothesis that two runs over the same questions differ only by chance.

    The test flips the signs of the differences at random (paired permutation test; Smucker et al., CIKM 2007).
    """
    differences = np.asarray(values) - np.asarray(others)
    if len(differences) < 2:  # noqa: PLR2004  one question proves nothing
        return 1.0
    every = 2 ** len(differences) <= _RESAMPLES  # few questions have few combinations of signs: try each
    means = np.concatenate([(signs * differences).mean(axis=1) for signs in _signs(len(differences), every=every)])
    observed = differences.mean()
    near = 100 * np.finfo(float).eps * abs(observed)
    more_extreme = min(np.count_nonzero(means <= observed + near), np.count_nonzero(means >= observed - near))
    chance = 0 if every else 1  # what was observed is one of the random combinations
    return float(min(1.0, 2 * (more_extreme + chance) / (len(means) + chance)))


def _signs(count: int, *, every: bool) -> Iterator[np.ndarray]:
    """Yield combinations of signs, each a row: every one, or random ones."""
    if every:
        yield np.array(list(product((1, -1), repeat=count)))
        return
    random, both = np.random.default_rng(0), np.tile((1, -1), (_BATCH, count, 1))
    for done in range(0, _RESAMPLES, _BATCH):
        yield random.permuted(both, axis=-1)[: _RESAMPLES - done, :, 0]
