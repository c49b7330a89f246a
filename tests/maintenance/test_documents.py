"""What is in a library, document by document."""

import json
import os
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.asking import Filters
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY

PAGE = """---
url: https://example.org/island
date: 2021-05-01
tags: [sea]
---
# The island

![map](map.png)

Boats leave **twice** a day. They carry mail and milk. Nobody else lives there.

## Mail

It comes at noon. {rest}

## Milk

It comes in cans. {rest}
""".format(rest="And so on. " * 60)


@pytest.fixture
def library(documents: Path) -> Library:
    (documents / "island.md").write_text(PAGE)
    library = Library(".local-rag", parts=EMBEDS_QUICKLY, profile="tiny", context="headings")
    library.index([documents])
    return library


def test_each_document_tells_what_it_is_about(library: Library, documents: Path) -> None:
    listed = {Path(one.path).name: one for one in library.documents.listed()}
    assert list(listed) == ["boat.txt", "ireland.md", "island.md", "leave.md"]
    island = listed["island.md"]
    assert island.about == "Boats leave twice a day. They carry mail and milk. Parts: Mail; Milk"
    assert (island.title, island.state, island.size) == ("The island", "indexed", len(PAGE))
    assert (island.date, island.url, island.tags) == ("2021-05-01", "https://example.org/island", ("sea",))
    boat = listed["boat.txt"]
    assert (boat.date, boat.url, boat.author, boat.tags) == (None,) * 4
    assert boat.about == "The boat leaves the harbour at seven. It carries twelve people."
    assert [one.path for one in library.documents.listed(filters=Filters(tags=("sea",)))] == [island.path]


def test_the_state_is_that_of_the_file_and_the_index(library: Library, documents: Path) -> None:
    (documents / "boat.txt").unlink()
    (documents / "ireland.md").write_text("# Ireland\n\nAnother text.\n")
    os.utime(documents / "island.md", (1, 1))  # the content is the same
    states = {Path(one.path).name: one.state for one in library.documents.listed()}
    assert states == {"boat.txt": "missing", "ireland.md": "changed", "island.md": "indexed", "leave.md": "indexed"}
    documents.rename(documents.with_name("elsewhere"))
    assert {one.state for one in library.documents.listed()} == {"unreachable"}
    documents.with_name("elsewhere").rename(documents)
    (library.folder / "CURRENT").unlink()
    assert library.documents.listed(filters=Filters(within=("norway",)))[0].state == "waiting"


def test_the_command(library: Library, run: Run) -> None:
    shown = run("documents", "--in", "island.md").stdout
    assert "documents/island.md\n    The island\n    indexed, " in shown
    assert "of 2021-05-01, tags: sea\n    Boats leave twice a day." in shown
    listed = json.loads(run("documents", "--json", "--type", "md", "--before", "2022").stdout)
    assert [(Path(one["path"]).name, one["date"]) for one in listed] == [("island.md", "2021-05-01")]
    assert "No document matches." in run("documents", "--tag", "land").stderr
