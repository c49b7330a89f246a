"""Values in texts: read into a normal form whatever way they are written, and found again in their quotation."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.errors import QuestionError
from local_rag.extraction.columns import Column, Type, column_of_text, parse_columns
from local_rag.extraction.values import (
    chosen_among,
    find_phrase,
    find_values,
    items_of,
    longest_run,
    read_yes_no,
    whole_name,
)


@pytest.mark.parametrize(
    ("kind", "text", "shown"),
    [
        ("duration", "within ninety (90) days of receipt", "90 days"),
        ("duration", "mit einer Frist von einem Monat", "1 month"),
        ("duration", "at least two and a half years", "2.5 years"),
        ("duration", "10 working days", "10 working days"),
        ("amount", "a fee of \u20ac12,500.50 a year", "12,500.50 EUR"),
        ("amount", "44.800 \u00a3 kosten", "44,800 GBP"),
        ("amount", "$1.2 million", "1,200,000 USD"),
        ("amount", "| CHF | CHF 3,200,000 |", "3,200,000 CHF"),
        ("percentage", "99,9 %", "99.9 %"),
        ("percentage", "eight and a half percent", "8.5 %"),
        ("percentage", "50 bps", "0.5 %"),
        ("number", "vierundsiebzig Nutzer", "74"),
        ("number", "file R-2538/24 of 3 May 2024 lists 12 defects", "12"),
        ("date", "on the 3rd of March 2021", "2021-03-03"),
        ("date", "am 21. Dezember 2025", "2025-12-21"),
        ("date", "le 1er mai 2021", "2021-05-01"),
        ("date", "31.12.2022", "2022-12-31"),
        ("date", "in May 2024", "2024-05"),
    ],
)
def test_a_value_is_read(kind: Type, text: str, shown: str) -> None:
    assert [value.text for value in find_values(kind, text)][:1] == [shown]


@pytest.mark.parametrize(
    ("kind", "text"),
    [("date", "3 May"), ("date", "31.02.2024"), ("duration", "30 users"), ("amount", "12,500"), ("percentage", "12")],
)
def test_what_is_no_value_of_the_type_is_not_read(kind: Type, text: str) -> None:
    assert find_values(kind, text) == []


def test_a_date_that_can_be_read_in_two_ways_is_open() -> None:
    (value,) = find_values("date", "3/5/2024")
    assert value.open
    assert value.readings == {"2024-05-03", "2024-03-05"}


@given(st.dates(date(1900, 1, 1), date(2199, 12, 31)), st.sampled_from(["%d %B %Y", "%B %d, %Y", "%Y-%m-%d"]))
def test_every_date_is_read_as_it_was_written(day: date, form: str) -> None:
    assert [value.normal for value in find_values("date", f"It ends on {day.strftime(form)}.")] == [day.isoformat()]


@given(st.integers(1, 10**9), st.sampled_from(["EUR", "USD", "CHF", "GBP"]))
def test_every_amount_is_read_whatever_parts_its_thousands(amount: int, currency: str) -> None:
    for text in (f"{amount:,} {currency}", f"{currency} {amount:,}".replace(",", "."), f"{currency} {amount:,}.00"):
        assert [value.normal for value in find_values("amount", text)] == [f"{amount} {currency}"], text


@given(st.text(max_size=200), st.sampled_from(["number", "amount", "percentage", "date", "duration"]))
def test_a_value_lies_within_any_text(text: str, kind: Type) -> None:
    for value in find_values(kind, text):
        assert 0 <= value.start < value.end <= len(text)
        assert value.readings


@given(st.lists(st.from_regex(r"[A-Za-z0-9\u00e4]{1,8}", fullmatch=True), min_size=1, max_size=5))
def test_a_phrase_is_found_with_other_spaces_and_case(words: list[str]) -> None:
    text = f"| Name |  {'  '.join(words).upper()} |"
    assert find_phrase(text, " ".join(words).upper()) is not None


def test_a_phrase_is_not_found_within_a_word() -> None:
    assert find_phrase("Solventia", "Solvent") is None
    assert longest_run(
        "made for Meridian Optics Ltd (the \u201cCustomer\u201d)", "The customer is Meridian Optics"
    ) == (9, 24)


def test_a_name_keeps_the_full_stop_of_its_abbreviation() -> None:
    text = "| Supplier | Solvent Robotics Inc. |"
    start, end = whole_name(text, *(find_phrase(text, "Solvent Robotics Inc.") or (0, 0)))
    assert text[start:end] == "Solvent Robotics Inc."


def test_of_choices_the_longest_counts_and_two_do_not() -> None:
    column = parse_columns([{"name": "R", "question": "Result?", "type": "one of: passed | passed with conditions"}])[0]
    assert chosen_among(column, "It PASSED  with conditions.") == "passed with conditions"
    assert chosen_among(column, "passed, or passed with conditions") is None
    assert chosen_among(column, "surpassed") is None
    twice = "Passed with conditions. The result is: passed with conditions"
    assert chosen_among(column, twice) == "passed with conditions"


def test_items_and_yes() -> None:
    assert items_of("Lyon, Ghent and Leeds; EUR 1,000") == ["Lyon", "Ghent", "Leeds", "EUR 1,000"]
    assert [read_yes_no(text) for text in ("Yes.", "nein", "Noted")] == [True, False, None]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        (
            "Notice period: How long is the notice period? (duration)",
            Column("Notice period", "How long is the notice period?", "duration"),
        ),
        ("Who signed?", Column("Who signed", "Who signed?")),
        ("Law: Which law (if any) governs?", Column("Law", "Which law (if any) governs?")),
        ("R: Result? (one of: good / bad)", Column("R", "Result?", "one of", ("good", "bad"))),
        (": Who signed?", Column("Who signed", "Who signed?")),
        ("Name of the buyer (if any)", Column("Name of the buyer (if any)", "Name of the buyer (if any)")),
    ],
)
def test_a_column_is_written_as_text(text: str, column: Column) -> None:
    assert column_of_text(text) == column


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "There are no columns"),
        (["A: One? (date)", "a: Two?"], "Two columns are named"),
        ([{"name": "A", "question": "When?", "type": "dat"}], "did you mean 'date'?"),
        ([{"name": "A", "type": "date"}], "has no question"),
        (["Notice period:"], "has no question"),
        (["Notice period: (duration)"], "has no question"),
        (["Notice period: How long? (durration)"], "did you mean 'duration'?"),
        ([{"name": "A", "question": "Q?", "typ": "date"}], "did you mean 'type'?"),
        ([{"name": "A", "question": "Q?", "type": "one of: only"}], "is one of 1 values"),
        ([f"{number}: Q?" for number in range(101)], "at most 100"),
    ],
)
def test_wrong_columns_are_refused_in_a_sentence(given: list[object], said: str) -> None:
    with pytest.raises(QuestionError, match=said):
        parse_columns(given)  # type: ignore[arg-type]


def test_only_what_is_asked_changes_the_key_of_a_column() -> None:
    one, renamed = Column("A", "When?", "date"), Column("B", "When?", "date")
    assert one.key == renamed.key != Column("A", "When?", "text").key
