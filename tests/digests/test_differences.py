"""What changed between two documents: values, sentences, sections; and nothing where only the layout differs."""

import textwrap
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.digests.differences import compare
from local_rag.digests.output import difference_as_dict, difference_as_lines
from local_rag.digests.statements import DocumentText, text_of_file
from local_rag.reading.read import parse
from tests.digests.texts import OLD, document, newer
from tests.support.pdf_files import at, pdf_file


def changes(before: str, after: str, name: str = "agreement.md") -> list[tuple[str, str]]:
    return [(one.kind, one.summary) for one in compare(document(before, name), document(after, name)).changes]


def test_each_change_is_found_with_its_kind_and_the_important_ones_come_first() -> None:
    assert changes(OLD, newer()) == [
        ("amounts", "monthly fee: EUR 4,500 -> EUR 4,900"),
        ("amounts", "Bulb: 3 EUR -> 4 EUR"),
        ("dates", "agreement: 1 March 2024 -> 1 April 2024"),
        ("numbers", "notice period: three months -> six months"),
        ("names", "4. Contact: Anna Berg -> Jonas Vik"),
        ("reworded", "reworded: may -> shall"),
        ("removed", "removed: 3. Contact"),
        ("moved", "moved: Liability"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "summary"),
    [
        ("They must be taken by 31 March.", "They must be taken by 28 February.", "Leave: 31 March -> 28 February"),
        ("Staff who are ill call before 7:30 am.", "Staff who are ill call before 7 am.", "Leave: 7:30 am -> 7 am"),
        ("Full pay continues for 4 weeks.", "Full pay continues for 6 weeks.", "Full pay: 4 weeks -> 6 weeks"),
        ("Full pay goes on for 4 weeks.", "Full pay goes on for 6 weeks.", "Leave: 4 weeks -> 6 weeks"),
        ("Annual costs are 4,000 EUR.", "Annual costs are 6,000 EUR.", "Annual costs: 4,000 EUR -> 6,000 EUR"),
        ("Tenants pay EUR 40.", "Tenants pay EUR 50.", "Tenants: EUR 40 -> EUR 50"),
        ("It ends before 9 a.m.", "It ends before 8 a.m.", "Leave: 9 am -> 8 am"),
        ("The shop closes at noon.", "The shop closes at midnight.", "reworded: noon -> midnight"),
    ],
)
def test_a_change_is_named_by_what_it_is_about_and_its_values_without_a_full_stop(
    before: str, after: str, summary: str
) -> None:
    head = "# Rules\n\n## Leave\n\nAll of it is said here.\n\n"
    assert [said for _, said in changes(f"{head}{before}\n", f"{head}{after}\n")] == [summary]


def test_both_sides_are_quoted_word_for_word_with_their_places() -> None:
    before, after = document(OLD, "a.md"), document(newer(), "b.md")
    for change in compare(before, after).changes:
        for side, place in ((before, change.before), (after, change.after)):
            if place:
                assert side.text[place.start : place.end] == place.text
                assert place.line == side.text.count("\n", 0, place.start) + 1
    told = difference_as_dict(compare(before, after))
    notice = next(one for one in told["changes"] if one["about"] == "notice period")
    assert notice["values"] == [{"kind": "numbers", "before": "three months", "after": "six months"}]
    assert notice["before"]["text"] == "The notice period is three months."
    assert (notice["before"]["location"], notice["before"]["section"]) == ("a.md:7", "1. Term")
    assert told["counts"] == {
        "amounts": 2, "dates": 1, "numbers": 1, "names": 1, "removed": 1, "reworded": 1, "moved": 1
    }  # fmt: skip
    lines = [*difference_as_lines(compare(before, after))]
    assert lines[0].startswith("a.md -> b.md: 8 changes")
    assert "   - \u201cThe notice period is three months.\u201d (a.md:7)" in lines


def test_a_document_compared_with_itself_has_no_change() -> None:
    assert changes(OLD, OLD) == []
    assert changes("", OLD)[0][0] == "added"
    assert changes(OLD, "")[0][0] == "removed"


def test_what_says_the_same_in_another_layout_has_not_changed() -> None:
    wrapped = "\n\n".join("\n".join(textwrap.wrap(part, 40)) if "|" not in part else part for part in OLD.split("\n\n"))
    assert changes(OLD, wrapped) == []
    renumbered = OLD.replace("## 4.", "## 5.").replace("## 3.", "## 4.")
    assert changes(OLD, renumbered) == [], "a number changes whenever a section before it comes"
    joined = OLD.replace("2024. The notice", "2024, and the notice").replace("4,500. Invoices", "4,500; invoices")
    assert {kind for kind, _ in changes(OLD, joined)} == {"reworded"}, "a sentence joined to another is no value lost"


@pytest.mark.parametrize(
    ("before", "after", "kind", "summary"),
    [
        ("The deposit is $250.", "The deposit is $2,500.", "amounts", "deposit: $250 -> $2,500"),
        ("It weighs 1.5 kg today.", "It weighs 15 kg today.", "numbers", "1.5 kg -> 15 kg"),
        ("Meet at 9:30 in the hall.", "Meet at 10:30 in the hall.", "numbers", "9:30 -> 10:30"),
        ("Deadline: 3 May 2025", "Deadline: 4 May 2025", "dates", "Deadline: 3 May 2025 -> 4 May 2025"),
        ("Berg signs for the yard.", "Vik signs for the yard.", "names", "Berg -> Vik"),
        ("Visitors must not smoke here.", "Visitors must smoke here.", "reworded", "reworded: not -> nothing"),
        ("The order is ST-4471 now.", "The order is ST-4472 now.", "numbers", "order: ST-4471 -> ST-4472"),
        ("The rate is 5% a year.", "The rate is 5.5% a year.", "numbers", "rate: 5% -> 5.5%"),
    ],
)
def test_a_changed_value_is_named(before: str, after: str, kind: str, summary: str) -> None:
    ((found, said),) = changes(f"The yard opens late.\n\n{before}\n", f"The yard opens late.\n\n{after}\n")
    assert (found, said.removeprefix("Agreement: ")) == (kind, summary)


def test_lines_of_a_plain_list_are_compared_one_by_one() -> None:
    before = "Price list\nLamp 12 EUR\nBulb 3 EUR\nCable 7 EUR\n"
    assert changes(before, before.replace("3 EUR", "4 EUR"), "list.txt") == [("amounts", "3 EUR -> 4 EUR")]


def test_a_value_changed_within_a_section_that_moved_is_found_too() -> None:
    found = changes(OLD, newer().replace("100,000", "200,000"))
    assert ("amounts", "Liability: EUR 100,000 -> EUR 200,000") in found
    assert "moved" in {kind for kind, _ in found}


def test_code_is_compared_line_by_line() -> None:
    before = "import os\n\nTIMEOUT = 30\nRETRIES = 3\n"
    ((kind, summary),) = changes(before, before.replace("30", "45"), "settings.py")
    assert (kind, summary.endswith("30 -> 45")) == ("numbers", True)


def laid_out(text: str, width: int, lines: int, size: int, footer: str, name: str) -> DocumentText:
    """Return a text as a PDF of this layout."""
    rows = list[tuple[str, int, str]]()
    for block in text.split("\n\n"):
        if block.startswith("#"):
            rows.append((block.lstrip("# "), size + 5, "F2"))
        else:
            rows += [(line, size, "F1") for line in textwrap.wrap(" ".join(block.split()), width)]
        rows.append(("", size, "F1"))
    pages = list[str]()
    for first in range(0, len(rows), lines):
        page, bottom = at(280, 30, footer.format(len(pages) + 1), 8), 790.0
        for line, height, font in rows[first : first + lines]:
            bottom -= 1.4 * height
            page += at(60, bottom, line, height, font) if line else ""
        pages.append(page)
    return text_of_file(parse(Path(name), pdf_file(pages)))


def test_two_pdfs_of_one_text_say_the_same() -> None:
    text = "\n\n".join(part for part in OLD.split("\n\n") if "|" not in part)
    first = laid_out(text, 80, 30, 11, "Page {}", "a.pdf")
    second = laid_out(text, 55, 9, 13, "{}", "b.pdf")
    assert len(first.pages) != len(second.pages)
    assert compare(first, second).changes == ()
    changed = laid_out(text.replace("three months", "six months"), 55, 9, 13, "{}", "b.pdf")
    ((kind, page),) = [(one.kind, one.before.page) for one in compare(first, changed).changes if one.before]
    assert (kind, page) == ("numbers", 1)


words = st.text(alphabet="abc ABC.,:;\n#|-*0123456789()", max_size=300)


@given(words, words)
def test_whatever_is_compared_every_quotation_stands_in_its_document(one: str, other: str) -> None:
    before, after = document(one, "a.md"), document(other, "b.md")
    assert compare(before, before).changes == ()
    for change in compare(before, after).changes:
        assert change.before or change.after
        for side, place in ((before, change.before), (after, change.after)):
            assert place is None or side.text[place.start : place.end] == place.text


def test_rows_of_a_sheet_are_told_by_their_names_and_not_by_their_numbers() -> None:
    def sheet(rows: list[tuple[str, int]]) -> DocumentText:
        text = "Item,Price,Valid\n" + "".join(f"{name},{price},2024-05-01\n" for name, price in rows)
        return text_of_file(parse(Path("prices.csv"), text.encode()))

    before = [(f"Lamp {number}", 10 + number) for number in range(12)]
    after = [*before[:3], ("Lamp 3", 99), *before[4:7], *before[8:], ("Cable", 7)]
    changes = compare(sheet(before), sheet(after)).changes
    assert [one.summary for one in changes] == ["Lamp 3: 13 -> 99", "removed: Lamp 7", "added: Cable"]


def test_what_begins_in_the_middle_of_a_long_line_is_no_heading_and_costs_no_more() -> None:
    def seconds(text: str) -> float:
        sections = tuple((start, ("Rules",)) for start in range(0, len(text), 1000))
        read = DocumentText("a.md", "Rules", text, sections)
        began = time.process_time()
        assert not [one for one in read.statements if one.kind == "heading"]
        return time.process_time() - began

    assert seconds("A. " * 50_000) < 5 * seconds("A. A. A. A. A.\n" * 10_000)


def test_words_that_were_only_struck_out_are_a_change() -> None:
    assert changes("# Quay\n\nPets are allowed.\n", "# Quay\n\nPets are ~~allowed~~.\n")
    assert changes("# Quay\n\nPets are ~~allowed~~.\n", "# Quay\n\nPets  are ~~allowed~~.\n") == []
