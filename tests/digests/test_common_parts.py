"""What two sequences have in common is found in bounded time, however they repeat themselves."""

import time
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.digests.alignment import align, common_parts
from local_rag.digests.differences import changed_values
from local_rag.digests.statements import DocumentText
from local_rag.web.pages.digest_pages import _differing


@given(st.lists(st.sampled_from("abc"), max_size=90), st.lists(st.sampled_from("abcd"), max_size=90))
def test_common_parts_rise_in_both_and_are_as_many_as_there_can_be(own: list[str], other: list[str]) -> None:
    parts = common_parts(own, other)
    for one, two, size in parts:
        assert own[one : one + size] == other[two : two + size]
    assert all(a[0] + a[2] <= b[0] and a[1] + a[2] <= b[1] for a, b in pairwise(parts))
    if len(own) * len(other) > 2500:
        assert sum(size for *_, size in parts) == _longest(own, other)


def _longest(own: list[str], other: list[str]) -> int:
    row = [0] * (len(other) + 1)
    for one in own:
        best = [row[at] + 1 if one == two else row[at + 1] for at, two in enumerate(other)]
        row = [0, *accumulate(best, max)]
    return row[-1]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Ab Cd " * 830, "Cd Ab Ab " * 550),
        (" ".join(str(one % 7) for one in range(2500)), " ".join(str(one % 5) for one in range(2500))),
    ],
)
def test_values_of_long_statements_that_repeat_themselves_are_compared_in_time(before: str, after: str) -> None:
    began = time.process_time()
    changed_values(before, after, set())
    assert time.process_time() - began < 5, "it took minutes"


def test_quotations_that_repeat_themselves_are_shown_in_time() -> None:
    began = time.process_time()
    spans = _differing("a " * 1000, "a b " * 500)
    assert spans == sorted(spans)
    assert 0 < sum(end - start for start, end in spans) < 2000
    assert time.process_time() - began < 2, "it took minutes"


def test_the_time_to_align_grows_with_the_documents() -> None:
    def nested(count: int, own: str) -> str:
        order = [2, 1, *(number - step for number in range(3, count // 4) for step in (0, 1))]
        return "".join(f"Word w{one}q stands. {own} j{at}{own} is. " for at, one in enumerate(order))

    def repeated(count: int, own: str) -> str:
        return "".join(f"All is equal here. {own} quix{number}{own}. " for number in range(count // 2))

    for text in (nested, repeated):
        seconds = []
        for count in (1000, 4000):
            before, after = (DocumentText("a.txt", "a", text(count, own)).statements for own in ("Ab", "Cd"))
            began = time.process_time()
            align(before, after)
            seconds.append(time.process_time() - began)
        assert seconds[1] < 10 * max(seconds[0], 0.05), "four times the text takes about four times as long"
