"""Citations: found however the answer comes in pieces, checked against the sources, supplied where they are missing."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.verification.citations import CitationCheck, find_citations, most_similar_source
from tests.fakes import passage

PIECES = st.lists(st.text(alphabet="ab [],12\n", max_size=6), max_size=12)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["It is seven [1]."], [("It is seven", []), (" [1]", [1]), (".", [])]),
        (
            ["It is ", "seven ", "[", "1", ", 2", "]", "."],
            [("It is", []), (" seven", []), (" [1, 2]", [1, 2]), (".", [])],
        ),
        (["a [1][12]"], [("a", []), (" [1]", [1]), ("[12]", [12])]),
        (["list[int] and [x]"], [("list[int] and [x]", [])]),
        (["open [1"], [("open", []), (" [1", [])]),
        ([], []),
    ],
)
def test_citations_are_found_across_pieces(pieces: list[str], expected: list[tuple[str, list[int]]]) -> None:
    assert list(find_citations(iter(pieces))) == expected


@given(PIECES)
def test_however_the_text_is_cut_the_same_comes_out(pieces: list[str]) -> None:
    def whole(parts: list[str]) -> tuple[str, list[int]]:
        found = list(find_citations(iter(parts)))
        return "".join(text for text, _ in found), [number for _, numbers in found for number in numbers]

    assert whole(pieces) == whole(["".join(pieces)])
    assert whole(pieces)[0] == "".join(pieces).rstrip()


def test_numbers_that_name_no_source_are_taken_out_and_kept_apart() -> None:
    check = CitationCheck(2)
    text = "".join(check(iter(["At seven [ 1 ", "]. Or", " eight [7], nine [2,9,2]. [0]"])))
    assert text == "At seven [1]. Or eight, nine [2]."
    assert (check.cited, check.removed) == ([1, 2, 2], [7, 9, 0])


def test_the_first_piece_begins_with_a_word() -> None:
    check = CitationCheck(1)
    assert list(check(iter([" [3] ", "\n", " At", " seven"]))) == ["At", " seven"]


@given(PIECES, st.integers(0, 3))
def test_what_is_left_cites_only_sources(pieces: list[str], sources: int) -> None:
    check = CitationCheck(sources)
    checked = list(check(iter(pieces)))
    text = "".join(checked)
    assert all(checked)
    assert text == text.lstrip()
    assert sorted({*check.cited, *check.removed}) == sorted(
        # What holds a number of three digits cites nothing: it is a year or the like.
        {number for _, found in find_citations(iter(pieces)) if max(found, default=0) < 100 for number in found}
    )
    assert all(1 <= number <= sources for number in check.cited)
    assert not any(1 <= number <= sources for number in check.removed)
    plain = re.compile(r"[^ab]")
    assert plain.sub("", text) == plain.sub("", "".join(pieces)), "no word is lost"


def test_an_uncited_answer_is_traced_to_the_source_that_says_it() -> None:
    sources = [passage("The boat leaves at seven."), passage("Leave is 49 weeks at full pay."), passage("")]
    assert most_similar_source("You get 49 weeks of leave.", sources) == 2
    assert most_similar_source("Seven weeks.", sources) == 1, "the first of equals"
    assert most_similar_source("Nobody knows.", sources) is None
