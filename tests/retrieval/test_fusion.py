import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.retrieval.searcher import reciprocal_rank_fusion

rankings = st.dictionaries(st.sampled_from(["dense", "keyword", "other"]), st.lists(st.integers(0, 30), unique=True))


def test_known_scores() -> None:
    fused = reciprocal_rank_fusion({"dense": [7, 8], "keyword": [8, 9]}, k=60)
    assert fused == [(8, 1 / 62 + 1 / 61), (7, 1 / 61), (9, 1 / 62)]


def test_weights() -> None:
    assert reciprocal_rank_fusion({"a": [1], "b": [2]}, weights={"b": 2.0})[0] == (2, 2 / 61)


def test_ties_keep_the_order_of_the_lists() -> None:
    assert [key for key, _ in reciprocal_rank_fusion({"a": [5, 1], "b": [2, 9]})] == [5, 2, 1, 9]


def test_k_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="k must be at least 1"):
        reciprocal_rank_fusion({}, k=0)


@given(rankings)
def test_every_id_once_best_first(lists: dict[str, list[int]]) -> None:
    fused = reciprocal_rank_fusion(lists)
    assert sorted(key for key, _ in fused) == sorted({key for ranking in lists.values() for key in ranking})
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)


@given(st.lists(st.integers(0, 30), unique=True))
def test_two_equal_lists_keep_their_order(ranking: list[int]) -> None:
    assert [key for key, _ in reciprocal_rank_fusion({"a": ranking, "b": ranking})] == ranking
