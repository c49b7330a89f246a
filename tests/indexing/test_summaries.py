"""The row that stands for a whole document: how its summary is asked for, and what stands there without one."""

from hypothesis import given
from hypothesis import strategies as st

from local_rag.indexing.contextualize import ContextJob, context_plan, plan_contexts, prompt_requests, write_contexts
from local_rag.indexing.summaries import describe, document_plan, document_row, is_summary, with_summary
from local_rag.records import Chunk
from tests.fakes import FakeGenerator, FakeVocabulary
from tests.indexing.test_contextualize import cut

TEXT = "The boat carries mail. " * 20


def jobs_of(text: str, size: int, plan: str = "p", title: str = "Boats") -> list[ContextJob]:
    return with_summary(plan_contexts(title, text, cut(text, size), vocabulary=FakeVocabulary(), plan=plan))


def test_a_summary_is_one_more_question_behind_the_prefix_of_the_chunks() -> None:
    jobs = jobs_of(TEXT, 100)
    (summary,) = filter(is_summary, jobs)
    assert jobs[-1] is summary
    requests = list(prompt_requests(jobs, FakeVocabulary()))
    assert len({id(request.prefix) for request in requests}) == 1
    assert requests[-1].start == requests[-2].start, "behind all of the document"
    assert requests[-1].suffix != requests[-2].suffix


def test_that_of_a_long_document_is_asked_before_its_second_window_is_read() -> None:
    jobs = jobs_of("The boat carries mail and milk. " * 400, 500)
    windows = [id(job.window) for job in jobs]
    assert len(set(windows)) > 1
    place = next(place for place, job in enumerate(jobs) if is_summary(job))
    assert windows[place - 1] == windows[place] != windows[place + 1]
    assert windows == sorted(windows, key=windows.index), "each window is read once"


def test_it_is_keyed_by_all_that_it_depends_on() -> None:
    def key(text: str, plan: str = "p", title: str = "Boats") -> str:
        return next(job.key for job in jobs_of(text, 100, plan, title) if is_summary(job))

    one = key(TEXT)
    assert one == key(TEXT)
    assert one not in {job.key for job in jobs_of(TEXT, 100) if not is_summary(job)}
    assert len({one, key(TEXT, "q"), key(TEXT, title="Ships"), key(f"{TEXT}More.")}) == 4
    assert document_plan("m") != document_plan("n")
    assert context_plan("m") in document_plan("m").replace("\\", "")


def test_an_answer_becomes_the_summary() -> None:
    def reply(prompt: str) -> str:
        return " is a note on boats." if prompt.endswith("This document") else " tells of a boat."

    generator = FakeGenerator(reply)
    jobs = jobs_of(TEXT, 200)
    written = dict(write_contexts(jobs, generator))
    assert {written[job.key] for job in jobs if is_summary(job)} == {"This document is a note on boats."}
    assert {written[job.key] for job in jobs if not is_summary(job)} == {"This chunk tells of a boat."}


def test_nothing_is_asked_of_a_document_without_chunks() -> None:
    assert with_summary([]) == []


def test_the_row_stands_at_the_beginning_and_tells_the_parts() -> None:
    chunks = [Chunk(0, 5, 9, "text", ("Mail",), 1, 3, 4), Chunk(1, 10, 14, "more", ("Milk",), 2, 7, 8)]
    row = document_row("Boats", "# Boats\n\nThey sail. They carry mail. They sink.", chunks)
    assert row.text == "They sail. They carry mail. Parts: Mail; Milk"
    assert (row.start, row.end, row.page, row.line, row.end_line) == (0, 0, 1, 3, None)
    assert row.position < chunks[0].position


def test_what_has_no_sentences_is_told_by_how_it_begins() -> None:
    assert document_row("T", "| a | b |\n| 1 | 2 |", [Chunk(0, 0, 9, "| a | b |")]).text == "| a | b | | 1 | 2 |"


def test_what_is_no_prose_says_nothing() -> None:
    assert describe("T", "# T\n\n```\n---\n\n| a | b |\n", []) == ""
    assert describe("T", "", ["T", "One"]) == "", "one part is no outline"
    assert describe("T", "", ["One", "Two", "One"]) == "Parts: One; Two"


@given(st.text(), st.text(max_size=4000), st.lists(st.text(max_size=300), max_size=100))
def test_it_is_bounded(title: str, beginning: str, headings: list[str]) -> None:
    chunks = [Chunk(0, 0, 1, "x", (heading,)) for heading in [*headings, "last"]]
    assert len(document_row(title, beginning, chunks).text) < 450
