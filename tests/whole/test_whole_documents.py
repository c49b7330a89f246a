"""Questions about whole documents, from the files to what is found: with a context model and without."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.asking import Filters
from local_rag.store.database import Store
from tests.conftest import Run
from tests.fakes import QUICK

ASKED, PLAIN = "Which document deals with zeppelins?", "When does the boat leave?"


def rows_of(library: Library) -> set[int]:
    with closing(Store(library.folder)) as store:
        return {row.id for row in store.rows() if row.kind == "document"}


@pytest.fixture
def library(documents: Path) -> Iterator[Library]:
    (documents / "zeppelin.md").write_text("# Zeppelins\n\nThey fly. They carry mail.\n")
    with Library(".local-rag", parts=QUICK, profile="tiny", context_minutes=9) as library:
        library.index([documents], contexts=True)
        yield library


def test_each_document_has_a_row_in_its_own_words(library: Library) -> None:
    found = library.search(ASKED, rerank=False)
    whole = [passage for passage in found if passage.kind == "document"]
    assert {Path(one.path).name for one in whole} == {"boat.txt", "ireland.md", "leave.md", "zeppelin.md"}
    assert Path(whole[0].path).name == "zeppelin.md"
    assert {one.sentence for one in whole} == {""}, "sentences are written about chunks"
    assert all((one.start, one.end) == (0, 0) for one in whole)


def test_other_questions_are_searched_as_if_there_were_no_such_rows(library: Library) -> None:
    trace = library.retrieval.trace(PLAIN, top=20, rerank=False)
    assert {passage.kind for passage in trace.passages} == {"chunk"}
    assert not rows_of(library) & {chunk for ranking in trace.rankings.values() for chunk in ranking}
    assert len(trace.passages) == library.retrieval.manifest()["chunks"] == library.status().chunks


def test_filters_hold_for_documents_too(library: Library) -> None:
    found = library.search("What is this document about?", rerank=False, filters=Filters(within=("boat.txt",)))
    assert {Path(passage.path).name for passage in found} == {"boat.txt"}
    assert {passage.kind for passage in found} == {"chunk", "document"}


def test_the_list_tells_what_the_document_says(library: Library) -> None:
    about = {Path(one.path).name: one.about for one in library.documents.listed()}
    assert about["zeppelin.md"] == "They fly. They carry mail."


def test_a_changed_document_gets_another_row(library: Library, documents: Path) -> None:
    before = rows_of(library)
    again = library.index(contexts=True)
    assert (again.published, again.contexts, rows_of(library)) == (False, {}, before)
    (documents / "boat.txt").write_text("The boat leaves at nine.")
    library.index(contexts=True)
    assert len(rows_of(library) - before) == 1
    assert len({one.path for one in library.search(ASKED, rerank=False) if one.kind == "document"}) == 4
    assert library.status().stale == ()


@pytest.mark.parametrize("context", ["headings", "none"])
def test_without_a_context_model_first_sentences_and_outline_serve(documents: Path, run: Run, context: str) -> None:
    (documents / "zeppelin.md").write_text("# Zeppelins\n\nThey fly. They carry mail.\n")
    assert run("index", documents, "--profile", "tiny", "--context", context).exit_code == 0
    found = json.loads(run("search", ASKED, "--no-rerank", "--json").stdout)["passages"]
    best = next(passage for passage in found if passage["kind"] == "document")
    assert (Path(best["path"]).name, best["text"], best["context"]) == ("zeppelin.md", "They fly. They carry mail.", "")
    assert best["location"] == f"documents/zeppelin.md:{best['line']}"
    shown = run("search", ASKED, "--no-rerank").stdout
    assert "Zeppelins (the whole document)" in shown
    assert {
        passage["kind"] for passage in json.loads(run("search", PLAIN, "--json", "--no-rerank").stdout)["passages"]
    } == {"chunk"}
