"""Rich text: headings by style and by level, tables with merged cells, and what only looks like a mark."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.document_records import Document
from local_rag.reading.read import parse

STYLES = r"{\stylesheet{\ql \snext0 Normal;}{\s1\ql\keepn\fs32 \sbasedon0 heading 1;}{\s15\b\fs28 Heading 2;}}"
CELLS = r"\trowd\trgaph70\cellx2000\cellx4000 "
MERGED_DOWN = r"\trowd\trgaph70\clvmgf\cellx2000\cellx4000 ", r"\trowd\trgaph70\clvmrg\cellx2000\cellx4000 "
MERGED_ACROSS = r"\trowd\clmgf\cellx2000\clmrg\cellx4000\cellx6000 "


def rtf(body: str) -> Document:
    return parse(Path("a.rtf"), ("{\\rtf1\\ansi\\ansicpg1252{\\fonttbl{\\f0 Arial;}}" + STYLES + body + "}").encode())


def row(*cells: str, defined: str = CELLS, again: str = "") -> str:
    return defined + "".join(rf"\pard\intbl {cell}\cell " for cell in cells) + rf"\pard {again}\row "


def test_headings_by_style_and_by_level_lead_to_what_is_below() -> None:
    document = rtf(
        r"\pard\plain \s1\ql Leave\par \pard\plain Employees get 25 days.\par"
        r"\pard \s15 Man\b agers\b0\par \pard\plain They get 30.\par \pard\outlinelevel0 Travel\par \pard Second class."
    )
    assert [(one.level, one.title) for one in document.headings] == [(1, "Leave"), (2, "Managers"), (1, "Travel")]
    assert all(document.text[one.start :].startswith(one.title) for one in document.headings)
    assert document.text.split() == [
        "Leave",
        "Employees",
        "get",
        "25",
        "days.",
        "Managers",
        "They",
        "get",
        "30.",
        "Travel",
        "Second",
        "class.",
    ]


def test_a_table_becomes_rows_under_its_header() -> None:
    document = rtf(
        r"Before.\par "
        + row("Country", "Days")
        + row("Norway", r"25\par in all")
        + row("A|B", "{\\b 20}")
        + r"\pard After."
    )
    assert document.text == (
        "Before.\n\n| Country | Days |\n| --- | --- |\n| Norway | 25 in all |\n| A\\|B | 20 |\n\nAfter."
    )
    (table,) = document.tables
    assert table.columns == ("Country", "Days")
    assert document.text[table.start : table.end].startswith("| Country |")
    assert document.text[table.rows : table.end] == "| Norway | 25 in all |\n| A\\|B | 20 |"


def test_word_repeats_the_properties_of_a_row_at_its_end() -> None:
    body = row("Country", "Days", again=CELLS) + row("Norway", "25", again=CELLS)
    assert rtf(body).text == "| Country | Days |\n| --- | --- |\n| Norway | 25 |"


def test_a_wider_cell_counts_in_all_columns_that_it_covers() -> None:
    three, first_two = r"\trowd\cellx2000\cellx4010\cellx6000 ", r"\trowd\cellx4000\cellx6000 "
    last_two = r"\trowd\cellx2005\cellx6000 "
    table = (
        row("Country", "Summer", "Winter", defined=three)
        + row("Norway", "10", "15", defined=three)
        + row("Sweden", "25", defined=last_two)
        + row("All others", "30", defined=first_two)
    )
    assert rtf(table).text.splitlines()[2:] == [
        "| Norway | 10 | 15 |",
        "| Sweden | 25 | 25 |",
        "| All others | All others | 30 |",
    ]


def test_a_row_whose_edges_are_none_of_the_columns_is_read_by_order() -> None:
    other = r"\trowd\cellx900\cellx3000 "
    assert rtf(row("Country", "Days") + row("Norway", "25", defined=other)).text.endswith("| Norway | 25 |")
    nowhere = r"\trowd\cellx\cellx-999 "
    assert rtf(row("Country", "Days") + row("Norway", "25", defined=nowhere)).text.endswith("| Norway | 25 |")


def test_merged_cells_count_in_all_rows_and_columns_that_they_cover() -> None:
    down = (
        row("Country", "City")
        + row("Norway", "Bergen", defined=MERGED_DOWN[0])
        + row("", "Oslo", defined=MERGED_DOWN[1])
    )
    assert rtf(down).text.endswith("| Norway | Bergen |\n| Norway | Oslo |")
    across = (
        row("Year", "", "Rest", defined=MERGED_ACROSS)
        + row("2023", "2024", "All")
        + row("1", "2", "3")
        + row("4", "5", "6")
    )
    assert rtf(across).text.startswith("| Year 2023 | Year 2024 | Rest All |")


def test_rows_of_numbers_have_no_header_and_a_single_column_is_no_table() -> None:
    assert rtf(row("1", "2") + row("3", "4")).text == "| 1 | 2 |\n| 3 | 4 |"
    document = rtf(row("A frame around a text.") + row("And more."))
    assert (document.text, document.tables) == ("A frame around a text.\nAnd more.", ())


def test_two_tables_with_text_between_them_are_two() -> None:
    body = row("A", "B") + row("1", "2") + r"\pard Text.\par " + row("C", "D") + row("3", "4")
    assert [table.columns for table in rtf(body).tables] == [("A", "B"), ("C", "D")]


def inner_row(*cells: str, level: int = 2) -> str:
    said = "".join(rf"\pard\intbl\itap{level} {cell}\nestcell " for cell in cells)
    return said + r"{{\*\nesttableprops\trowd\cellx1000\cellx2000\nestrow}{\nonesttables\par }}"


NESTING = r"\pard", r"\intbl ", r"\itap2", r"\itap9 ", r"\nestcell ", r"\nestrow ", r"{\*\nesttableprops\nestrow}"
FEES = (
    inner_row("Boat", "Fee") + inner_row("Skiff", "40") + inner_row(r"{\*\bkmkstart q}Yawl\par big", r"{\strike 55} 60")
)


def test_a_table_in_a_cell_stays_in_it_and_each_value_names_its_column() -> None:
    holding = rf"Fees:\par {FEES}\pard\intbl yearly"
    document = rtf(r"Before.\par " + row("Pier", holding) + row("North", "none") + r"\pard After.")
    inner = "(Boat: Skiff, Fee: 40; Boat: Yawl big, Fee: ~~55~~ 60)"
    assert document.text == f"Before.\n\n| Pier | Fees: {inner} yearly |\n| --- | --- |\n| North | none |\n\nAfter."


def test_tables_in_cells_of_tables_in_cells_and_beside_each_other() -> None:
    deeper = inner_row(
        rf"At {inner_row('No', 'Size', level=3)}{inner_row('1', 'big', level=3)}\pard\intbl\itap2 sea", "x"
    )
    between = r"\pard\intbl\par "
    text = rtf(row(deeper + between + inner_row("Only", "one"), FEES) + row("1", "2")).text
    assert "| (At (No: 1, Size: big) sea, x) (Only, one) | (Boat: Skiff, Fee: 40; " in text
    assert rtf(row(inner_row("A", "B") + inner_row("", "2"), "x") + row("1", "2")).text.startswith("| (A; B: 2) | x |")
    single = rtf(row(inner_row("Layout."), "Text") + row("1", "2"))
    assert single.text.startswith("| Layout. | Text |")


def test_the_properties_of_a_row_may_stand_within_it_or_at_its_end() -> None:
    body = rf"Before.\par {FEES}{CELLS}\pard\intbl \cell North\cell \pard\intbl{{{CELLS}\row}}\pard After."
    assert rtf(body).text.startswith("Before.\n\n| (Boat: Skiff, Fee: 40; ")
    assert " | North |\n" in rtf(body).text
    body = rf"Before.\par {FEES}\pard\intbl yearly\cell \pard\intbl North\par pier\cell {CELLS}\row \pard After."
    assert rtf(body).text.startswith("Before.\n\n| (Boat: Skiff, Fee: 40; ")
    assert rtf(body).text.endswith(" yearly | North pier |\n| --- | --- |\n\nAfter.")


def test_what_ends_a_table_in_a_cell_separates_words_also_where_there_is_no_table() -> None:
    said = rtf(FEES + r"\pard After.").text
    assert " ".join(said.split()) == "Boat Fee Skiff 40 Yawl big ~~55~~ 60 After."


@pytest.mark.parametrize(
    "words", [r"\b\v0 ", r"\b\strike0 ", r"\i\nosupersub ", r"\b\deleted0 ", r"\b\pard ", r"\b\intbl "]
)
def test_words_that_end_what_marks_a_run_leave_the_text_behind_them(words: str) -> None:
    assert rtf(rf"One {words}two\par three").text == "One two\nthree"


def test_a_run_is_marked_also_if_it_begins_with_what_is_skipped() -> None:
    assert rtf(r"{\strike {\*\bkmkstart q}{\pict 00}Old} new{\footnote a\b0\par b}.").text == "~~Old~~ new (Note: a b)."


@pytest.mark.parametrize(
    ("head", "escaped", "said"),
    [
        (r"\mac\ansicpg10000", rb"caf\'8e", "café"),
        (r"\ansi\ansicpg1361", rb"\'88\'61", "가"),
        (r"\ansi\ansicpg20866", rb"\'e1\'c4\'c1", "Ада"),
        (r"\ansi\ansicpg54936", rb"\'c1\'aa", "联"),
        (r"\ansi\ansicpg65001", rb"\'c3\'a9", "é"),
        (r"\ansi\ansicpg1200", rb"caf\'e9", "café"),
        (r"\ansi\ansicpg57002", rb"caf\'e9", "café"),
        (r"\ansi\ansicpg0", rb"caf\'e9", "café"),
        (r"\ansi", rb"\\\\ansicpg1251 \'e9", "\\ansicpg1251 é"),
        (r"\ansi\ansicpg1252{\fonttbl{\f0\fcharset78 O;}}\f0", rb"\'89\'ef", "会"),
        (r"\ansi\ansicpg10029{\fonttbl{\f0\fcharset89 O;}}\f0", rb"\'fc\'97dz", "Łódz"),
        (r"\ansi\ansicpg1252{\fonttbl{\f0\fcharset82 O;}}\f0", rb"\'e0", "א"),
    ],
)
def test_text_in_a_code_page_that_python_knows_by_another_name_or_lacks(head: str, escaped: bytes, said: str) -> None:
    source = b"{\\rtf1" + head.encode() + b" " + escaped.replace(b"\\\\\\\\", b"\\\\") + b"}"
    assert parse(Path("a.rtf"), source).text == said


@pytest.mark.parametrize("text", [r"\\cell", r"\\row and \\trowd", r"\\s1"])
def test_an_escaped_backslash_begins_no_control_word(text: str) -> None:
    assert rtf(f"Say {text} here.").text == f"Say {text.replace(chr(92) * 2, chr(92))} here."


@given(
    st.lists(
        st.sampled_from(
            [
                *NESTING,
                r"\trowd",
                r"\cell ",
                r"\row ",
                r"\clvmrg",
                r"\cellx9",
                r"\par ",
                r"\s1 ",
                "{",
                "}",
                " word ",
                r"\u57346?",
            ]
        ),
        max_size=40,
    )
)
def test_no_order_of_marks_loses_a_word_or_leaves_a_mark(parts: list[str]) -> None:
    opened = sum({"{": 1, "}": 0}.get(part, 0) for part in parts)
    body = "".join(part for part in parts if part != "}") + "}" * opened
    document = rtf("first " + body + " last")
    words = re.findall(r"\w+", document.text)
    assert words.count("word") >= parts.count(" word ")
    assert {"first", "last"} <= set(words)
    assert not any("\ue000" <= character <= "\ue03c" for character in document.text)
