"""A brief: every line is a quotation, the lines say different things, and each list has what belongs to it."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.digests.brief import LISTS, Brief, write_brief
from local_rag.digests.output import brief_as_dict, brief_as_lines, brief_as_markdown
from local_rag.digests.statements import without_stop
from tests.digests.texts import OLD, document

MINUTES = """# Harbour committee, 4 May 2025

## Crane

The crane needs a new rope before winter. The new rope for the crane costs EUR 7,400. The harbour pays for the rope of
the crane. The rope must be ordered no later than 1 July 2025.

## Staff

Ines Moen, head of the workshop, reports that two people are ill. Who replaces them in June?

## Shed

The colour of the shed is still to be decided. It was painted on 3 August 2019.
"""


def texts(brief: Brief, kind: str) -> list[str]:
    return [line.place.text for line in brief.lists[kind]]  # type: ignore[index]


def test_each_list_has_its_lines_and_dates_come_in_their_order() -> None:
    brief = write_brief([document(MINUTES)])
    assert [line.value for line in brief.lists["timeline"]] == ["3 August 2019", "1 July 2025"]
    assert texts(brief, "amounts") == ["The new rope for the crane costs EUR 7,400."]
    assert [line.value for line in brief.lists["roles"]] == ["Ines Moen"]
    assert texts(brief, "obligations") == ["The rope must be ordered no later than 1 July 2025."]
    assert texts(brief, "questions") == ["Who replaces them in June?", "The colour of the shed is still to be decided."]


def test_values_have_no_full_stop_and_dates_need_no_year() -> None:
    text = (
        "# Clinic, 2 March 2026\n\nThe account manager is Fiona Tarrant. The course began on 5 May 2025.\n\n"
        "Wir kommen am 20. April. Oonagh Pell leaves the clinic on 30 April. The post opens on 1 May 2027.\n"
    )
    brief = write_brief([document(text)])
    assert [line.value for line in brief.lists["roles"]] == ["Fiona Tarrant"]
    dates = ["5 May 2025", "20. April", "30 April", "1 May 2027"]
    assert [line.value for line in brief.lists["timeline"]] == dates


@pytest.mark.parametrize(
    ("value", "kept"), [("31 March.", "31 March"), ("7:30 am.", "7:30 am"), ("7:30 a.m.", "7:30 a.m."), ("4.5", "4.5")]
)
def test_the_stop_of_a_sentence_is_no_part_of_its_last_value(value: str, kept: str) -> None:
    assert without_stop(value) == kept


def test_a_question_that_the_text_answers_is_not_open() -> None:
    answered = "# Leave\n\nHow long is the leave? It lasts for twenty weeks.\n"
    assert texts(write_brief([document(answered)]), "questions") == []


def test_as_many_lines_carry_the_document_as_are_wished_for() -> None:
    assert len(write_brief([document(MINUTES)], 3).lines) == 3
    (best,) = write_brief([document(MINUTES)], 1).lines
    assert "crane" in best.place.text, "its words recur most"
    assert [line.place.start for line in write_brief([document(MINUTES)], 5).lines] == sorted(
        line.place.start for line in write_brief([document(MINUTES)], 5).lines
    )


def test_lines_say_different_things() -> None:
    repeated = "The boat leaves the harbour at nine every day.\n\n" * 5 + "Tickets for the boat are sold on the pier.\n"
    lines = [line.place.text for line in write_brief([document(repeated, "boat.txt")], 2).lines]
    assert len(set(lines)) == 2


def test_of_several_documents_each_has_a_line() -> None:
    brief = write_brief([document(MINUTES, "a.md"), document(OLD, "b.md"), document("Short.", "c.md")], 2)
    assert {line.place.path for line in brief.lines} == {"a.md", "b.md", "c.md"}


def test_a_brief_is_shown_as_lines_as_markdown_and_as_json() -> None:
    brief = write_brief([document(MINUTES)])
    lines = [*brief_as_lines(brief)]
    assert "Names and roles:" in lines
    assert "  EUR 7,400: \u201cThe new rope for the crane costs EUR 7,400.\u201d (agreement.md:5)" in lines
    markdown = brief_as_markdown(brief, str)
    assert markdown.startswith("# Brief\n\n## Harbour committee, 4 May 2025 > Crane\n\n- \u201c")
    told = brief_as_dict(brief)
    assert set(told) == {"documents", "lines", "left_out", *LISTS}
    assert told["timeline"][0]["value"] == "3 August 2019"


words = st.text(alphabet="abc AB.,:;?\n#|-*019", max_size=400)


@given(words, st.integers(1, 5))
def test_every_line_stands_in_the_document_word_for_word(text: str, lines: int) -> None:
    one = document(text, "any.md")
    brief = write_brief([one], lines)
    assert len(brief.lines) <= lines
    for line in chain(brief.lines, *brief.lists.values()):
        assert one.text[line.place.start : line.place.end] == line.place.text
