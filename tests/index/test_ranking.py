import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from local_rag.index.keyword_index import contenders
from local_rag.index.vector_index import best_rows


@given(st.integers(0, 2000), st.integers(1, 40), st.integers(1, 6), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_looking_at_contenders_alone_ranks_as_looking_at_all(
    rows: int, top: int, values: int, silent: float, seed: int
) -> None:
    """Few different scores, so that many are equal; `silent` is the share of the rows that score nothing."""
    random = np.random.default_rng(seed)
    scores = random.integers(1, values + 1, rows) * (random.random(rows) >= silent).astype(np.float64)
    order = random.permutation(rows)
    scored, few = np.flatnonzero(scores > 0), contenders(scores, top)
    assert set(few) <= set(scored)
    assert best_rows(few, scores[few], top, order) == best_rows(scored, scores[scored], top, order)


def test_of_many_rows_only_few_are_contenders() -> None:
    scores = np.random.default_rng(1).random(100_000)
    assert len(contenders(scores, 50)) < 200
