"""A person with limits gets the same from a library with hidden documents as from one that never had any."""

from pathlib import Path

import pytest

from tests.support.two_libraries import differences


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_hidden_documents_change_no_byte_of_any_reply(tmp_path: Path, seed: int) -> None:
    assert differences(tmp_path, documents=16, count=80, seed=seed) == []
