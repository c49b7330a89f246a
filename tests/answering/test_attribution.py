"""The units that a sentence of an answer stands on: those with its words that the question lacks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.answering.attribution import MOST_UNITS, Attribution, Attributor
from local_rag.answering.selection import whole_sources
from tests.fakes import passage

BOAT = "The boat leaves at seven. It carries mail to the islands."


def attributor(question: str, *texts: str, title: str = "") -> Attributor:
    return Attributor(
        question, whole_sources(question, [[passage(text, key=key, title=title) for key, text in enumerate(texts)]])
    )


def stands_on(found: Attribution) -> list[tuple[int, str]]:
    return [(source, unit.text) for source, unit in found.units]


def test_a_sentence_stands_on_the_unit_with_its_new_words() -> None:
    found = attributor("When does the boat leave?", "The boat leaves, and the boat is red.", BOAT)
    answer = found.attribute("The boat leaves at seven.")
    assert stands_on(answer) == [(1, "The boat leaves at seven.")]
    assert (answer.coverage, answer.missing) == (1.0, ())


def test_a_sentence_may_stand_on_several_units_of_a_passage() -> None:
    answer = attributor("What of the boat?", BOAT, "Bread is rye.").attribute("It carries mail and bread at seven.")
    assert {text for _, text in stands_on(answer)} == {"It carries mail to the islands.", "The boat leaves at seven."}
    assert answer.coverage < 1.0, "the bread is in another passage"


def test_a_number_may_stand_in_the_sentence_before() -> None:
    text = "Our café caters for up to 60 people. Above that you may bring your own caterer. It costs 80 euro."
    found = attributor("We are 90 people. May we bring our own caterer?", text)
    answer = found.attribute("Yes, above 60 people you may bring your own caterer.")
    assert {text for _, text in stands_on(answer)} == {
        "Above that you may bring your own caterer.",
        "Our café caters for up to 60 people.",
    }
    assert not answer.missing
    assert found.attribute("Yes, above 80 people you may bring your own caterer.").missing == ("80",)


def test_a_sentence_of_the_questions_words_stands_on_the_unit_that_shares_most() -> None:
    found = attributor("May dogs come?", "Cats may not come.", "Dogs may come aboard.")
    assert stands_on(found.attribute("Dogs may come.")) == [(1, "Dogs may come aboard.")]


def test_headings_count_as_words_of_their_units() -> None:
    found = attributor("How long?", "## Norway\n30 weeks.\n\n## Ireland\n26 weeks.", title="Leave")
    answer = found.attribute("In Ireland leave is 26 weeks.")
    assert stands_on(answer)[0] == (0, "26 weeks.")
    assert answer.coverage == 1.0


def test_what_no_unit_says_covers_less_and_other_numbers_are_missing() -> None:
    found = attributor("When does it leave?", BOAT)
    answer = found.attribute("The boat leaves at 8:00 with llamas.")
    assert stands_on(answer)[0] == (0, "The boat leaves at seven.")
    assert 0 < answer.coverage < 0.5
    assert answer.missing == ("8:00",)
    none = found.attribute("Bananas ripen.")
    assert (none.units, none.coverage) == ((), 0.0)


def test_a_number_alone_does_not_make_another_unit_belong_to_a_sentence() -> None:
    found = attributor("What does a bed cost?", "A bed costs 890 kroner, linen included. The boat costs 460 kroner.")
    answer = found.attribute("A bed costs 460 kroner, linen included.")
    assert stands_on(answer) == [(0, "A bed costs 890 kroner, linen included.")]
    assert answer.missing == ("460 kroner",)
    both = found.attribute("A bed costs 890 kroner and the boat 460 kroner.")
    assert len(both.units) == 2
    assert not both.missing


def test_a_sentence_without_units_or_with_few_of_its_words_in_them_is_not_supported() -> None:
    found = attributor("When does it leave?", BOAT)
    assert found.attribute("The boat leaves at seven.").is_supported
    assert not found.attribute("Bananas ripen.").is_supported
    assert not found.attribute("The boat brings bananas, apples, pears, plums and cherries.").is_supported


def test_sources_are_close_if_they_share_a_word_with_the_question() -> None:
    assert attributor("Which boats?", BOAT).is_close
    assert not attributor("How long is a camel?", BOAT).is_close
    assert attributor("When?", BOAT).is_close, "there is no word to look for"
    assert not attributor("How long is a camel?").is_close


_WORDS = st.lists(st.sampled_from(["boat", "mail", "seven", "rye", "26", "Norway", "the", "is"]), max_size=8).map(
    " ".join
)


@given(_WORDS, st.lists(_WORDS.filter(bool), max_size=5), _WORDS)
def test_coverage_is_a_share_and_only_units_that_add_words_are_named(
    question: str, texts: list[str], sentence: str
) -> None:
    found = attributor(question, *texts).attribute(sentence)
    assert -1e-9 <= found.coverage <= 1 + 1e-9
    assert len(found.units) <= MOST_UNITS
    assert len(set(found.units)) == len(found.units)
    assert bool(found.units) == (found.coverage > 0)


@given(_WORDS, st.lists(_WORDS.filter(bool), min_size=1, max_size=5), st.data())
def test_a_sentence_of_the_sources_stands_on_some_unit(question: str, texts: list[str], data: st.DataObject) -> None:
    sentence = data.draw(st.sampled_from(texts))
    assert attributor(question, *texts).attribute(sentence).units or set(sentence.split()) <= {"the", "is"}


@given(_WORDS, _WORDS.filter(bool))
def test_a_sentence_of_the_only_source_is_wholly_covered(question: str, text: str) -> None:
    found = attributor(question, text).attribute(text)
    assert found.coverage == pytest.approx(1.0) or set(text.split()) <= {"the", "is"}
    assert found.missing == ()


def test_a_name_that_begins_the_second_clause_is_checked_too() -> None:
    found = attributor("When is the boat?", "The boat leaves on Wednesdays and Saturdays and takes 55 minutes.")
    assert found.attribute("The boat leaves on Wednesdays and Saturdays and takes 55 minutes.").missing == ()
    assert found.attribute("The boat leaves on Wednesdays and Friday and takes 55 minutes.").missing == ("Friday",)


def test_only_a_short_qualifier_is_left_out() -> None:
    found = attributor("How often is it greased?", "At the rock it is greased every 4 months, because of the salt.")
    short = found.attribute("Under the Policy of 2024, it is greased every 4 months because of the salt.")
    assert (short.sentence[:9], short.missing) == ("It is gre", ())
    whole = "At the rock the bearing is greased about every 3 months, because of the salt."
    assert found.attribute(whole).missing == ("3 months",)
