"""Folders that come and go: what is out of reach stays, what is gone goes, and `index` names it."""

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.errors import LibraryError
from local_rag.indexing.indexer import IndexReport
from local_rag.store.database import library_lock
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY, IgnoresCase


def index(*paths: Path) -> IndexReport:
    with Library("lib", parts=EMBEDS_QUICKLY, profile="tiny", context="headings") as library:
        return library.index(paths)


def names() -> set[str]:
    """Return the names of all documents that a search can find."""
    with Library("lib", parts=EMBEDS_QUICKLY) as library:
        return {Path(passage.path).name for passage in library.search("the boat leave parents", top=200)}


ALL = {"boat.txt", "ireland.md", "leave.md"}


@pytest.mark.parametrize("lost", ["missing", "empty"])
def test_an_unmounted_root_keeps_its_documents_and_is_named(documents: Path, lost: str, run: Run) -> None:
    index(documents)
    away = documents.rename(documents.with_name("away"))
    if lost == "empty":
        documents.mkdir()
    report = index()
    assert (report.removed, report.unreachable, report.removed_paths) == (0, [documents], [])
    assert names() == ALL
    assert "documents is not reachable" in run("index", "--library", "lib").stdout
    status = run("status", "--library", "lib")
    assert "not reachable" in status.stdout
    assert json.loads(run("status", "--library", "lib", "--json").stdout)["unreachable"] == [str(documents)]
    assert json.loads(run("index", "--library", "lib", "--json").stdout)["unreachable"] == [str(documents)]
    if lost == "empty":
        documents.rmdir()
    away.rename(documents)
    assert (index().unchanged, index().unreachable) == (3, [])


def test_status_advises_no_index_while_one_runs(documents: Path, run: Run) -> None:
    index(documents)
    (documents / "new.md").write_text("# New\n")
    assert "run `local-rag index`" in run("status", "--library", "lib").stdout
    with library_lock(Path("lib")):  # as another process does that indexes
        said = run("status", "--library", "lib").stdout
    assert "new.md" in said
    assert "Another command is changing this library now" in said
    assert "run `local-rag index`" not in said


def test_what_is_out_of_reach_can_be_removed(documents: Path, run: Run) -> None:
    index(documents)
    shutil.rmtree(documents)
    assert run("remove", documents, "--library", "lib").exit_code == 0
    assert names() == set()


def test_a_root_on_another_disk_is_reachable_only_with_its_documents(documents: Path) -> None:
    index(documents)
    with Library("lib", parts=EMBEDS_QUICKLY).upkeep.writing() as (store, _):
        store.connection.execute("UPDATE roots SET device = 999")
    assert index().unreachable == [], "the device's number has changed, but the documents are there"
    with Library("lib", parts=EMBEDS_QUICKLY).upkeep.writing() as (store, _):
        store.connection.execute("UPDATE roots SET device = 999")
    shutil.rmtree(documents)
    documents.mkdir()
    (documents / "other.md").write_text("# Another disk\n\nNothing of before.\n")
    report = index()
    assert (report.unreachable, report.removed) == ([documents], 0)
    assert names() >= ALL


def test_a_deleted_file_that_was_named_goes_with_its_folder(documents: Path, tmp_path: Path) -> None:
    index(documents / "boat.txt", documents / "ireland.md")
    (documents / "boat.txt").unlink()
    report = index()
    assert (report.removed_paths, report.unreachable) == ([documents / "boat.txt"], [])
    assert index().removed == 0, "the run after that goes on as well"
    assert names() == {"ireland.md"}
    documents.rename(tmp_path / "away")
    report = index()
    assert (report.removed, report.unreachable) == (0, [documents / "ireland.md"])
    assert names() == {"ireland.md"}


def test_a_new_folder_next_to_an_unreachable_one_is_read(documents: Path, tmp_path: Path) -> None:
    index(documents)
    documents.rename(tmp_path / "away")
    other = tmp_path / "other"
    other.mkdir()
    (other / "kites.md").write_text("# Kites\n\nThe boat has kites.\n")
    assert index(other).added == 1
    assert names() == {*ALL, "kites.md"}


def test_a_copy_of_what_is_out_of_reach_takes_its_place(documents: Path, tmp_path: Path) -> None:
    index(documents)
    documents.rename(tmp_path / "moved")
    report = index(tmp_path / "moved")
    assert (report.moved, report.added, report.removed) == (3, 0, 0)
    assert names() == ALL
    with Library("lib", parts=EMBEDS_QUICKLY) as library:
        assert library.status().documents == 3


def test_roots_that_overlap_keep_their_documents(documents: Path) -> None:
    hidden = documents / ".notes"
    hidden.mkdir()
    (hidden / "secret.md").write_text("# Secret\n\nThe boat is painted.\n")
    assert index(documents, hidden).added == 4
    assert index(documents).removed == 0
    assert names() == {*ALL, "secret.md"}
    (hidden / "secret.md").unlink()
    (hidden / "other.md").write_text("# Other\n\nThe boat.\n")
    assert index(documents).removed_paths == [hidden / "secret.md"]
    assert names() == {*ALL, "other.md"}


def test_a_deleted_folder_of_a_folder_that_is_there_is_gone(documents: Path) -> None:
    index(documents)
    shutil.rmtree(documents / "norway")
    assert index(documents / "norway").removed_paths == [documents / "norway" / "leave.md"]
    assert (index().unreachable, names()) == ([], ALL - {"leave.md"})


def test_removed_paths_are_named(documents: Path, run: Run) -> None:
    index(documents)
    (documents / "boat.txt").unlink()
    result = run("index", "--library", "lib", "--json")
    assert json.loads(result.stdout)["removed_paths"] == [str(documents / "boat.txt")]
    (documents / "ireland.md").unlink()
    assert "Removed (1):\n  documents/ireland.md\n" in run("index", "--library", "lib").stdout


def test_a_moved_file_that_is_also_copied_is_counted_right(documents: Path) -> None:
    index(documents)
    text = (documents / "boat.txt").read_text()
    (documents / "boat.txt").unlink()
    for name in ("one.txt", "two.txt"):
        (documents / name).write_text(text)
    report = index()
    assert (report.moved, report.added, report.removed) == (1, 1, 0)


@pytest.mark.skipif(os.geteuid() == 0 and not Path("/proc").exists(), reason="root reads everything")
def test_a_file_that_cannot_be_read_keeps_its_last_good_version(documents: Path, run: Run) -> None:
    index(documents)
    (documents / "boat.txt").write_bytes(bytes(range(256)))
    report = index()
    (skipped,) = report.skipped
    assert (skipped.path.name, skipped.kept, skipped.lasting, report.removed) == ("boat.txt", True, True, 0)
    assert names() == ALL
    assert "its last good version is kept" in run("index", "--library", "lib").stdout
    assert run("status", "--library", "lib").stdout.count("Stale") == 0, "it is no news"
    (documents / "boat.txt").write_text("The zeppelin.")
    assert index().changed == 1


def test_what_cannot_be_read_is_not_tried_again_until_it_changes(documents: Path) -> None:
    (documents / "broken.pdf").write_bytes(b"%PDF-1.4 nothing more")
    time.sleep(0.1)  # so that another change would bear another time
    first = index(documents)
    tried = []
    with Library("lib", parts=EMBEDS_QUICKLY) as library:
        report = library.index(progress=lambda progress: tried.append(progress.stage))
    assert report.skipped == first.skipped
    assert "read" not in tried


def test_a_file_that_cannot_be_opened_this_time_is_tried_again(documents: Path) -> None:
    index(documents)
    path = documents / "boat.txt"
    path.unlink()
    os.mkfifo(path)
    report = index()
    assert [(item.kept, item.lasting) for item in report.skipped] == [(False, False)]
    path.unlink()
    path.write_text("The boat is back.\n")
    assert index().added + index().changed <= 1
    assert "boat.txt" in names()


def test_the_library_itself_is_not_indexed(documents: Path) -> None:
    index(documents)
    with pytest.raises(LibraryError, match="folder of the library itself"):
        index(Path("lib"))


def test_a_folder_of_documents_is_no_library(documents: Path, run: Run) -> None:
    for command in (("index", documents), ("clean",), ("repair",)):
        result = run(*command, "--library", documents)
        assert result.exit_code == 1
        assert len(result.stderr.strip().splitlines()) == 1
    assert {path.name for path in documents.iterdir()} == {"boat.txt", "ireland.md", "norway"}


def test_a_disk_that_ignores_case_holds_each_document_once(documents: Path) -> None:
    def library() -> Library:
        parts = replace(EMBEDS_QUICKLY, disk=IgnoresCase())
        return Library("lib", parts=parts, profile="tiny", context="headings")

    other = documents.with_name("DOCUMENTS")
    with library() as opened:
        assert opened.index([documents]).added == 3
        report = opened.index([other, other / "BOAT.txt"])
        assert (report.added, report.unchanged) == (0, 3)
        assert {root.path for root in opened.upkeep.roots()} == {documents, documents / "boat.txt"}
        opened.remove([other / "Boat.TXT"])
    assert names() == ALL - {"boat.txt"}
