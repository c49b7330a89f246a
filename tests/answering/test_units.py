"""The units of passages: sentences, list items, steps, rows and code, each with its span."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from local_rag.answering.units import Unit, headings_of, split_units
from tests.fakes import passage


def units(text: str, title: str = "") -> list[Unit]:
    return split_units([passage(text, title=title)])


def kinds(text: str) -> list[tuple[str, str]]:
    return [(one.kind, one.text) for one in units(text)]


def test_the_sentences_of_wrapped_lines_share_a_paragraph() -> None:
    first, second, third = units("The boat\nleaves at seven. It carries mail.\n\nBread is baked.")
    assert [one.text for one in (first, second, third)] == [
        "The boat\nleaves at seven.",
        "It carries mail.",
        "Bread is baked.",
    ]
    assert first.paragraph == second.paragraph != third.paragraph


def test_items_and_steps_keep_their_wrapped_lines() -> None:
    assert kinds("Do this:\n- Wait at\n  the pier. Wave.\n* Go.\n\n1. Press.\n2) Turn.") == [
        ("sentence", "Do this:"),
        ("item", "- Wait at\n  the pier. Wave."),
        ("item", "* Go."),
        ("step", "1. Press."),
        ("step", "2) Turn."),
    ]


def test_a_row_names_its_columns_and_quotes_itself() -> None:
    text = "| Boat | Leaves |\n|---|---|\n| Terna | 7:00 |\n| Alke | |\n| odd |"
    assert kinds(text) == [("row", "Boat: Terna; Leaves: 7:00"), ("row", "Boat: Alke"), ("row", "odd")]
    first = units(text)[0]
    assert text[first.start : first.end] == "| Terna | 7:00 |"
    assert kinds("Times:\n| Terna | 7:00 |") == [("sentence", "Times:"), ("row", "Terna | 7:00")]


def test_code_is_one_unit_whatever_is_in_it() -> None:
    code = "```sh\n# not a heading\n\n- not an item. Nor two sentences.\n```"
    assert kinds(f"Run:\n{code}\nThen wait.") == [("sentence", "Run:"), ("code", code), ("sentence", "Then wait.")]
    assert kinds("~~~\nnever closed\n```\n") == [("code", "~~~\nnever closed\n```")]


def test_the_comments_of_source_code_are_no_headings_and_its_lines_stay_apart() -> None:
    text = "# Retry twice.\ndef fetch():\n    # | - 1. not a row\n    pass\n\n```\nLIMIT = 3\n"
    script = passage(text, path="tool.py")
    blocks = [text[: text.index("\n\n")], "```\nLIMIT = 3"]
    assert [(unit.kind, unit.text, unit.heading) for unit in split_units([script])] == [
        ("code", block, "") for block in blocks
    ]


def test_headings_and_rules_are_no_units_but_headings_name_those_below() -> None:
    found = units("# Boats\n\n## Times\nAt seven.\n\n---\n## Mail\nAt nine.", title="Boats")
    assert [(one.text, one.heading) for one in found] == [("At seven.", "Times"), ("At nine.", "Mail")]
    assert units("# Boats\nAt seven.", title="Boats")[0].heading == "", "its title is told anyway"


def test_a_short_line_over_a_sentence_is_a_heading_where_nothing_marks_them() -> None:
    text = "4 Insurance\nThe contractor holds liability insurance.\n5 Notice\nEither party gives two months' notice."
    for path, page in (("contract.txt", None), ("contract.pdf", 2)):
        found = split_units([passage(text, path=path, page=page)])
        assert [(one.heading, one.text[:3]) for one in found] == [("4 Insurance", "The"), ("5 Notice", "Eit")]
    in_word = split_units([passage(text, path="contract.docx")])
    assert {one.heading for one in in_word} == {""}, "Word marks its headings"


def test_the_headings_of_a_passage_are_one_line_without_repetitions() -> None:
    one = passage(title="Two\nlines", headings=("Two\nlines", "Times", "Times"))
    assert headings_of(one) == "Two lines > Times"


_PIECES = st.sampled_from(
    [*"\n #|-.`~", "\n\n", "One. ", "two ", "| a | b |\n", "|---|---|\n", "- item ", "1. step ", "```\n", "## Head\n"]
)


@given(st.lists(st.lists(st.one_of(_PIECES, st.text(max_size=3)), max_size=30).map("".join), max_size=3))
def test_units_lie_in_their_passages_and_do_not_overlap(texts: list[str]) -> None:
    found = split_units([passage(text) for text in texts])
    assert [one.passage for one in found] == sorted(one.passage for one in found)
    for one in found:
        quoted = texts[one.passage][one.start : one.end]
        assert quoted == quoted.strip() != ""
        assert one.kind == "row" or one.text == quoted
    for one, other in itertools.pairwise(found):
        assert one.passage < other.passage or one.end <= other.start


@given(st.lists(st.text("ab.! \n", max_size=8), max_size=8).map("".join))
def test_no_word_of_plain_text_is_lost(text: str) -> None:
    found = units(text)
    assert "".join("".join(one.text.split()) for one in found) == "".join(text.split())


def test_rows_below_a_repeated_header_name_their_columns() -> None:
    found = passage("| Alke | 8:00 |\n| Terna | 7:00 |", table_header="| Boat | Leaves |")
    assert [unit.text for unit in split_units([found])] == ["Boat: Alke; Leaves: 8:00", "Boat: Terna; Leaves: 7:00"]


def test_a_passage_within_a_row_says_which_row() -> None:
    found = passage("| 8:00 | 9:00\n", table_header="Boat: Alke\n| Leaves | Arrives | Days |")
    assert [unit.text for unit in split_units([found])] == ["Boat: Alke; Leaves: 8:00; Arrives: 9:00"]
    found = passage("and so on.\nRow 8: name: Bob; born: 1901", table_header="Row 7: name: Ada; remark:")
    assert [unit.text for unit in split_units([found])] == ["name: Ada; remark: and so on.", "name: Bob; born: 1901"]


def test_rows_of_a_sheet_are_units_of_their_own() -> None:
    text = "Columns: Boat; Leaves\nRow 2: Boat: Alke. Old; Leaves: 8:00\nRow 3: Boat: Terna; Leaves: 7:00"
    found = split_units([passage(text)])
    assert [(unit.kind, unit.text) for unit in found[1:]] == [
        ("row", "Boat: Alke. Old; Leaves: 8:00"),
        ("row", "Boat: Terna; Leaves: 7:00"),
    ]
    assert [text[unit.start : unit.end].split(":", maxsplit=1)[0] for unit in found[1:]] == ["Row 2", "Row 3"]
