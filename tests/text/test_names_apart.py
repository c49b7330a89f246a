"""No two names are the same, and what only one is called it keeps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.text.names_apart import names_apart


@pytest.mark.parametrize(
    ("names", "apart"),
    [
        (["Load", "Load (2)", "Load"], ["Load", "Load (2)", "Load (3)"]),
        (["a", "A", "a"], ["a", "A (2)", "a (3)"]),
        (["a", "b"], ["a", "b"]),
        ([], []),
    ],
)
def test_a_name_that_is_taken_gets_a_number(names: list[str], apart: list[str]) -> None:
    assert names_apart(names) == apart


@given(st.lists(st.sampled_from(["a", "A", "a (2)", "a (3)", "a (2) (2)", "ß", "SS", "", "x"])))
def test_names_are_different_whatever_they_are(names: list[str]) -> None:
    apart = names_apart(names)
    assert len({name.casefold() for name in apart}) == len(apart) == len(names)
    for name, own in zip(names, apart, strict=True):
        assert own.startswith(name)
        assert own == name or sum(one.casefold() == name.casefold() for one in names) > 1
