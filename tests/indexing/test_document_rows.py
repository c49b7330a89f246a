"""The row that stands for a whole document: its first sentences and its parts."""

from hypothesis import given
from hypothesis import strategies as st

from local_rag.document_records import Chunk
from local_rag.indexing.document_rows import describe, document_row


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
