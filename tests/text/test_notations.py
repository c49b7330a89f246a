"""A number in another notation is the same, one with another digit, sign, scale or unit is another."""

import re
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_rag.text.facts import Source, find_facts, missing_facts


def lacks(sentence: str, source: str) -> bool:
    return bool(missing_facts("", sentence, [Source(source)]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("three months written notice", "3 months"),
        ("thirty (30) days", "30 days"),
        ("120 kilometres", "one hundred and twenty kilometres"),
        ("two and a half years", "2.5 years"),
        ("half a million euro", "EUR 500,000"),
        ("half an hour", "\u00bd hour"),
        ("1 1/2 cups", "1.5 cups"),
        ("two thirds of the members", "2/3 of the members"),
        ("a dozen eggs", "12 eggs"),
        ("twenty-five per cent", "25 %"),
        ("two per mille", "2 \u2030"),
        ("one thousand two hundred", "1,200"),
        ("one month", "1 month"),
        ("drei Monate", "3 months"),
        ("trois mois", "three months"),
        ("1.84 million", "1,840,000"),
        ("EUR 1.84m", "1.84 million euro"),
        ("$1.5bn", "1,500,000,000 dollars"),
        ("1.84m", "1,840,000"),
        ("5 lakh", "500,000"),
        ("1600 kEUR", "1.6 million euro"),
        ("2-3 days", "between two and three days"),
        ("-5 \u00b0C", "minus 5 \u00b0C"),
        ("\u22125 \u00b0C", "minus five \u00b0C"),
        ("CHF 1'250.50", "1250.50 francs"),
        ("1.234.567,89 EUR", "1,234,567.89 euro"),
        ("12 m\u00b2", "12 m2"),
    ],
)
def test_two_notations(one: str, other: str) -> None:
    assert not lacks(one, other)
    assert not lacks(other, one)


@pytest.mark.parametrize(
    ("sentence", "table"),
    [
        ("EUR 160", "| Price (EUR) |\n| 160 |"),
        ("EUR 160", "Row 6: Price (EUR): 160; Product: lamp"),
        ("3 %", "Rate (%)\n3"),
        ("1600 kEUR", "| Department | Budget (kEUR) |\n| Engineering | 1600 |"),
        ("EUR 1.6 million", "| Department | Budget (kEUR) |\n| Engineering | 1600 |"),
        ("2 million euro", "in millions of euro\n2"),
        ("In 2024, 36 months", "In 2024: 36 months"),
    ],
)
def test_the_unit_of_a_table_stands_apart(sentence: str, table: str) -> None:
    assert not lacks(sentence, table)


@pytest.mark.parametrize(
    ("sentence", "source"),
    [
        ("8", "9.8"),
        ("98", "9.8"),
        ("1250", "12.50"),
        ("-5 \u00b0C", "5 \u00b0C"),
        ("5 \u00b0C", "-5 \u00b0C"),
        ("minus five degrees", "five degrees"),
        ("-$5", "$5"),
        ("EUR 160", "GBP 160"),
        ("EUR 160", "London: GBP 160. Elsewhere EUR 140."),
        ("EUR 160", "JPY 160"),
        ("24 months", "Section 24. The warranty is 36 months."),
        ("24 months", "24 weeks"),
        ("49 months", "49 per month"),
        ("3 %", "3"),
        ("3", "3 %"),
        ("2 %", "2 \u2030"),
        ("three months", "six months"),
        ("two and a half years", "two years"),
        ("1.84 million", "1.84 billion"),
        ("12 kEUR", "12 EUR"),
        ("1600 EUR", "(kEUR)\n1600"),
        ("2-3 days", "2-4 days"),
        ("2-3 days", "2-3 weeks"),
        ("1 234,56", "1 234,57"),
        ("NOK5", "NOK6"),
        ("\u00bd hour", "\u00bc hour"),
        ("5 gallons", "5 milliseconds"),
        ("3 May 2024", "In 3 weeks, on 5 May 2024"),
        ("1 month", "12 months, in a contract"),
    ],
)
def test_what_is_not_the_same(sentence: str, source: str) -> None:
    assert lacks(sentence, source)


@pytest.mark.parametrize(
    "prose",
    [
        "no one can say which one is the first",
        "one of them, a single member, had the second half",
        "a third party once had another one",
        "an hour is a quarter of it",
    ],
)
def test_prose_has_no_numbers(prose: str) -> None:
    assert [fact.text for fact in find_facts(prose) if "hour" not in fact.text] == []


def grouped(value: int) -> str:
    return f"{value:,}"


_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
]
_ONES += ["seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def in_words(value: int) -> str:
    """Return a number below a million in words."""
    if value < 20:
        return _ONES[value]
    if value < 100:
        return _TENS[value // 10 - 2] + (f"-{_ONES[value % 10]}" if value % 10 else "")
    size, name = (1000, "thousand") if value >= 1000 else (100, "hundred")
    rest = f"{' and ' if value % size < 100 else ' '}{in_words(value % size)}" if value % size else ""
    return f"{in_words(value // size)} {name}{rest}"


NOTATIONS: dict[str, Callable[[int], str]] = {
    "plain": str,
    "commas": grouped,
    "spaces": lambda value: grouped(value).replace(",", " "),
    "apostrophes": lambda value: grouped(value).replace(",", "'"),
    "words": in_words,
    "decimals": lambda value: f"{value}.00",
    "thousands": lambda value: f"{Decimal(value) / 1000} thousand",
    "millions": lambda value: f"{(Decimal(value) / 10**6):f} million",
    "k": lambda value: f"{Decimal(value) / 1000}k",
}
UNITS = ["", " months", " weeks", " %", " kroner", " \u00b0C", " kg", " working days", " members"]
_VALUES = st.integers(2, 999_999)


@settings(max_examples=300)
@given(_VALUES, st.sampled_from(sorted(NOTATIONS)), st.sampled_from(sorted(NOTATIONS)), st.sampled_from(UNITS))
def test_the_same_number_in_any_two_notations(value: int, one: str, other: str, unit: str) -> None:
    sentence, source = f"It has {NOTATIONS[one](value)}{unit}.", f"There are {NOTATIONS[other](value)}{unit} left."
    assert not lacks(sentence, source)


@settings(max_examples=300)
@given(_VALUES, _VALUES, st.sampled_from(sorted(NOTATIONS)), st.sampled_from(sorted(NOTATIONS)), st.sampled_from(UNITS))
def test_another_number_in_any_two_notations(value: int, than: int, one: str, other: str, unit: str) -> None:
    sentence, source = f"It has {NOTATIONS[one](value)}{unit}.", f"There are {NOTATIONS[other](than)}{unit} left."
    assert lacks(sentence, source) == (value != than)


@settings(max_examples=300)
@given(_VALUES, st.sampled_from(sorted(NOTATIONS)), st.sampled_from(UNITS[1:-1]), st.sampled_from(UNITS[1:-1]))
def test_another_unit_or_sign(value: int, notation: str, one: str, other: str) -> None:
    written = NOTATIONS[notation](value)
    assert lacks(f"It has {written}{one}.", f"There are {written}{other} left.") == (
        one.rsplit(maxsplit=1)[-1] != other.rsplit(maxsplit=1)[-1]
    )
    minus = "minus " if notation == "words" else "-"
    assert lacks(f"It is {minus}{written}{one}.", f"There are {written}{one} left.")
    assert lacks(f"It is {written}{one}.", f"There are {minus}{written}{one} left.")


@settings(max_examples=300)
@given(st.decimals(0, 99_999, places=2), st.data())
def test_another_digit_or_separator(value: Decimal, data: st.DataObject) -> None:
    written = data.draw(st.sampled_from([f"{value}", f"{value:,}", f"{value}".replace(".", ",")]))
    place = data.draw(st.sampled_from([match.start() for match in re.finditer(r"[\d.,]", written)]))
    changed = written[:place] + data.draw(st.sampled_from("0123456789")) + written[place + 1 :]
    same = Decimal(re.sub(r",(?=\d\d\Z)", ".", changed).replace(",", "")) == value
    assert lacks(f"It is {changed} km.", f"The way has {written} km.") == (not same)


def test_a_bare_number_is_in_the_one_currency_of_its_text() -> None:
    (fact,) = find_facts("a surplus of 2.27 million kroner")
    assert fact.occurs_in(Source("Income was 14.32 million kroner and costs 12.05 million, a surplus of 2.27 million."))
    assert not fact.occurs_in(Source("Income was 14.32 million kroner or 1.2 million euro, a surplus of 2.27 million."))
    assert not fact.occurs_in(Source("Income was 14.32 million euro, a surplus of 2.27 million."))
