"""What of an answer stands in its sources: numbers, dates, units, names, however they are written."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_rag.text.facts import Source, missing_facts
from local_rag.text.sentences import split_sentences


def missing(answer: str, *texts: str, question: str = "?") -> list[str]:
    """Return the facts that the sentences of an answer say beyond the texts."""
    sources = [Source(text) for text in texts]
    return [fact.text for one in split_sentences(answer) for fact in missing_facts(question, one, sources)]


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
        ("It takes some days.", "It takes three days."),
        ("Take 5 mg or 10 mg.", "Take 5 or 10 mg."),
        ("It had 1.3 million kroner.", "NOK 1,300,000"),
        ("It is 2 hours.", "| hours | 2 |"),
        ("It is Brid Loughnane's office.", "Bríd Loughnane, safety officer"),
        ("The Australian law applies.", "The law of Australia."),
        ("The U.S. Army left.", "The United States Army left."),
        ("Use the ST4471 now.", "the gauge ST-4471"),
        ("However, Dogs are not allowed.", "No dogs."),
        ("See https://example.org/Guide42 now.", "See the guide."),
        ("1. Press the button.\n2. Wait.", "Press the button and wait."),
        ("Never in winter.", "Not in winter."),
        ("7", "At 7."),
        ("Mix it 3:1.", "mixed 3:1 by weight"),
        ("It starts at 14:30.", "from 2:30 pm"),
        ("Clause 2.10 applies.", "2.10 Termination"),
        ("It costs EUR 2.1.", "EUR 2.10"),
        ("It is 240 hours.", "at most 240 annual leave hours"),
        ("It needs 12 visits.", "12 yearly visits"),
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
        ("It is Torvneset.", "It is Hraunvik.", ["Torvneset"]),
        ("Torvneset Hotel.", "Hraunvik Hotel.", ["Torvneset"]),
        ("26.", "30", ["26"]),
        ("Ask Ingrid Solvang now.", "Ask Niamh Corless now.", ["Ingrid", "Solvang"]),
        ("It is E05.", "It is E04.", ["E05"]),
        ("In Austria it rains.", "In Australia it rains.", ["Austria"]),
        ("Call 800-827-1000.", "Call 800-827-1001.", ["800-827-1000"]),
        ("It is 4.20E-06 g.", "It is 4.20E-07 g.", ["4.20E-06 g"]),
        ("It is 0.0015 g.", "It is 1.5e-3 g.", []),
        ("It is 6.00.", "Row 6: Value: 3", ["6.00"]),
        ("Mix it 1:3.", "mixed 3:1 by weight", ["1:3"]),
        ("The scale is 1:100.", "at a scale of 1:1000", ["1:100"]),
        ("Clause 2.1 applies.", "clause 2.10 applies", ["2.1"]),
        ("It needs version 3.10.", "It needs version 3.1.", ["3.10"]),
    ],
)
def test_what_differs_is_missing(answer: str, source: str, lacks: list[str]) -> None:
    assert [word.rstrip(".") for word in missing(answer, source)] == lacks


def test_the_words_of_the_question_are_taken_as_said() -> None:
    assert missing("In Ireland 26 weeks.", "26 weeks", question="How long in Ireland?") == []
    assert missing("In Norway 26 weeks.", "26 weeks", question="How long in Ireland?") == ["Norway"]


def test_a_fact_may_be_in_any_of_the_sources() -> None:
    assert missing("It is 26 weeks in Norway.", "26 weeks", "Norway") == []
    assert missing("It is 26 weeks in Ireland.", "26 weeks", "Norway") == ["Ireland"]


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


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Wir kommen am 18. Oktober. Am 19. Mai reisen wir ab.", 2),
        ("Der Umsatz stieg im 2. Quartal. Danach fiel er.", 2),
        ("Die Suite ist im 3. Stock.", 1),
        ("The flat is in house 12. Oak trees stand around it.", 2),
        ("Das war 2019. Oktober und Mai waren nass.", 2),
    ],
)
def test_a_german_ordinal_ends_no_sentence_before_what_it_counts(text: str, number: int) -> None:
    assert len(split_sentences(text)) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("An die Tierklinik, z. Hd. Frau Dr. Farrar, Wexcombe. Danke.", 2),
        ("An die Klinik z.Hd. Frau Farrar. Danke.", 2),
        ("Sie liefern Futter, z. B. Heu, d.h. Gras, lt. Vertrag Nr. 7. Danke.", 2),
        ("i.A. Jansen, i. V. Moll", 1),
        ("Das gilt ggf. Montags, vgl. Abschnitt 2, inkl. Anfahrt, zzgl. Steuer und bzgl. Hunden.", 1),
        ("The film is in HD. It lasts an hour.", 2),
    ],
)
def test_abbreviations_of_german_letters_end_no_sentence(text: str, number: int) -> None:
    assert len(split_sentences(text)) == number


_WORDS = st.lists(
    st.sampled_from(["the", "boat", "carries", "mail", "Gråskjær", "and", "ST-4471", "within"]), max_size=9
)
_NUMBERS = st.integers(0, 10**7).map(str) | st.decimals(0, 9999, places=2).map(str)
_UNITS = st.sampled_from(["", "km", "%", "kroner", "weeks of leave", "m/s"])


@settings(max_examples=60)
@given(_WORDS, _NUMBERS, _UNITS, _WORDS)
def test_a_quoted_sentence_is_always_supported(before: list[str], number: str, unit: str, behind: list[str]) -> None:
    sentence = " ".join([*before, number, unit, *behind]).strip()
    assert missing(f"{sentence}.", f"It rains.\n{sentence}.\nIt snows.") == []


@settings(max_examples=60)
@given(_WORDS, _NUMBERS, _UNITS, st.data())
def test_a_number_with_another_digit_never_is(before: list[str], number: str, unit: str, data: st.DataObject) -> None:
    place = data.draw(st.sampled_from([match.start() for match in re.finditer(r"\d", number)]))
    digit = data.draw(st.sampled_from([digit for digit in "123456789" if digit != number[place]]))
    other = f"{number[:place]}{digit}{number[place + 1 :]}"
    source = " ".join([*before, number, unit]).strip()
    wrong = " ".join([*before, other, unit]).strip()
    assert missing(f"{wrong}.", source)


@settings(max_examples=100)
@given(st.text(), st.text(), st.text())
def test_no_text_is_too_odd(question: str, answer: str, source: str) -> None:
    parts = split_sentences(answer)
    assert "".join(parts) == (answer if answer.strip() else "")
    assert all(missing(answer, source, question=question))


@pytest.mark.parametrize(
    ("source", "missing"),
    [("Customer: Northgate; Status: open", ["one"]), ("Northgate placed a single order.", []), ("Orders: 1", [])],
)
def test_one_is_a_number_where_a_question_asks_how_many(source: str, missing: list[str]) -> None:
    found = missing_facts("How many orders did Northgate place?", "Northgate placed one order.", [Source(source)])
    assert [fact.text for fact in found] == missing
    assert not missing_facts("Which order is open?", "It is the one from Northgate.", [Source("Northgate: open")])
