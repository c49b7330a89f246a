"""Metrics against pytrec_eval (NIST's trec_eval) as an independent oracle."""

import math

import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from local_rag.evaluation.ranking_metrics import (
    METRICS,
    confidence_interval,
    golden_ranks,
    measure,
    ndcg,
    paired_test,
    recall,
)

rankings = st.lists(st.integers(0, 200), unique=True, max_size=160)
goldens = st.sets(st.integers(0, 200), min_size=1, max_size=20)


@settings(max_examples=200)
@given(rankings, goldens)
def test_the_same_as_trec_eval(ranking: list[int], golden: set[int]) -> None:
    judged = {"q": {str(item): 1 for item in golden}}
    # trec_eval orders by score; a document it never sees cannot make the question disappear.
    run = {"q": {str(item): float(-rank) for rank, item in enumerate(ranking)} or {"none": 0.0}}
    measures = {"recall.1,5,10,20,150", "ndcg_cut.10", "recip_rank_cut.10", "recip_rank"}
    theirs = pytrec_eval.RelevanceEvaluator(judged, measures - {"recip_rank_cut.10"}).evaluate(run)["q"]
    ours = measure(golden_ranks(ranking, golden), len(golden))
    for depth in (1, 5, 10, 20, 150):
        assert ours[f"recall@{depth}"] == pytest.approx(100 * theirs[f"recall_{depth}"])
    assert ours["ndcg@10"] == pytest.approx(theirs["ndcg_cut_10"])
    reciprocal = theirs["recip_rank"] if theirs["recip_rank"] >= 1 / 10 - 1e-9 else 0.0
    assert ours["mrr@10"] == pytest.approx(reciprocal)
    assert tuple(ours) == METRICS


def test_by_hand() -> None:
    assert golden_ranks(["a", "b", "c"], {"c", "a", "x"}) == [1, 3]
    assert recall([1, 3], 3, 2) == pytest.approx(1 / 3)
    assert ndcg([1, 3], 3, 10) == pytest.approx((1 + 0.5) / (1 + 1 / math.log2(3) + 0.5))
    assert measure([], 2) == dict.fromkeys(METRICS, 0.0)
    assert measure([11], 1)["mrr@10"] == 0.0


def test_confidence_interval_of_a_coin() -> None:
    low, high = confidence_interval([0.0, 100.0] * 50)
    # The normal approximation: 50 +- 1.96 * 50 / sqrt(100).
    assert low == pytest.approx(40.2, abs=1.5)
    assert high == pytest.approx(59.8, abs=1.5)
    assert confidence_interval([5.0, 5.0]) == (5.0, 5.0)


def test_paired_test_against_the_exact_sign_flips() -> None:
    assert paired_test([1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]) == pytest.approx(2 / 2**6)
    assert paired_test([1, 0, 1], [1, 0, 1]) == 1.0
    assert paired_test([1], [0]) == 1.0
    same = [float(value) for value in range(40)]
    assert paired_test(same, [value + (-1) ** index for index, value in enumerate(same)]) > 0.5
    assert paired_test(same, [value + 1 for value in same]) < 0.001
