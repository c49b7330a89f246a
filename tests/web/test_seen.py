"""A person with limits gets the same from a library with hidden documents as from one that never had any."""

from pathlib import Path

import pytest

from local_rag.asking import Filters, PersonRole
from local_rag.holdings.answering import Answering
from local_rag.holdings.comparing import Changes
from local_rag.holdings.documents import Documents
from local_rag.holdings.held_tables import Tables
from local_rag.holdings.judging import Feedback
from local_rag.holdings.retrieval import Retrieval
from local_rag.library import Library
from local_rag.view import View
from tests.fakes import EMBEDS_QUICKLY
from tests.support.library_doors import DOORS, NOT_TOLD
from tests.support.two_libraries import differences

PARTS = {
    "documents": Documents,
    "tables": Tables,
    "changes": Changes,
    "feedback": Feedback,
    "retrieval": Retrieval,
    "answering": Answering,
}


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
    public = _public(View) | {f"{part}.{name}" for part, of in PARTS.items() for name in _public(of)}
    assert public == {*DOORS, *NOT_TOLD}


def test_a_person_s_view_has_no_other_parts(tmp_path: Path) -> None:
    with Library(tmp_path, parts=EMBEDS_QUICKLY) as library:
        view = library.seen_by(Filters(within=("public/**",)))
    assert {name: type(part) for name, part in vars(view).items() if not name.startswith("_")} == PARTS


def _public(of: type) -> set[str]:
    return {name for name in dir(of) if not name.startswith("_")}
