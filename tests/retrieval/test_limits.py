"""The limits of a plan: a time or a folder counts, and what is passed over is said."""

import os
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.answer_records import Found
from local_rag.plan_records import Plan
from local_rag.retrieval.find_question import find_question
from tests.fakes import EMBEDS_QUICKLY

TEXTS = {
    "Legal/nda-acme.md": "# NDA Acme\n\nActs are kept secret by Acme.\n",
    "Legal/nda-birch.md": "# NDA Birch\n\nActs are kept secret by Birch.\n",
    "Old things/nda-acme-old.md": "# NDA Acme before\n\nSecrets of Acme.\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("limits")
    for name, text in TEXTS.items():
        path = root / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        at = 1_672_600_000 if "old" in name else 1_717_200_000  # the beginning of 2023, and June 2024
        os.utime(path, (at, at))
    with Library(root / "lib", parts=EMBEDS_QUICKLY, profile="tiny", context="headings") as library:
        library.index([root / "docs"])
    return root / "lib"


def found(folder: Path, **plan: object) -> Found:
    asked = find_question(Plan("documents", operation="list", **plan), "?")  # type: ignore[arg-type]
    with Library(folder, parts=EMBEDS_QUICKLY) as library:
        return library.find("?", exact=asked)


def names(given: Found) -> set[str]:
    return {Path(one.passage.path).name for one in given.places}


def test_a_time_and_a_folder_limit_the_documents(folder: Path) -> None:
    acme = {"subject": "Acme", "match": "words"}
    assert names(found(folder, **acme)) == {"nda-acme.md", "nda-acme-old.md"}
    assert names(found(folder, **acme, limits=("from 2024",))) == {"nda-acme.md"}
    assert names(found(folder, **acme, limits=("in the folder Old things",))) == {"nda-acme-old.md"}
    assert names(found(folder, limits=("in the folder Legal",))) == {"nda-acme.md", "nda-birch.md"}
    assert names(found(folder, sort="NDAs", limits=("in January 2023",))) == {"nda-acme-old.md"}


@pytest.mark.parametrize(
    "limit", ["signed by Ada", "before 2024", "from last autumn", "from 2023 and 2024", "Q3 2024", "from 31 April 2024"]
)
def test_what_is_passed_over_is_said(folder: Path, limit: str) -> None:
    given = found(folder, subject="Acme", match="words", limits=(limit,))
    assert names(given) == {"nda-acme.md", "nda-acme-old.md"}
    assert f'"{limit}" was passed over: it names no folder and no time that documents have.' in given.notes
    assert not given.complete


def test_the_documents_without_a_meaning_are_found(folder: Path) -> None:
    given = found(folder, subject="Birch", match="words", negated=True)
    assert names(given) == {"nda-acme.md", "nda-acme-old.md"}
