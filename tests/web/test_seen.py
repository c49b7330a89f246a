"""A person with limits gets the same from a library with hidden documents as from one that never had any."""

from pathlib import Path

import pytest

from local_rag.asking import PersonRole
from local_rag.view import View
from tests.support.library_doors import DOORS, NOT_TOLD
from tests.support.two_libraries import differences


@pytest.mark.parametrize(
    ("seed", "role"),
    [
        (1, "reader"),
        *(pytest.param(seed, role, marks=pytest.mark.slow) for seed, role in ((2, "reader"), (1, "editor"))),
    ],
)
def test_hidden_documents_change_no_byte_of_any_reply(tmp_path: Path, seed: int, role: PersonRole) -> None:
    assert differences(tmp_path, documents=16, count=80, seed=seed, role=role) == []


def test_each_method_of_a_view_is_compared_or_tells_nothing() -> None:
    public = {name for name in dir(View) if not name.startswith("_")}
    assert public == {*DOORS, *NOT_TOLD}
