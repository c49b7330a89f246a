from hypothesis import given
from hypothesis import strategies as st

from local_rag.document_records import Chunk
from local_rag.indexing.distinction import (
    TUNING,
    Distinction,
    context_needs,
    distinguishing_terms,
    opening_of,
    terms_of,
)

FORM = "This agreement is about the lifts at {}. It was made in {} with {}. The Contractor keeps the lifts in order."
VALUES = (
    ("Harrow Court", 2017, "Tolland & Pike"),
    ("6 Mere Street", 2018, "Ascendra"),
    ("Pellow Tower", 2019, "Verrel Lifts"),
)
SITES = [FORM.format(*values) for values in VALUES]


def distinguishing_of(text: str, *others: str) -> list[str]:
    return distinguishing_terms(terms_of("Agreement", text), [terms_of("Agreement", other).numbers for other in others])


def test_names_and_years_that_others_lack_set_a_document_apart() -> None:
    assert distinguishing_of(SITES[0], *SITES[1:])[:3] == ["Harrow Court", "2017", "Tolland & Pike"]
    assert distinguishing_of(SITES[1], SITES[0], SITES[2])[:3] == ["6 Mere Street", "2018", "Ascendra"]
    assert "Contractor" not in distinguishing_of(SITES[0], *SITES[1:])


def test_a_document_is_not_set_apart_from_none_or_from_its_like() -> None:
    assert distinguishing_of(SITES[0]) == []
    assert distinguishing_of(SITES[0], SITES[0]) == []


def test_words_make_up_for_missing_names() -> None:
    assert distinguishing_of("it speaks of herons", "it speaks of reeds", "it speaks of geese") == ["herons"]


def test_marks_within_a_word_make_it_a_name_and_articles_are_left_away() -> None:
    terms = terms_of("", "The Blue Door sells the model D20 and calls get_user_name(x) of org.apache.Flink.")
    assert {"Blue Door", "D20", "org.apache.Flink"} <= set(terms.spellings.split("\n"))


@given(st.text(max_size=400), st.lists(st.text(max_size=200), max_size=3))
def test_what_is_said_is_bounded_and_stands_in_the_document(text: str, others: list[str]) -> None:
    found = distinguishing_of(text, *others)
    assert len(found) <= TUNING.terms
    assert all(len(term) <= 60 for term in found)
    folded = " ".join(f"Agreement\n{text}".split())
    assert all(term in folded for term in found)
    assert len(opening_of(text)) <= TUNING.opening


def test_endless_runs_are_read_in_no_time_and_say_nothing() -> None:
    for text in ("A" * 300_000, "A." * 150_000, "A " * 150_000, "a_" * 150_000 + "B"):
        assert all(len(term) <= 60 for term in terms_of("", text).spellings.split("\n"))


def test_the_opening_is_the_first_paragraph_that_is_no_heading() -> None:
    assert opening_of("# Title\n\n \nFirst\nline.\n\nSecond.") == "First line."
    assert set(opening_of("word " * 100).split(" ")) == {"word"}
    assert opening_of("# Title\n") == ""


def chunks(*texts: str) -> list[Chunk]:
    return [Chunk(position, 0, len(text), text) for position, text in enumerate(texts)]


def test_a_chunk_needs_what_it_does_not_say_where_another_document_is_near() -> None:
    terms = ["Harrow Court", "2017"]
    both = chunks("The fee is due.", "Harrow Court, 2017.", "Bees.", "Moths.", "Wasps.")
    near = TUNING.alike + 0.1
    assert set(context_needs(both, "", terms, [near, near, 0.2, 0.2, 0.2])) == {0}
    assert context_needs(both, "", terms, [0.2] * 5) == {}
    assert context_needs(both, "Harrow Court 2017", terms, [near] * 5) == {}
    assert context_needs(both, "", [], [1.0] * 5) == {}


def test_a_beginning_that_refers_to_something_before_needs_more() -> None:
    plain, dangling = (
        context_needs(chunks(text), "", ["Harrow"], [0.9])[0] for text in ("The fee is due.", "It is due.")
    )
    assert dangling > plain


def test_where_most_of_a_document_can_be_mistaken_all_of_it_gets_the_context() -> None:
    three = chunks("The fee is due.", "The keys hang here.", "Harrow, Lindum, Pellow.")
    assert set(context_needs(three, "", ["Harrow", "Lindum", "Pellow"], [0.9, 0.9, 0.9])) == {0, 1, 2}


def test_what_was_told_is_kept_as_it_was() -> None:
    said = Distinction(("Harrow Court", "2017"), "This is it.", {0: 0.9, 3: 0.8})
    assert Distinction.from_json(said.as_json()) == said
    assert Distinction.from_json("") == Distinction()
    assert said.context == "Harrow Court, 2017. This is it."
    assert said.holds_for("Harrow Court", "This is\nit. In 2017 nothing happened.")
    assert not said.holds_for("Harrow Court", "This is it. In 2018 nothing happened.")
    assert not Distinction().holds_for("any", "text")
