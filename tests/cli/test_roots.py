"""`local-rag roots`: what is indexed, and where it lies now; nothing is computed again."""

import json
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from local_rag import Library
from local_rag.errors import LibraryError
from local_rag.library import Parts
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY


def never(*_arguments: object, **_options: object) -> NoReturn:
    raise AssertionError("something was computed again")


@pytest.fixture
def indexed(documents: Path, run: Run) -> Path:
    arguments = ("documents", "documents/boat.txt", "--profile", "tiny", "--context", "headings")
    assert run("index", *arguments).exit_code == 0
    return documents


def test_roots_are_listed_with_their_documents(indexed: Path, run: Run) -> None:
    report = json.loads(run("roots", "--json").stdout)
    assert [(root["path"], root["documents"], root["reachable"]) for root in report] == [
        (str(indexed), 2, True),
        (str(indexed / "boat.txt"), 1, True),
    ]
    assert "documents/boat.txt" in run("roots").stdout
    indexed.rename(indexed.with_name("elsewhere"))
    assert run("roots").stdout.count("not reachable") == 2


@pytest.mark.slow
def test_a_folder_that_moved_is_found_at_its_new_place_and_nothing_is_computed_again(indexed: Path, run: Run) -> None:
    before = json.loads(run("search", "boat", "--json").stdout)["passages"]
    new = indexed.with_name("else where")
    shutil.move(indexed, new)
    result = run("roots", "move", "documents", str(new))
    assert result.exit_code == 0, result.output
    assert "3 documents of documents are now in else where." in result.stdout
    after = json.loads(run("search", "boat", "--json").stdout)["passages"]
    assert [one["path"] for one in after] == [one["path"].replace("documents", "else where") for one in before]
    assert [one["text"] for one in after] == [one["text"] for one in before]
    found = json.loads(run("search", "boat", "--json", "--in", "norway/**").stdout)["passages"]
    assert {one["path"] for one in found} == {"else where/norway/leave.md"}
    with Library(".local-rag", parts=Parts(load_embedder=never, open_engine=never)) as library:
        report = library.index()
    assert (report.unchanged, report.added, report.changed, report.moved, report.removed) == (3, 0, 0, 0, 0)
    assert not report.published


@pytest.mark.slow
def test_what_was_removed_or_holds_a_root_moves_as_well(indexed: Path, run: Run) -> None:
    assert run("remove", "documents/norway").exit_code == 0
    parent = indexed.parent / "disk"
    parent.mkdir()
    shutil.move(indexed, parent / "documents")
    with Library(".local-rag", parts=EMBEDS_QUICKLY) as library:
        with pytest.raises(LibraryError, match="is not an indexed folder"):
            library.upkeep.move_root(indexed / "norway", parent)
        assert library.upkeep.move_root(indexed, parent / "documents") == 2
        assert library.index().unchanged == 2, "what was removed stays out"
        assert [root.path for root in library.upkeep.roots()] == [
            parent / "documents",
            parent / "documents" / "boat.txt",
        ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nowhere", "other", "is not an indexed folder"),
        ("documents", "missing", "does not exist"),
        ("documents", "documents/norway", "contains the other"),
        ("documents", "other", "already holds documents of"),
    ],
)
def test_what_cannot_be_a_move(old: str, new: str, message: str, indexed: Path, run: Run) -> None:
    other = indexed.with_name("other")
    other.mkdir()
    (other / "a.txt").write_text("Another boat.")
    assert run("index", "other").exit_code == 0
    before = run("roots").stdout
    result = run("roots", "move", old, new)
    assert result.exit_code == 1
    assert message in result.stderr
    assert run("roots").stdout == before


def test_a_path_that_only_begins_alike_stays(documents: Path, run: Run) -> None:
    beside = documents.with_name("documents_2")
    beside.mkdir()
    (beside / "b.txt").write_text("A second boat.")
    assert run("index", "documents", "documents_2", "--profile", "tiny", "--context", "headings").exit_code == 0
    shutil.move(documents, documents.with_name("new"))
    assert run("roots", "move", "documents", "new").exit_code == 0
    assert [Path(root["path"]).name for root in json.loads(run("roots", "--json").stdout)] == ["documents_2", "new"]
