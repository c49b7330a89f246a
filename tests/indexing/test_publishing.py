"""How often an index is published while contexts are written."""

from hypothesis import given
from hypothesis import strategies as st

from local_rag.indexing.indexer import seconds_until_publish


@given(st.floats(0.01, 1000), st.floats(0, 5), st.floats(1, 600))
def test_publishing_takes_a_twentieth_of_the_time_however_long_it_takes(
    seconds: float, growth: float, least: float
) -> None:
    elapsed = spent = 0.0
    last = seconds
    for _ in range(50):
        elapsed += max(least, seconds_until_publish(elapsed, spent, last, computed=9.0))
        elapsed, spent = elapsed + last, spent + last
        assert spent <= 0.05 * elapsed + max(0.0, last - seconds), "but for what nobody could foresee"
        last += growth if last < 2 * seconds else 0


def test_a_small_library_is_published_as_often_as_is_wished() -> None:
    assert seconds_until_publish(elapsed=0.1, spent=0.3, last=0.1, computed=0.2) == 0
