"""What of an answer stands in its sources: numbers, dates, units, names, however they are written."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_rag.answering.answerer import REFUSAL, Answerer
from local_rag.verification.check import check_support
from local_rag.verification.sentences import cited_sentences, split_sentences
from tests.fakes import FakeGenerator, FakeReranker, passage


def missing(answer: str, *texts: str, question: str = "?") -> list[str]:
    found = check_support(question, answer, [passage(text) for text in texts])
    assert all(support.supported == (not support.missing) for support in found.sentences)
    return [word for support in found.sentences for word in support.missing]


@pytest.mark.parametrize(
    ("answer", "source"),
    [
        ("It costs 1,200 kroner.", "The price: 1200 NOK."),
        ("It costs 1 200 kr.", "The price: 1,200 kroner."),
        ("It is 1.50 km long.", "The road has 1.5 kilometres."),
        ("It is 85 %.", "It is 85 per cent."),
        ("It costs $5 to $10.", "It costs $5-10."),
        ("It left on 3 May 2024.", "left 2024-05-03"),
        ("It left on May 3rd, 2024.", "left 03.05.2024"),
        ("It left on 3 May 2024.", "In 2024: from 1 to 3 May."),
        ("It opens at 7 p.m. daily.", "Open at 19:00."),
        ("It takes 12 days.", "It takes twelve days."),
        ("It is the 1st door.", "It is the first door."),
        ("It takes 5 minutes.", "It takes 5 min."),
        ("It takes three days.", "It takes some days."),
        ("Take 5 mg or 10 mg.", "Take 5 or 10 mg."),
        ("It had 1.3 million kroner.", "NOK 1,300,000"),
        ("It is 2 hours.", "| hours | 2 |"),
        ("Ask Brid Loughnane's office.", "Bríd Loughnane, safety officer"),
        ("Norwegian law applies.", "The law of Norway."),
        ("The U.S. Army left.", "The United States Army left."),
        ("Use the ST4471 now.", "the gauge ST-4471"),
        ("However, Dogs are not allowed.", "No dogs."),
        ("See https://example.org/Guide42 now.", "See the guide."),
        ("1. Press the button.\n2. Wait.", "Press the button and wait."),
    ],
)
def test_what_means_the_same_is_found(answer: str, source: str) -> None:
    assert missing(answer, source) == []


@pytest.mark.parametrize(
    ("answer", "source", "lacks"),
    [
        ("It takes 5 mg.", "It takes 5 g.", ["5 mg"]),
        ("It is 1.5 km.", "It is 15 km.", ["1.5 km"]),
        ("It costs 1.3 billion kroner.", "It costs 1.3 million kroner.", ["1.3 billion kroner"]),
        ("It left on 4 May 2024.", "left 2024-05-03", ["4 May 2024"]),
        ("It left on 3 May 2025.", "left 2024-05-03", ["3 May 2025"]),
        ("It opens at 7 p.m. daily.", "Open at 07:00.", ["7 pm"]),
        ("Torvneset.", "Hraunvik.", ["Torvneset"]),
        ("Ask Ingrid Solvang now.", "Ask Niamh Corless now.", ["Ingrid", "Solvang"]),
        ("It is E05.", "It is E04.", ["E05"]),
        ("In Austria it rains.", "In Australia it rains.", ["Austria"]),
        ("Call 800-827-1000.", "Call 800-827-1001.", ["800-827-1000"]),
    ],
)
def test_what_differs_is_missing(answer: str, source: str, lacks: list[str]) -> None:
    assert [word.rstrip(".") for word in missing(answer, source)] == lacks


def test_the_words_of_the_question_are_taken_as_said() -> None:
    assert missing("In Ireland 26 weeks.", "26 weeks", question="How long in Ireland?") == []
    assert missing("In Norway 26 weeks.", "26 weeks", question="How long in Ireland?") == ["Norway"]


def test_a_number_that_the_source_says_of_something_else_is_missing() -> None:
    source = "For twins the leave of each parent is 5 weeks longer.\nThe mother has 26 weeks of paid leave."
    question = "My partner is expecting twins. How much longer is my leave?"
    assert missing("5 weeks longer.", source, question=question) == []
    assert missing("26 weeks longer.", source, question=question) == ["26 weeks"]


def test_only_what_is_cited_counts() -> None:
    assert missing("It is 26 weeks [1].", "It is 30 weeks.", "It is 26 weeks.") == ["26 weeks"]
    assert missing("It is 26 weeks [1, 2].", "It is 30 weeks.", "It is 26 weeks.") == []
    assert missing("It is 26 weeks.", "It is 30 weeks.", "It is 26 weeks.") == [], "nothing is cited"


def test_a_sentence_stands_on_the_next_citation_and_behind_the_last_on_that() -> None:
    sentences = cited_sentences("It is 3. So it is [2]. Or 4 [1]. Perhaps.")
    assert [(one.citations, one.own) for one in sentences] == [((2,), False), ((2,), True), ((1,), True), ((1,), False)]


def test_abbreviations_decimals_and_list_numbers_end_no_sentence() -> None:
    text = "At 1.5 km, e.g. Dr. Smith went. [1] J. R. left at 7 p.m. today.\n1. Do this.\n2. Do that [2]. Yes!"
    parts = split_sentences(text)
    assert "".join(parts) == text
    assert [part.strip() for part in parts] == [
        "At 1.5 km, e.g. Dr. Smith went. [1]",
        "J. R. left at 7 p.m. today.",
        "1. Do this.",
        "2. Do that [2].",
        "Yes!",
    ]


_WORDS = st.lists(
    st.sampled_from(["the", "boat", "carries", "mail", "Gråskjær", "and", "ST-4471", "within"]), max_size=9
)
_NUMBERS = st.integers(0, 10**7).map(str) | st.decimals(0, 9999, places=2).map(str)
_UNITS = st.sampled_from(["", "km", "%", "kroner", "weeks of leave", "m/s"])


@settings(max_examples=60)
@given(_WORDS, _NUMBERS, _UNITS, _WORDS)
def test_a_quoted_sentence_is_always_supported(before: list[str], number: str, unit: str, behind: list[str]) -> None:
    sentence = " ".join([*before, number, unit, *behind]).strip()
    assert missing(f"{sentence} [1].", f"It rains.\n{sentence}.\nIt snows.") == []


@settings(max_examples=60)
@given(_WORDS, _NUMBERS, _UNITS, st.data())
def test_a_number_with_another_digit_never_is(before: list[str], number: str, unit: str, data: st.DataObject) -> None:
    place = data.draw(st.sampled_from([match.start() for match in re.finditer(r"\d", number)]))
    digit = data.draw(st.sampled_from([digit for digit in "123456789" if digit != number[place]]))
    other = f"{number[:place]}{digit}{number[place + 1 :]}"
    source = " ".join([*before, number, unit]).strip()
    wrong = " ".join([*before, other, unit]).strip()
    assert missing(f"{wrong} [1].", source)


@settings(max_examples=100)
@given(st.text(), st.text(), st.text())
def test_no_text_is_too_odd(question: str, answer: str, source: str) -> None:
    found = check_support(question, answer, [passage(source)], FakeReranker(lambda _question, _text: 1.0))
    assert found.text == "".join(split_sentences(answer))


@given(st.lists(st.sampled_from([" [1]", " [2]", "[Source 1]", ".", "\n", "7 boats", "9 cats", "So"]), max_size=12))
def test_however_citations_move_each_sentence_keeps_its_words(pieces: list[str]) -> None:
    answer, passages = "".join(pieces), [passage("9 cats."), passage("7 boats.")]
    found = check_support("?", answer, passages, FakeReranker(lambda _, text: 9.0 if "7" in text else 0.0))
    words = [re.sub(r"\[(?:Source )?\d\]|\s", "", text) for text in (found.text, answer)]
    assert words[0] == words[1]
    assert len(found.sentences) == len(split_sentences(answer))


def fits(sentence: str, text: str) -> float:
    return 9.0 if text.partition(" ")[0] in sentence else 0.0


def test_a_citation_moves_to_a_clearly_better_passage() -> None:
    passages = [passage("Bread is baked."), passage("Boats leave at 7:00.")]
    found = check_support("?", "Boats leave at 7:00 [1]. Bread is baked [1].", passages, FakeReranker(fits))
    assert found.text == "Boats leave at 7:00 [2]. Bread is baked [1]."
    assert found.changes == ((1, 2),)
    assert [(one.citations, one.supported, one.score) for one in found.sentences] == [
        ((2,), True, 9.0),
        ((1,), True, 9.0),
    ]


def test_a_citation_never_moves_to_what_lacks_a_number() -> None:
    passages = [passage("They leave at 7:00."), passage("Boats leave at 8:00.")]
    found = check_support("?", "Boats leave at 7:00 [1].", passages, FakeReranker(fits))
    assert (found.text, found.changes) == ("Boats leave at 7:00 [1].", ())


def test_a_sentence_without_citation_gets_one_where_its_neighbours_lacks_what_it_says() -> None:
    passages = [passage("Bread costs 4 euro."), passage("Boats leave at 7:00.")]
    found = check_support("?", "Boats leave at 7:00. Bread costs 4 euro [1].", passages, FakeReranker(fits))
    assert found.text == "Boats leave at 7:00. [2] Bread costs 4 euro [1]."
    assert [one.citations for one in found.sentences] == [(2,), (1,)]
    for text in ("Boats leave at 8:00. Bread costs 4 euro [1].", "Boats leave at 7:00 [1]. Bread costs 5 euro."):
        found = check_support("?", text, passages, FakeReranker(lambda *_: 0.0))
        assert (found.text, found.changes) == (text, ()), "it stands nowhere, or fits no better"
        assert not found.sentences[0].supported


def test_a_sentence_without_citation_stands_on_what_its_neighbour_is_made_to_cite() -> None:
    passages = [passage("Bread is baked."), passage("Boats leave at 7:00, in winter at 9:00.")]
    found = check_support("?", "In winter at 9:00. Boats leave at 7:00 [1].", passages, FakeReranker(fits))
    assert found.text == "In winter at 9:00. Boats leave at 7:00 [2]."
    assert [(one.citations, one.supported) for one in found.sentences] == [((2,), True), ((2,), True)]


def test_strict_leaves_out_what_is_unsupported_and_refuses_where_nothing_is_left() -> None:
    source, pieces = [passage("It leaves at 7:00.")], list[str]()
    half = Answerer(FakeGenerator(lambda _prompt: "It leaves at 7:00 [1]. It costs 26 euro [1]."), 0.0)
    plain = half.answer("When?", source)
    assert [support.missing for support in plain.support] == [(), ("26 euro",)]
    strict = half.answer("When?", source, strict=True, on_text=pieces.append)
    assert strict.support == plain.support
    assert (strict.text, strict.answered, pieces) == ("It leaves at 7:00 [1].", True, ["It leaves at 7:00 [1]."])
    pieces.clear()
    none = Answerer(FakeGenerator(lambda _prompt: "It costs 26 euro [1]."), 0.0)
    refusal = none.answer("When?", source, strict=True, on_text=pieces.append)
    assert (refusal.text, refusal.answered, refusal.citations, pieces) == (REFUSAL, False, (), [REFUSAL])
