"""How long tables are split: between rows, each chunk below its header, no chunk over the limit."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_rag.document_records import Chunk, Document, Table
from local_rag.reading.converters.sheets import convert_csv
from local_rag.reading.markdown import find_tables
from local_rag.reading.read import as_document, make_document
from local_rag.reading.split import split
from local_rag.text.pipe_rows import cells_of
from tests.reading.test_split import WORDS, count

HEADER = "| Country | Days of leave | Carry over |"


def markdown_table(rows: int) -> str:
    body = "\n".join(f"| Country {row} | {20 + row % 9} | {row % 7} days |" for row in range(rows))
    return f"# Leave\n\nWhat each country gives.\n\n{HEADER}\n|---|---|---|\n{body}\n\nAsk the office for more.\n"


def check(document: Document, chunks: tuple[Chunk, ...], max_tokens: int) -> None:
    text = document.text
    assert "".join(text.split()) == "".join("".join(chunk.text.split()) for chunk in chunks)
    for before, after in pairwise([None, *chunks]):
        assert after is not None
        assert after.text == text[after.start : after.end]
        assert count(after.full_text) <= max_tokens or len(after.text) == 1
        assert before is None or before.end <= after.start


def test_tables_are_found_with_their_columns() -> None:
    text = "a\n\n| x | y |\n|---|--:|\n| 1 | 2 |\n| 3 | 4 |\n\n```\n| no |\n|---|\n```\n\nq | r\n--- | ---\n5 | 6\n"
    tables = find_tables(text)
    assert [text[table.start : table.end].split("\n", maxsplit=1)[0] for table in tables] == ["| x | y |", "q | r"]
    assert [text[table.rows : table.end] for table in tables] == ["| 1 | 2 |\n| 3 | 4 |\n", "5 | 6\n"]
    assert [table.columns for table in tables] == [("x", "y"), ("q", "r")]


def test_a_line_of_nothing_but_spaces_is_read_in_no_time() -> None:
    assert find_tables(f"{' ' * 400_000}\n" * 3) == ()


@pytest.mark.parametrize("max_tokens", [48, 96, 146])
def test_each_chunk_of_a_long_table_repeats_its_header(max_tokens: int) -> None:
    document = as_document(Path("a.md"), markdown_table(80))
    chunks = split(document, tokenizer=WORDS, max_tokens=max_tokens)
    check(document, chunks, max_tokens)
    below = [chunk for chunk in chunks if chunk.text.startswith("| Country ")]
    assert len(below) > 4
    assert all(chunk.table_header == HEADER or chunk.text.startswith(HEADER) for chunk in below)
    assert all(chunk.text.split("\n")[-1].endswith("|") for chunk in below[:-1]), "a row is cut"
    assert all(not chunk.table_header for chunk in chunks if "Ask the office" in chunk.text.split("\n")[0])


def test_a_repeated_header_has_as_many_columns_as_its_table() -> None:
    rows = "\n".join(f"| Country {row} | 2 |" for row in range(80))
    document = as_document(Path("a.md"), f"| Country \\| port | Days |\n|---|---|\n{rows}\n")
    last = split(document, tokenizer=WORDS, max_tokens=48)[-1]
    assert cells_of(last.table_header) == ["Country | port", "Days"]


def test_a_short_table_stays_with_the_text_around_it() -> None:
    chunks = split(as_document(Path("a.md"), markdown_table(3)), tokenizer=WORDS, max_tokens=146)
    assert [chunk.table_header for chunk in chunks] == [""]


SMALL = st.lists(st.lists(st.sampled_from(["1", "20", "EUR", "a b c", ""]), min_size=2, max_size=2), max_size=9)


@settings(deadline=None, max_examples=60)
@given(tables=st.lists(SMALL, min_size=1, max_size=5), words=st.integers(0, 60), size=st.integers(20, 70))
def test_a_table_that_fits_is_never_split(tables: list[list[list[str]]], words: int, size: int) -> None:
    between = "\n\n" + "some words. " * words + "\n\n"
    bodies = ["".join(f"| {one} | {other} |\n" for one, other in rows) for rows in tables]
    text = "# Prices\n" + between.join(f"| x | y |\n|---|---|\n{body}" for body in bodies)
    document = as_document(Path("a.md"), text)
    chunks = split(document, tokenizer=WORDS, max_tokens=size, table_tokens=90)
    assert "".join(document.text.split()) == "".join("".join(chunk.text.split()) for chunk in chunks)
    assert all(before.end <= after.start for before, after in pairwise(chunks))
    for table in document.tables:
        rows = document.text[table.start : table.end].strip()
        if count(rows) + count("# Prices") <= 90:
            assert any(one.start <= table.start and table.start + len(rows) <= one.end for one in chunks), rows
    for chunk in chunks:
        holds_table = any(chunk.start <= table.start and table.end <= chunk.end + 1 for table in document.tables)
        assert count(chunk.full_text) <= (90 if holds_table else size)


@pytest.mark.parametrize("size", range(40, 90, 5))
def test_the_heading_and_the_line_above_a_table_stay_with_it(size: int) -> None:
    text = (
        f"{'Some words of a sentence. ' * 11}\n\n## Rates\n\nPer night, in EUR:\n\n| a | b |\n|---|---|\n| Oslo | 9 |\n"
    )
    chunks = split(as_document(Path("a.md"), text), tokenizer=WORDS, max_tokens=size)
    (chunk,) = [one for one in chunks if "Oslo" in one.text]
    assert "## Rates\n\nPer night, in EUR:\n\n| a |" in chunk.text


def test_a_sheet_of_few_rows_is_one_chunk() -> None:
    head = "Article,Product,Price 2024,Price 2025,Currency"
    rows = "".join(f"BW-{row},Planner {row},{row}.50,{row + 2}.50,EUR\n" for row in range(12))
    document = make_document(Path("prices.csv"), convert_csv(f"{head}\n{rows}".encode()))
    whole = split(document, tokenizer=WORDS, max_tokens=145, table_tokens=600)
    assert [sum("Planner" in line for line in chunk.text.split("\n")) for chunk in whole] == [12]
    assert len(split(document, tokenizer=WORDS, max_tokens=145)) > 1


def test_many_small_tables_take_a_time_that_grows_with_the_text() -> None:
    text = "# Prices\n\n" + "| x | y |\n|---|---|\n| 1 | 2 |\n\nSome words:\n\n- a:\n" * 4000
    assert len(split(as_document(Path("a.md"), text), tokenizer=WORDS, max_tokens=40)) > 1000


def test_a_row_of_a_wide_table_is_cut_between_its_cells() -> None:
    names = [f"Column {number}" for number in range(60)]
    rows = [[f"Row{row}", *(f"value {row} {number}" for number in range(1, 60))] for row in range(3)]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in [names, ["---"] * 60, *rows])
    document = as_document(Path("a.md"), table)
    chunks = split(document, tokenizer=WORDS, max_tokens=96)
    check(document, chunks, 96)
    within = [chunk for chunk in chunks if "value 1 30 |" in chunk.text]
    assert len(within) == 1
    label, header = within[0].table_header.split("\n")
    assert label == "Column 0: Row1"
    first_name = header.split("|")[1].strip()
    first_cell = within[0].text.split("|")[1].strip()
    assert first_name == f"Column {first_cell.split()[-1]}"


def test_a_long_cell_of_a_sheet_says_whose_it_is() -> None:
    converted = convert_csv(f'name,remark,born\nAda,"{"word " * 400}",1815\nBob,short,1901\n'.encode())
    document = make_document(Path("a.csv"), converted)
    chunks = split(document, tokenizer=WORDS, max_tokens=96)
    check(document, chunks, 96)
    assert {chunk.table_header for chunk in chunks[2:-1]} == {"Row 2: name: Ada; remark:"}
    assert chunks[-1].text.endswith("Row 3: name: Bob; remark: short; born: 1901")


@given(
    rows=st.lists(st.lists(st.text("ab |\\;:#\n é世", max_size=30), min_size=1, max_size=6), min_size=1, max_size=12),
    max_tokens=st.integers(4, 60),
    overlap=st.integers(0, 3),
    named=st.booleans(),
)
@settings(deadline=None)
def test_any_table_is_split_completely_and_within_the_limit(
    rows: list[list[str]], max_tokens: int, overlap: int, named: bool
) -> None:
    lines = [
        "; ".join(row).replace("\n", " ") if named else f"| {' | '.join(row)} |".replace("\n", " ") for row in rows
    ]
    text = "\n".join(["before", "", *lines, "", "after"])
    start = text.index("\n\n") + 2
    body = min(start + len(lines[0]) + 1, len(text))
    table = Table(start, body, start + len("\n".join(lines)), () if named else ("x", "y", "a name"))
    document = Document(Path("a.csv"), "A", text, "text", tables=(table,))
    chunks = split(document, tokenizer=WORDS, max_tokens=max_tokens, overlap=overlap)
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.end]
        assert count(chunk.full_text) <= max_tokens or len(chunk.text) == 1
    covered = {offset for chunk in chunks for offset in range(chunk.start, chunk.end)}
    assert all(text[offset].isspace() for offset in range(len(text)) if offset not in covered)


def test_a_very_long_row_costs_no_more_than_its_length() -> None:
    converted = convert_csv(f'id,remark\n1,"{"word; " * 120_000}"\n'.encode())
    document = make_document(Path("a.csv"), converted)
    assert len(split(document, tokenizer=WORDS, max_tokens=146)) > 1000
