"""The units of passages: sentences, list items, steps, rows and code, each with its span."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.answering.units import Unit, headings_of, source_heading, split_units
from local_rag.document_records import Provenance
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
    [
        *"\n #|-.`~*>",
        "\n\n",
        "1.1 Of ",
        "(a) ",
        "**Bold**\n",
        "Columns: a; b\n",
        "Row 2: a: 1\n",
        " (Note: x. Y.)",
        "One. ",
        "two ",
        "| a | b |\n",
        "|---|---|\n",
        "- item ",
        "1. step ",
        "```\n",
        "## Head\n",
    ]
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


CONTRACT = """**3. Commission**

3.1 The Agent is paid:
(a) 12 % of the fee,
   (i) half of it in Germany,
   (ii) none at home;
(b) its travel. (Note: Flights never. Nor taxis.)

3.2 Nothing is due below 3,000. Both sides may agree otherwise.

Signed in May."""


def leads(text: str) -> dict[str, str]:
    """Return each unit, by its first two words, with those of the one that introduces it."""
    found = {one.start: " ".join(one.text.split()[:2]) for one in units(text)}
    return {found[one.start]: found.get(one.lead, "") for one in units(text)}


def test_each_clause_is_a_unit_and_says_what_it_belongs_to() -> None:
    assert kinds(CONTRACT) == [
        ("clause", "3.1 The Agent is paid:"),
        ("clause", "(a) 12 % of the fee,"),
        ("clause", "(i) half of it in Germany,"),
        ("clause", "(ii) none at home;"),
        ("clause", "(b) its travel. (Note: Flights never. Nor taxis.)"),
        ("clause", "3.2 Nothing is due below 3,000. Both sides may agree otherwise."),
        ("sentence", "Signed in May."),
    ]
    assert leads(CONTRACT) == {
        "3.1 The": "", "(a) 12": "3.1 The", "(i) half": "(a) 12", "(ii) none": "(a) 12", "(b) its": "3.1 The",
        "3.2 Nothing": "", "Signed in": "",
    }  # fmt: skip
    assert [one.label for one in units(CONTRACT)] == ["3.1", "a", "i", "ii", "b", "3.2", ""]
    assert {one.heading for one in units(CONTRACT)} == {"3. Commission"}, "a bold line stands like a heading"


@pytest.mark.parametrize(
    "text",
    [
        "1. **Fees**\n   1.1 Ten a day.\n   1.2 Five at night.",
        "Art. 1: Ten a day.\nArt. 2: Five at night.\nArt. 3: None.",
        "\u00a7 1 Zehn am Tag.\n\u00a7 2 F\u00fcnf bei Nacht.\n\u00a7 3 Keine.",
        "4  Bus. Sold.\n5  Boat. Kept.\n6  Car. Lent.",
        "> (a) Ten a day.\n> (b) Five.\n> (c) None.".replace("> ", ""),
        "i. Ten a day.\nii. Five at night.\niii. None.",
    ],
)
def test_clauses_of_every_numbering_are_apart(text: str) -> None:
    assert [one.text for one in units(text)] == [line.strip() for line in text.split("\n")]


def test_a_long_clause_is_split_into_its_sentences_which_know_where_it_begins() -> None:
    sentence = "Both sides keep fees and offers to themselves until the term has ended in full. "
    found = units(f"2.1 It is paid:\n(a) {sentence * 6}\n(b) At once.")
    assert [one.kind for one in found] == ["clause", *["sentence"] * 6, "clause"]
    assert [one.lead for one in found] == [-1, 0, *[found[1].start] * 5, 0]
    assert [one.label for one in found] == ["2.1", "a", *[""] * 5, "b"]


def test_running_text_that_is_wrapped_before_a_number_goes_on() -> None:
    assert len(units("In the year of the storm we paid\n1.5 million for the new pier and\nArt. 3 was left out.")) == 1


def test_rows_show_their_empty_cells_so_that_no_neighbour_is_taken_for_one() -> None:
    table = "| Guest | Room | Remarks |\n|---|---|---|\n| Hagen | 4 | |\n| Bell | 5 | nuts |\n| | | |"
    assert [one.text for one in units(table)] == [
        "Guest: Hagen; Room: 4; Remarks: -", "Guest: Bell; Room: 5; Remarks: nuts", ""
    ][:2] + [one.text for one in units(table)][2:]  # fmt: skip
    sheet = "Columns: Guest; Room; Remarks\nRow 2: Guest: Hagen; Room: 4\nRow 3: Guest: Bell; Room: 5; Remarks: nuts"
    assert [one.text for one in units(sheet)[1:]] == [
        "Guest: Hagen; Room: 4; Remarks: -",
        "Guest: Bell; Room: 5; Remarks: nuts",
    ]
    below = "Row 7: Guest: Hagen; Remarks: late\nRow 8: Guest: Bell; Room: 5\nRow 9: Guest: Ash; Room: 6; Remarks: nuts"
    assert [one.text for one in units(below)] == [
        "Guest: Hagen; Room: -; Remarks: late", "Guest: Bell; Room: 5; Remarks: -", "Guest: Ash; Room: 6; Remarks: nuts"
    ]  # fmt: skip


def test_a_row_of_which_most_is_empty_shows_what_it_has() -> None:
    names = " | ".join(f"C{number}" for number in range(30))
    wide = f"| {names} |\n|{'---|' * 30}\n| 1 | 2 |{' |' * 28}"
    assert units(wide)[0].text == "C0: 1; C1: 2"
    columns = "; ".join(f"C{number}" for number in range(30))
    assert units(f"Columns: {columns}\nRow 2: C0: 1; C29: 2")[1].text == "C0: 1; C29: 2"


def test_a_row_belongs_to_the_caption_of_its_table() -> None:
    table = "| Boat | Fee |\n|---|---|\n| Alke | 9 |"
    for caption in ("Schedule A: rates", "2.1 The fees are:", "What it costs (in May, not decided"):
        found = units(f"The board met.\n\n{caption}\n\n{table}")
        assert [one.text for one in found if one.start == found[-1].lead] == [caption]
    assert units(f"The board met.\n\n{table}")[-1].lead == -1, "a sentence is no caption"
    sheet = units("Value in pounds\nColumns: Boat; Fee\nRow 2: Boat: Alke; Fee: 9")
    assert [one.lead for one in sheet] == [-1, -1, 0]


def test_in_a_mail_who_said_what_is_quoted_stays_with_it() -> None:
    text = (
        "Dear Ida,\nit is done.\n\nOn Tue, 3 Feb 2026, Bo Lund wrote:\n> Can you do it?\n> By May.\n>\n> Ann wrote:\n"
        ">> Who can?\n> Bo\n\nYes.\n\n-----Original Message-----\nFrom: Cy <c@x.org>\nSent: Monday\nTo: Ida\n"
        "Subject: Help\n\nPlease help."
    )
    found = {one.text: one.heading for one in split_units([passage(text, path="a.eml")])}
    assert found["Dear Ida,\nit is done."] == ""
    assert found["> Can you do it?"] == found["> By May."] == "On Tue, 3 Feb 2026, Bo Lund wrote"
    assert found[">> Who can?"] == "Ann wrote"
    assert found["Yes."] == ""
    assert found["Please help."] == "From: Cy <c@x.org>, Sent: Monday"
    assert {one.heading for one in units(text)} == {""}, "only a mail quotes so"


def test_the_heading_of_a_source_says_its_kind_and_its_date() -> None:
    said = Provenance(date="2026-02-03", author="Bo Lund <bo@x.org>")
    for path, shown in {
        "a.eml": "Keys (mail from Bo Lund, 3 February 2026)",
        "a.xlsx": "Keys (sheet)",
        "a.html": "Keys (page, 3 February 2026)",
        "a.docx": "Keys (3 February 2026)",
        "cur/1700000000.M1:2,S": "Keys (mail from Bo Lund, 3 February 2026)",
    }.items():
        assert source_heading(passage(title="Keys", path=path, provenance=said)) == shown
    assert source_heading(passage(title="Keys", path="a.docx")) == "Keys"
    minutes = passage(title="Minutes 2026 02 03", path="a.txt", provenance=said)
    assert source_heading(minutes) == "Minutes 2026 02 03", "it says so itself"
    assert source_heading(passage(title="Keys", path="a.pptx")) == "Keys (slides)"
