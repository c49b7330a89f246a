"""What a question may say of the columns of a view."""

from datetime import date

import pytest

from local_rag.tables.mentions import ROWS, Mention, mentions
from local_rag.tables.periods import find_periods, month_of
from local_rag.tables.relation_set import RelationSet
from local_rag.tables.views import View, view_of


def view(tables: RelationSet, name: str) -> View:
    return view_of(next(one for one in tables.named if one.table == name))


def found(tables: RelationSet, name: str, question: str) -> list[tuple[str, str, object]]:
    of = view(tables, name)

    def said(one: Mention) -> object:
        return one.values or (one.period.words if one.period else one.number)

    return [
        ("rows" if one.column == ROWS else of.columns[one.column].name, one.kind, said(one))
        for one in mentions(question, of, tables)
    ]


def test_a_value_is_found_by_its_words_and_by_some_of_them(tables: RelationSet) -> None:
    assert ("Customer", "value", ("Fjordan Freight",)) in found(tables, "orders_2024", "orders of fjordan freight")
    assert ("Customer", "value", ("Kessler GmbH",)) in found(tables, "orders_2024", "what did kessler order")
    assert ("Product", "value", ("Planner",)) in found(tables, "orders_2024", "how many Planner?")


def test_a_person_is_found_in_two_spellings(tables: RelationSet) -> None:
    assert ("Rider", "value", ("Ida Holm", "I. Holm")) in found(tables, "trips", "what did Ida spend")


def test_the_few_values_of_a_column_are_all_offered(tables: RelationSet) -> None:
    status = {one[2] for one in found(tables, "orders_2024", "anything?") if one[:2] == ("Status", "choice")}
    assert status == {("Delivered",), ("Cancelled",), ("Open",)}


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("more than 1,200 EUR", 1200),
        ("over 4.5", 4.5),
        ("above 3k", 3000),
        ("the three largest", 3),
        ("over 1:30", 1.5),
    ],
)
def test_a_number_may_be_compared_with_each_column_of_numbers(
    tables: RelationSet, question: str, number: float
) -> None:
    some = found(tables, "orders_2024", question)
    assert ("Qty", "number", number) in some
    assert ("Net EUR", "number", number) in some


def test_a_whole_number_may_say_how_many_rows(tables: RelationSet) -> None:
    assert ("rows", "limit", 3.0) in found(tables, "orders_2024", "the 3 largest orders")
    assert not [one for one in found(tables, "orders_2024", "over 1,200") if one[0] == "rows"]


@pytest.mark.parametrize("question", ["in Feb 2024", "im Februar 2024", "en février 2024"])
def test_a_month_is_a_time_of_each_column_of_dates(tables: RelationSet, question: str) -> None:
    [(column, kind, _)] = [one for one in found(tables, "orders_2024", question) if one[1] == "time"]
    assert (column, kind) == ("Order date", "time")


def test_the_number_of_a_year_is_no_number_of_rows(tables: RelationSet) -> None:
    assert not [one for one in found(tables, "orders_2024", "in 2024") if one[1] == "limit"]


def test_a_week_is_named_by_a_day_of_it() -> None:
    [week] = find_periods("Calls in the week of 30 November 2026")
    assert (week.words, week.first, week.after) == ("week of 30 November 2026", date(2026, 11, 30), date(2026, 12, 7))
    [month] = find_periods("in the week of May 2024")
    assert month.months_of_year == (5,)


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("Wie viele kamen am 3. März 2025?", ["2025-03-03"]),
        ("combien le 1er mars 2025", ["2025-03-01"]),
        ("¿cuántos el 5 de mayo de 2025?", ["2025-05-05"]),
        ("calls between 13 and 17 October 2025", ["2025-10-13", "2025-10-17"]),
        ("calls from the 3rd to the 9th of June 2025", ["2025-06-03", "2025-06-09"]),
        ("vom 3. bis 9. Juni 2025", ["2025-06-03", "2025-06-09"]),
        ("Oct 13 to 17, 2025", ["2025-10-13", "2025-10-17"]),
        ("from 1 Feb to 30 April 2025", ["2025-02-01", "2025-04-30"]),
        ("up to 12/03/25", ["2025-03-12"]),
        ("on 3, 4 and 5 May 2025", ["2025-05-03", "2025-05-04", "2025-05-05"]),
        ("more than 5, on 4 May 2025", ["2025-05-04"]),
        ("How many calls until 13.10.2025. And of whom?", ["2025-10-13"]),
        ("more than 5 and 2025-10-17", ["2025-10-17"]),
        ("more than 5 and Oct 17, 2025", ["2025-10-17"]),
    ],
)
def test_a_day_is_read_in_each_language_and_shares_what_the_next_one_has(question: str, days: list[str]) -> None:
    assert [str(one.first) for one in find_periods(question)] == days
    assert all(one.is_day for one in find_periods(question))


def test_the_number_of_a_version_is_no_number_to_compare(tables: RelationSet) -> None:
    assert not [
        one for one in found(tables, "orders_2024", "orders of version 1.2.25") if one[1] in {"number", "limit"}
    ]


@pytest.mark.parametrize(
    ("question", "days"),
    [("between 13 and 17 Oct", [13, 17]), ("am 12.3. und danach", [12]), ("5 jobs on 17 Oct", [17])],
)
def test_a_day_of_any_year_shares_the_month_of_the_next_one(question: str, days: list[int]) -> None:
    assert [one.day for one in find_periods(question)] == days


def test_a_time_before_another_has_its_year_and_none_that_comes_after_it() -> None:
    assert [one.words for one in find_periods("from Feb to April 2025")] == ["Feb 2025", "April 2025"]
    assert find_periods("from Oct to April 2025")[0].first is None


def test_a_day_that_the_year_of_the_next_one_lacks_keeps_its_own() -> None:
    assert [str(one.first) for one in find_periods("from 29 Feb to 3 March 2025")] == ["None", "2025-03-03"]
    assert [str(one.first) for one in find_periods("from 29 Feb to 3 March 2024")] == ["2024-02-29", "2024-03-03"]


def test_a_shared_month_brings_no_day_of_the_week() -> None:
    found = find_periods("between Monday 13 and Friday 17 Oct")
    assert [one.words for one in found] == ["13 Oct", "Friday 17 Oct"]


def test_the_number_of_a_section_in_the_name_of_a_sheet_is_no_month() -> None:
    assert [month_of(name) for name in ("3.2. Budget", "5 March", "Mar_2025")] == [None, 3, 3]


@pytest.mark.parametrize("question", ["\u017fecond quarter 2024", "fir\u017ft half 2024", "la\u017ft quarter"])
def test_a_long_s_is_an_s(question: str) -> None:
    assert len(find_periods(question)) == 1
