"""Questions about whole documents, from the files to the answer: with a context model and without."""

import json
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.answering.attribution import Attributor
from local_rag.answering.selection import whole_sources
from local_rag.display import passage_as_dict, passage_as_lines
from local_rag.indexing.contextualize import ContextJob
from local_rag.indexing.work import OnNote, WrittenContext
from local_rag.records import AskOptions, Filters, Passage
from local_rag.store.database import Store
from tests.conftest import Run
from tests.fakes import QUICK, FakeGenerator, QuickWorkers, generating

SUMMARY = "This document deals with zeppelins in sheds."
ASKED, PLAIN = "Which document deals with zeppelins?", "When does the boat leave?"


class SummingUp(QuickWorkers):
    """Write of every document that it deals with zeppelins."""

    def write_contexts(self, jobs: Iterable[ContextJob], expected: int, note: OnNote) -> Generator[WrittenContext]:
        for job in jobs:
            whole = job.opening == "This document"
            yield WrittenContext(job.key, SUMMARY if whole else "Part.")


def rows_of(library: Library) -> set[int]:
    with closing(Store(library.folder)) as store:
        return {row.id for row in store.rows() if row.kind == "document"}


@pytest.fixture
def library(documents: Path) -> Iterator[Library]:
    parts = replace(QUICK, make_workers=SummingUp, open_engine=generating(FakeGenerator(lambda _: "In the sheds.")))
    with Library(".local-rag", parts=parts, profile="tiny", context="llm") as library:
        library.index([documents])
        yield library


def test_each_document_has_a_row_that_is_found_by_what_a_model_wrote_about_it(library: Library) -> None:
    found = library.search(ASKED, rerank=False)
    whole = [passage for passage in found if passage.kind == "document"]
    assert {Path(one.path).name for one in whole} == {"boat.txt", "ireland.md", "leave.md"}
    assert {one.sentence for one in whole} == {SUMMARY}
    assert found[0].kind == "document", "no chunk says anything of zeppelins"
    assert all((one.line, one.start, one.end) == (1, 0, 0) for one in whole)


def test_other_questions_are_searched_as_if_there_were_no_such_rows(library: Library) -> None:
    trace = library.trace(PLAIN, top=20, rerank=False)
    assert {passage.kind for passage in trace.passages} == {"chunk"}
    assert not rows_of(library) & {chunk for ranking in trace.rankings.values() for chunk in ranking}
    assert len(trace.passages) == library.manifest()["chunks"] == library.status().chunks


def test_what_a_model_wrote_is_shown_marked_and_never_supports_a_sentence(library: Library) -> None:
    answer = library.ask(ASKED, AskOptions(rerank=False))
    generator = library._shared.answer_model.open()
    assert isinstance(generator, FakeGenerator)
    marked = f"(Summary, not in the words of the document: {SUMMARY})\nThe boat"
    assert any(marked in prompt for prompt in generator.prompts)
    assert answer.read[0].kind == "document"
    assert not answer.answered
    assert "sheds" not in answer.text
    found = Attributor(ASKED, whole_sources(ASKED, [answer.read])).attribute("In the sheds.")
    assert found.units == ()


def test_filters_hold_for_documents_too(library: Library) -> None:
    found = library.search("What is this document about?", rerank=False, filters=Filters(within=("boat.txt",)))
    assert {Path(passage.path).name for passage in found} == {"boat.txt"}
    assert {passage.kind for passage in found} == {"chunk", "document"}


def test_the_list_tells_what_the_model_wrote_and_what_the_document_says(library: Library, documents: Path) -> None:
    assert {(one.about, one.written, one.state) for one in library.documents()} == {(SUMMARY, "model", "indexed")}


def test_nothing_is_written_twice_and_a_changed_document_gets_another_row(library: Library, documents: Path) -> None:
    before = rows_of(library)
    again = library.index()
    assert (again.published, again.contexts, rows_of(library)) == (False, {}, before)
    (documents / "boat.txt").write_text("The boat leaves at nine.")
    report = library.index()
    assert sum(report.contexts.values()) == 2, "the context of its chunk, and its summary"
    assert len({one.path for one in library.search(ASKED, rerank=False) if one.kind == "document"}) == 3
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


def test_a_passage_of_a_document_is_not_taken_for_its_words_when_printed() -> None:
    passage = Passage(1, "a.md", "T", "Words.", "", "This document is.", (), None, 1, None, 1.0, kind="document")
    assert "summary by the model: This document is." in passage_as_lines(passage)
    assert passage_as_dict(passage)["kind"] == "document"
