"""A library made by version 0.1.0, at commit 866d648, with contexts and vectors by the tiny models, is still good."""

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from local_rag import Library
from local_rag.library import Parts

MADE = Path(__file__).parents[1] / "data" / "library-0.1.0"


@pytest.fixture
def before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the library and its documents, at another place than the one they were indexed at."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(MADE, tmp_path, dirs_exist_ok=True)
    with closing(sqlite3.connect("library/library.sqlite3")) as connection:
        for table in ("roots", "documents"):
            connection.execute(f"UPDATE {table} SET path = ? || path", (str(tmp_path),))
        connection.commit()
    return tmp_path


def never(*_arguments: object, **_options: object) -> NoReturn:
    raise AssertionError("something was computed again")


def test_it_is_opened_and_only_summaries_are_written(before: Path) -> None:
    with Library("library", parts=Parts(load_embedder=never, open_engine=never)) as library:
        assert library.status().chunks == 3
    with Library("library") as library:
        assert library.settings.profile == "tiny"
        reasons = [stale.reason for stale in library.status().stale]
        assert reasons == [
            "changed: how this version of local-rag builds its indexes",
            "3 contexts are still to be written",
        ]
        # Read again, as the reader is a better one: what took long is found again by what it was made of.
        report = library.index()
        assert library.status().stale == ()
        again = library.index()
    assert (report.changed, report.chunks, report.published) == (3, 3, True)
    assert sum(report.contexts.values()) == 3, "one of each document: those of the chunks are found again"
    assert report.skipped == []
    assert (again.unchanged, again.published) == (3, False)


def test_it_is_searched(before: Path) -> None:
    with Library("library") as library:
        (passage,) = library.search("When does the ship sail?", top=1)
        library.index()
        (again,) = library.search("When does the ship sail?", top=1)
    assert replace(again, chunk_id=passage.chunk_id, hits=passage.hits) == passage, "with the index in segments now"
    for one, other in zip(again.hits, passage.hits, strict=True):
        assert (one.list_name, one.rank) == (other.list_name, other.rank)
        assert one.score == pytest.approx(other.score, rel=1e-5)
    assert passage.path == str(before / "documents" / "boat.txt")
    assert passage.context_kind in {"llm", "headings"}


def test_a_changed_document_costs_only_its_own(before: Path) -> None:
    (before / "documents" / "boat.txt").write_text("The zeppelin leaves at noon.")
    with Library("library") as library:
        report = library.index()
        assert report.changed == 3
        assert sum(report.contexts.values()) == 1 + 3, "its own, and a summary of each document"
        assert library.status().cached["cached_vectors"] <= 3 + 3 + 2 * 3, (
            "of what stands for a document, too, without its summary and with"
        )
