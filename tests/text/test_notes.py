"""Notes where their signs stand: written, found again, and kept with their sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.text.notes import note, note_spans, split_notes
from local_rag.text.sentences import split_sentences


def test_a_note_is_one_line_in_brackets_and_none_without_text() -> None:
    assert note(" Not on\n Sundays. ") == " (Note: Not on Sundays.)"
    assert note("Why?", "Comment") == " (Comment: Why?)"
    assert note(" \n") == ""


@pytest.mark.parametrize(
    ("text", "kept", "notes"),
    [
        ("Fees (Note: in pounds)", "Fees", "(Note: in pounds)"),
        ("Dogs (Note: 2 (kg). Old.) or cats (Comment: why?).", "Dogs or cats.", "(Note: 2 (kg). Old.) (Comment: why?)"),
        ("Dogs (Note: never closed", "Dogs (Note: never closed", ""),
        ("Note: an ordinary line (see Note: 3)", "Note: an ordinary line (see Note: 3)", ""),
    ],
)  # fmt: skip
def test_notes_are_found_again_up_to_their_own_bracket(text: str, kept: str, notes: str) -> None:
    assert split_notes(text) == (kept, notes)


def test_a_note_belongs_to_the_sentence_of_its_sign_however_many_sentences_it_has() -> None:
    half = "Half is due. (Note: If the hall is shut, a quarter. Never less (by law). None after May.) "
    assert split_sentences(f"{half}The rest is due later. Bye.") == [half, "The rest is due later. ", "Bye."]
    within = "A player (Note: not the leader. Nor a guest.) may send a deputy. "
    assert split_sentences(f"{within}Once.") == [within, "Once."]


def test_a_note_in_the_next_line_is_a_line_of_its_own() -> None:
    assert split_sentences("Half is due.\n(Note: to all.)") == ["Half is due.\n", "(Note: to all.)"]


@given(st.lists(st.sampled_from(["A. ", "(Note: ", "(", ")", "b ", "\n", "(Comment: "]), max_size=20).map("".join))
def test_spans_are_apart_and_no_text_is_lost(text: str) -> None:
    assert "".join(split_sentences(text)) in {text, ""}
    last = 0
    for start, end in note_spans(text):
        assert last <= start < end <= len(text)
        assert text[end - 1] == ")"
        last = end
