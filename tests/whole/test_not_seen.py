"""What could not be looked at is not gone, and what was not read is said and read again."""

import errno
import json
import os
import subprocess
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local_rag import Library
from local_rag.catalogue.library_status import Status
from local_rag.document_records import Skipped
from local_rag.errors import LibraryError
from local_rag.indexing.indexer import IndexReport
from local_rag.library import Parts
from local_rag.reading.isolate import ReadFile
from local_rag.reading.split import Splitting
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY, FakeEmbedder, FaultyDisk, ReadsHere

LONG_AGO = 1_700_000_000  # seconds: older than any tick of a clock


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two folders of two files each, in the working directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("x/a.md", "x/b.md", "y/a.md", "y/b.md"):
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Note\n\nThe zebra of {name}.\n")
    return tmp_path / "docs"


def index(*paths: Path, parts: Parts = EMBEDS_QUICKLY) -> IndexReport:
    with Library("lib", parts=parts, profile="tiny", context="headings") as library:
        return library.index(paths)


def status(parts: Parts = EMBEDS_QUICKLY) -> Status:
    with Library("lib", parts=parts) as library:
        return library.status()


def texts(question: str = "zebra price") -> str:
    with Library("lib", parts=EMBEDS_QUICKLY) as library:
        return " ".join(passage.text for passage in library.search(question, top=50))


def faulty(*broken: Path, error: int = errno.EIO) -> Parts:
    return replace(EMBEDS_QUICKLY, disk=FaultyDisk(*broken, error=error))


@pytest.mark.parametrize("error", [errno.EIO, errno.EACCES, errno.ESTALE, errno.EMFILE])
def test_what_lies_below_a_folder_that_cannot_be_listed_stays(docs: Path, error: int) -> None:
    index(docs)
    (docs / "y" / "a.md").unlink()
    parts = faulty(docs / "x", error=error)
    now = status(parts)
    assert [(one.path, one.reason) for one in now.unreadable] == [
        (docs / "x", f"cannot be opened ({os.strerror(error)})")
    ]
    assert [one.examples for one in now.stale] == [((docs / "y" / "a.md"),)]
    report = index(parts=parts)
    assert report.removed_paths == [docs / "y" / "a.md"], "of the other folder the system says so"
    assert [(one.path, one.kept) for one in report.skipped] == [(docs / "x", True)]
    assert "x/a.md" in texts()
    assert index().unchanged == 3


def test_a_file_that_cannot_be_looked_at_stays_and_one_that_vanishes_meanwhile_goes(docs: Path) -> None:
    index(docs)
    report = index(parts=faulty(docs / "x" / "a.md"))
    assert (report.removed, [(one.path, one.kept) for one in report.skipped]) == (0, [(docs / "x" / "a.md", True)])
    report = index(parts=faulty(docs / "x" / "a.md", error=errno.ENOENT))
    assert (report.removed_paths, report.skipped) == ([docs / "x" / "a.md"], [])


def test_status_lists_what_index_lists_as_not_read(docs: Path) -> None:
    (docs / "broken.txt").symlink_to("nowhere")
    (docs / "again.md").symlink_to("x/a.md")
    (docs / "damaged.docx").write_text("no archive")
    (docs / "empty.txt").write_text("")
    (docs / "song.mp3").write_bytes(b"ID3")
    index(docs)
    (docs / "x" / "a.md").write_text("")  # which held something, unlike the others
    report = index()
    listed = {(one.path, one.reason) for one in report.skipped[: report.to_look_at]}
    assert {path.name for path, _ in listed} == {"broken.txt", "again.md", "damaged.docx", "a.md"}
    assert {(one.path, one.reason) for one in status().unreadable} == listed


def test_a_root_that_cannot_be_listed_keeps_everything(docs: Path) -> None:
    index(docs)
    report = index(parts=faulty(docs))
    assert (report.removed, [(one.path, one.kept) for one in report.skipped]) == (0, [(docs, True)])


def test_a_folder_that_another_user_may_not_list_is_told(docs: Path, run: Run) -> None:
    index(docs)
    parts = faulty(docs / "x", error=errno.EACCES)
    shown = run("status", "--library", "lib", parts=parts).stdout
    assert "Not read: docs/x: cannot be opened (Permission denied)." in shown
    assert "Up to date" not in shown
    listed = json.loads(run("status", "--library", "lib", "--json", parts=parts).stdout)["unreadable"]
    assert listed == [{"path": str(docs / "x"), "reason": "cannot be opened (Permission denied)"}]


def test_a_new_folder_that_cannot_be_listed_is_told_too(docs: Path) -> None:
    index(docs / "y")
    report = index(docs, parts=faulty(docs / "x"))
    assert [(one.path, one.kept) for one in report.skipped] == [(docs / "x", False)], "nothing of it is kept"


def test_rules_that_cannot_be_read_hide_the_folder_rather_than_show_what_they_hide(docs: Path) -> None:
    (docs / "x" / ".gitignore").write_text("b.md\n")
    index(docs)
    (docs / "x" / ".gitignore").unlink()
    (docs / "x" / ".gitignore").mkdir()
    assert index().added == 1, "a folder has no rules"


def test_a_file_that_grows_too_large_keeps_its_last_good_version(docs: Path, run: Run) -> None:
    index(docs)
    os.truncate(docs / "x" / "a.md", 51 * 2**20)
    assert [one.reason for one in status().unreadable] == ["51.0 MiB, larger than the limit of 50.0 MiB"]
    assert status().stale == (), "nobody is told to remove it"
    report = index()
    assert (report.removed, [(one.path.name, one.kept) for one in report.skipped]) == (0, [("a.md", True)])
    assert "x/a.md" in texts()
    assert "its last good version is kept" in run("index", "--library", "lib").stdout
    (docs / "x" / "a.md").unlink()
    assert index().removed == 1


def notebook(text: str) -> str:
    cell = {"cell_type": "markdown", "metadata": {}, "source": ["# Note\n", f"{text}\n"]}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def when_read(name: str, then: Callable[[], Any]) -> Parts:
    """Return parts that call a function as soon as a file of this name was read."""

    class Reads(ReadsHere):
        def read(self, paths: Iterable[Path], splitting: Splitting) -> Generator[tuple[Path, ReadFile | Skipped]]:
            for path, result in super().read(paths, splitting):
                yield path, result
                if path.name == name:
                    then()

    return Parts(load_embedder=FakeEmbedder, make_workers=Reads)


def age(path: Path) -> None:
    os.utime(path, (LONG_AGO, LONG_AGO))


def test_a_file_whose_copy_ends_while_others_are_read_is_read_by_the_next_run(docs: Path) -> None:
    path = docs / "x" / "half.ipynb"
    path.write_text(notebook("the quagga")[:60])
    report = index(docs, parts=when_read("half.ipynb", lambda: path.write_text(notebook("the quagga"))))
    assert [one.path for one in report.skipped] == [path]
    assert [one.examples for one in status().stale] == [(path,)]
    assert index().added == 1
    assert "quagga" in texts("quagga")


def test_a_document_read_amid_a_save_is_read_again(docs: Path) -> None:
    path = docs / "x" / "price.ipynb"
    path.write_text(notebook("the price is 100"))
    index(docs)
    path.write_text(notebook("the price is 999")[:70])
    report = index(parts=when_read("price.ipynb", lambda: path.write_text(notebook("the price is 999"))))
    assert [(one.path, one.kept) for one in report.skipped] == [(path, True)]
    assert "100" in texts("price")
    assert status().stale
    assert index().changed == 1
    assert "999" in texts("price")


def test_a_broken_file_that_is_repaired_while_a_run_passes_over_it_is_read_by_the_next(docs: Path) -> None:
    path = docs / "x" / "broken.ipynb"
    path.write_text("{broken")
    index(docs)
    (docs / "y" / "new.md").write_text("# New\n\nAn okapi.\n")
    index(parts=when_read("new.md", lambda: path.write_text(notebook("the quagga"))))
    assert index().added == 1


def test_a_text_that_is_saved_while_it_is_read_is_read_again(docs: Path) -> None:
    path = docs / "x" / "a.md"
    parts = when_read("a.md", lambda: path.write_text("# Note\n\nThe zebra of the 2nd.\n"))
    index(docs, parts=parts)
    assert index().changed == 1
    assert "2nd" in texts()


def test_another_file_of_the_same_size_and_time_is_seen(docs: Path) -> None:
    path, other = docs / "x" / "a.md", docs.parent / "other"
    for one, price in ((path, 100), (other, 999)):
        one.write_text(f"# Note\n\nThe price is {price}.\n")
        age(one)
    index(docs)
    index()  # by now its stamp is that of an old file, if it is so on this machine
    other.replace(path)
    assert [one.examples for one in status().stale] == [(path,)]
    assert index().changed == 1
    assert "999" in texts("price")


def test_two_files_of_one_size_and_time_that_are_swapped_are_read_again(docs: Path) -> None:
    first, second, third = docs / "x" / "a.md", docs / "x" / "b.md", docs / "x" / "c"
    for one, price in ((first, 100), (second, 999)):
        one.write_text(f"# Note\n\nThe price is {price}.\n")
        age(one)
    index(docs)
    first.rename(third)
    second.rename(first)
    third.rename(second)
    assert index().changed == 2


@pytest.mark.parametrize("when", [9_300_000_000, 10_000_000_000, -9_000_000_000])
def test_a_file_of_a_strange_time_ends_no_run(docs: Path, when: int) -> None:
    try:
        os.utime(docs / "x" / "a.md", (when, when))
    except OSError:
        pytest.skip("this file system has no such times")
    assert index(docs).added == 4
    assert index().unchanged == 4
    with Library("lib", parts=EMBEDS_QUICKLY) as library:
        assert len(library.documents.listed()) == 4


@pytest.fixture
def stick(docs: Path) -> Iterator[Path]:
    """A drive mounted below the root."""
    path = docs / "stick"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(path)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted: {done.stderr.strip()}")
    for name in ("a.md", "deep/b.md"):
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text(f"# Stick\n\nThe okapi of {name}.\n")
    yield path
    subprocess.run(["umount", "-q", path], check=False)


@pytest.mark.parametrize("left", ["an empty folder", "nothing"])
def test_a_drive_that_is_unmounted_keeps_its_documents_if_it_is_named(docs: Path, stick: Path, left: str) -> None:
    index(docs)
    subprocess.run(["umount", stick], check=True)
    if left == "nothing":
        stick.rmdir()
    for _ in range(2):
        report = index(stick)
        assert (report.removed_paths, report.unreachable) == ([], [stick])
    assert "okapi of deep" in texts("okapi")


@pytest.mark.parametrize("left", ["an empty folder", "nothing", "other files"])
def test_a_drive_below_a_root_that_is_unmounted_keeps_its_documents(docs: Path, stick: Path, left: str) -> None:
    index(docs)
    subprocess.run(["umount", stick], check=True)
    if left == "nothing":
        stick.rmdir()
    elif left == "other files":
        (stick / "other.md").write_text("# Other\n\nA gnu.\n")
    (docs / "x" / "a.md").unlink()
    assert status().unreachable == (str(stick),)
    report = index()
    assert (report.removed_paths, report.unreachable) == ([docs / "x" / "a.md"], [stick])
    assert "okapi of deep" in texts("okapi")
    with Library("lib", parts=EMBEDS_QUICKLY) as library:
        assert len(library.remove([stick]).documents) == 2


def test_a_drive_below_a_root_whose_files_lie_in_a_folder_now_is_one_no_more(docs: Path, stick: Path) -> None:
    index(docs)
    subprocess.run(["umount", stick], check=True)
    (stick / "a.md").write_text("# Stick\n\nThe okapi of a.md.\n")
    report = index()
    assert (report.removed_paths, report.unreachable) == ([stick / "deep" / "b.md"], [])
    (stick / "a.md").unlink()
    assert index().removed == 1, "it is a folder like any other"


def test_a_mistyped_path_into_the_library_does_no_harm(docs: Path) -> None:
    index(docs)
    with pytest.raises(LibraryError, match="folder of the library itself"):
        index(Path("lib/segments"))
    assert index().unchanged == 4
    with Library("lib", parts=EMBEDS_QUICKLY) as library:
        assert [one.path for one in library.upkeep.roots()] == [docs]
        with pytest.raises(LibraryError, match="folder of the library itself"):
            library.upkeep.move_root(docs, "lib/segments")


def test_a_file_that_was_named_is_indexed_again_when_it_is_back(docs: Path) -> None:
    path = docs / "x" / "a.md"
    index(path)
    away = path.rename(docs.parent / "away")
    assert index().removed_paths == [path]
    assert index().removed == 0
    away.rename(path)
    assert index().added == 1
