"""On a full disk a library is searched and asked, an error says that it is full, and `clean` makes room."""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.errors import LibraryError
from local_rag.library import Parts
from local_rag.store.database import Store
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY, FakeEmbedder, FakeGenerator, generating
from tests.whole.crash.harness import SmallDisk, small_disk


def opened(folder: Path) -> Library:
    return Library(folder, parts=EMBEDS_QUICKLY, profile="tiny", context="headings")


@pytest.fixture
def disk(documents: Path, tmp_path: Path) -> Iterator[SmallDisk]:
    """A small disk with a library of two generations."""
    with small_disk(tmp_path / "disk", "16m") as disk:
        with opened(disk.path / "lib") as library:
            library.index([documents])
            (documents / "boat.txt").write_text("The boat leaves the harbour at eight.\n")
            library.index()
        yield disk


def fill(disk: SmallDisk) -> Path:
    """Use up the last byte of a disk."""
    path = disk.path / "filling"
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    return path


def test_it_is_searched_and_asked(disk: SmallDisk) -> None:
    fill(disk)
    parts = Parts(load_embedder=FakeEmbedder, open_engine=generating(FakeGenerator(lambda _prompt: "At eight.")))
    with Library(disk.path / "lib", parts=parts) as library:
        assert "eight" in library.search("When does the boat leave the harbour?")[0].text
        assert library.status().documents == 3
        assert library.ask("When does the boat leave the harbour?").text


def test_what_needs_room_says_that_the_disk_is_full(disk: SmallDisk, documents: Path) -> None:
    fill(disk)
    (documents / "new.md").write_text("# New\n")
    with opened(disk.path / "lib") as library, pytest.raises(LibraryError, match="its disk is full: free some space"):
        library.index()


def test_the_commands_that_read_go_on_and_those_that_keep_say_that_it_is_full(
    disk: SmallDisk, documents: Path, run: Run
) -> None:
    lib, parts = (
        str(disk.path / "lib"),
        replace(EMBEDS_QUICKLY, open_engine=generating(FakeGenerator(lambda _: "At eight."))),
    )
    (documents / "fees.csv").write_text("City,Fee EUR\nOslo,100\nBergen,250\n")
    for command in (["index"], ["ask", "When does the boat leave the harbour?"]):
        assert run(*command, "--library", lib, parts=parts).exit_code == 0
    filling = fill(disk)
    boat, extract = str(documents / "boat.txt"), ("extract", "--column", "Hour: When does the boat leave? (text)")
    for works in (
        ["brief", boat],
        ["diff", boat, boat],
        ["gaps"],
        ["tables"],
        ["query", "SELECT sum([Fee EUR]) FROM fees"],
    ):
        done = run(*works, "--library", lib, parts=parts)
        assert done.exit_code == 0, (works, done.output)
    output = ("--output", str(disk.path / "gaps.csv"))
    for fails in (["mark", "wrong"], [*extract], ["gaps", *output]):
        done = run(*fails, "--library", lib, parts=parts)
        assert done.exit_code == 1, (fails, done.output)
        assert "full" in done.output or "No space left" in done.output
    assert not (disk.path / "gaps.csv").exists()
    filling.unlink()
    for again in (["mark", "wrong"], [*extract], ["gaps", *output]):
        assert run(*again, "--library", lib, parts=parts).exit_code == 0


def test_clean_makes_room_first(disk: SmallDisk, documents: Path) -> None:
    before = len(list((disk.path / "lib" / "generations").iterdir()))
    (disk.path / "lib" / "library.sqlite3.damaged").write_bytes(b"x" * 2**20)
    fill(disk)
    with opened(disk.path / "lib") as library:
        assert len(library.upkeep.clean().generations) == before - 1
    with opened(disk.path / "lib") as library:
        assert library.search("harbour")


def test_a_reader_without_locks_sees_that_somebody_writes_again(disk: SmallDisk, documents: Path) -> None:
    filling = fill(disk)
    with opened(disk.path / "lib") as reader:
        assert "eight" in reader.search("boat leave harbour")[0].text
        filling.unlink()
        (documents / "boat.txt").write_text("The boat leaves the harbour at nine.\n")
        with opened(disk.path / "lib") as writer:
            writer.index()
        assert "nine" in reader.search("boat leave harbour")[0].text
        with closing(Store(disk.path / "lib")) as store:
            store.connection.execute("UPDATE documents SET title = 'Boats'")
            assert {one.title for one in reader.search("boat leave harbour", top=1)} == {"Boats"}


def test_an_error_of_a_file_elsewhere_is_not_said_of_the_library(documents: Path) -> None:
    with opened(documents.parent / "lib") as library:
        library.index([documents])

        def fail(_progress: object) -> None:
            raise OSError(5, os.strerror(5), "/models/embedder.onnx")

        (documents / "new.md").write_text("# New\n\nA new one.\n")
        with pytest.raises(LibraryError, match=r"^/models/embedder.onnx cannot be used \(Input/output error\); check"):
            library.index(progress=fail)
