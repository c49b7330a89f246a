"""What a program computes, whatever question it was made for."""

import itertools
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.answer_records import TableAnswer
from local_rag.errors import QuestionError
from local_rag.tables.computation import NotComputableError, computation
from local_rag.tables.mentions import mentions
from local_rag.tables.program import (
    DIRECTIONS,
    FILLED,
    NONE,
    OPERATIONS,
    PAIRS,
    PARTS,
    RELATIONS,
    Program,
)
from local_rag.tables.relation_set import RelationSet
from local_rag.tables.run import NoRowsError, run
from local_rag.tables.views import joins, view_of
from scripts.benchmarks.sheets import open_tables


def computed(tables: RelationSet, name: str, operation: str, question: str = "", **how: Any) -> TableAnswer:
    """Run a program: columns by their names, relations by the words that are mentioned."""
    view = view_of(next(one for one in tables.named if one.table == name))
    names = [one.name for one in view.columns]
    found = mentions(question, view, tables)
    said = how.pop("where", {})
    relations = [""] * len(found)
    for (column, words), relation in said.items():
        at = next(
            number
            for number, one in enumerate(found)
            if one.words == words and (names[one.column] if one.column >= 0 else "") == column
        )
        relations[at] = relation
    filled = tuple(how.get("filled", {}).get(column, "") for column in names)
    how.pop("filled", None)
    roles = ("measure", "shown", "group", "left", "right")
    columns: dict[str, Any] = {role: names.index(how.pop(role)) for role in roles if role in how}
    return run(computation(Program(operation, tuple(relations), filled, **columns, **how), view, found), tables)


def test_rows_are_counted_with_what_is_said_of_them(tables: RelationSet) -> None:
    table = computed(tables, "orders_2024", "count", "kessler", where={("Customer", "Kessler GmbH"): "is"})
    assert (table.value, table.count) == (1, 1)
    assert table.said == "number of rows (1 row) where *Customer* is *Kessler GmbH*"
    assert tables.query(table.sql).rows == [(1,)]


def test_a_sum_tells_what_is_missing(tables: RelationSet) -> None:
    where = {("Customer", "Fjordan Freight"): "is", ("Order date", "2024"): "is"}
    table = computed(tables, "orders_2024", "sum", "fjordan 2024", measure="Net EUR", where=where)
    assert (table.value, table.unit, table.count) == (100.5, "EUR", 2)
    assert table.notes[0] == "1 of these rows has no value in *Net EUR* and is left out."
    assert [row[0] for row in table.rows] == ["O-1", "O-3"]


def test_a_total_of_the_sheet_is_never_added(tables: RelationSet) -> None:
    assert computed(tables, "orders_2024", "sum", measure="Net EUR").value == 1450.5


@pytest.mark.parametrize(("relation", "count"), [("is", 2), ("at least", 3), ("more", 1), ("less", 1), ("at most", 3)])
def test_a_month_bounds_the_dates(tables: RelationSet, relation: str, count: int) -> None:
    where = {("Order date", "Feb"): relation}
    assert computed(tables, "orders_2024", "count", "Feb", where=where).value == count


@pytest.mark.parametrize(("relation", "count"), [("more", 1), ("at least", 2), ("less", 2), ("at most", 3), ("is", 1)])
def test_numbers_are_compared(tables: RelationSet, relation: str, count: int) -> None:
    assert computed(tables, "orders_2024", "count", "3", where={("Qty", "3"): relation}).value == count


def test_an_empty_cell_is_empty_and_never_zero(tables: RelationSet) -> None:
    assert computed(tables, "parcels", "count", filled={"Delivered on": "empty"}).value == 1
    listed = computed(tables, "parcels", "list", shown="Parcel", filled={"Delivered on": "empty"})
    assert listed.value == "P-3"


def test_two_columns_are_compared_where_a_row_has_both(tables: RelationSet) -> None:
    low = computed(tables, "store_room", "list", shown="Material", left="Minimum stock", right="Stock", pair="more")
    assert [one.label for one in low.values] == ["Gauze", "Syringes"]
    late = computed(tables, "parcels", "list", shown="Parcel", left="Delivered on", right="Promised on", pair="more")
    assert late.value == "P-1"


def test_shares_are_in_percent(tables: RelationSet) -> None:
    where = {("Shelf", "A"): "is"}
    rows = computed(tables, "store_room", "share of rows", "A", shown="Shelf", where=where)
    assert (rows.value, rows.unit) == (50, "%")
    stock = computed(tables, "store_room", "share of sum", "A", shown="Shelf", measure="Stock", where=where)
    assert stock.value == pytest.approx(100 * 102 / 147, abs=1e-5)
    assert tables.query(stock.sql).rows[0][0] == pytest.approx(stock.value, abs=1e-5)


def test_differences_have_no_sign_and_name_their_parts(tables: RelationSet) -> None:
    where = {("Customer", "Kessler GmbH"): "is", ("Customer", "Severn Utilities"): "is"}
    table = computed(
        tables, "orders_2024", "difference of sums", "kessler severn", shown="Customer", measure="Net EUR", where=where
    )
    assert table.value == 1050
    assert [one.label for one in table.values] == ["Kessler GmbH", "Severn Utilities"]
    assert computed(tables, "store_room", "range", measure="Stock").value == 85
    assert computed(tables, "store_room", "difference of columns", left="Stock", right="Minimum stock").value == 27


def test_groups_and_the_highest(tables: RelationSet) -> None:
    table = computed(tables, "orders_2024", "count", group="Customer", direction="max")
    assert table.value == "Fjordan Freight"
    each = computed(tables, "orders_2024", "sum", measure="Qty", group="Customer")
    assert {one.label: one.value for one in each.values} == {
        "Fjordan Freight": 7,
        "Kessler GmbH": 1,
        "Severn Utilities": 3,
    }
    month = computed(tables, "orders_2024", "count", group="Order date", part="month", direction="max")
    assert month.value == "2024-02"
    two = computed(
        tables, "orders_2024", "top", "2", measure="Qty", shown="Customer", direction="max", where={("", "2"): "is"}
    )
    assert [one.label for one in two.values] == ["Fjordan Freight", "Severn Utilities"]


def test_currencies_are_not_added_together(tables: RelationSet) -> None:
    for name, column, sums in (("travel", "Cost", {"EUR": 150, "GBP": 80}), ("trips", "Fare", {"EUR": 30, "USD": 30})):
        table = computed(tables, name, "sum", measure=column)
        assert table.value is None
        assert {one.unit: one.value for one in table.values} == sums


def test_one_of_two_conditions_is_enough(tables: RelationSet) -> None:
    where = {("Qty", "3"): "at least", ("Status", "Delivered"): "is"}
    assert computed(tables, "orders_2024", "count", "3 delivered", where=where).value == 0
    assert computed(tables, "orders_2024", "count", "3 delivered", where=where, any_of=True).value == 4


def test_a_join_answers_of_one_table_by_the_other(tables: RelationSet) -> None:
    single = [view_of(one) for one in tables.named if one.table in {"orders_2024", "customers"}]
    [view] = joins(single, tables)
    found = mentions("Norway", view, tables)
    names = [one.name for one in view.columns]
    relations = tuple("is" if names[one.column] == "Country" and one.end else "" for one in found)
    program = Program("sum", relations, ("",) * len(names), measure=names.index("Net EUR"))
    assert run(computation(program, view, found), tables).value == 100.5


def test_a_table_is_joined_by_the_number_of_what_the_other_lists(tmp_path: Path) -> None:
    (files := tmp_path / "files").mkdir()
    (library := tmp_path / "library").mkdir()
    (files / "loans.csv").write_text("Item,Borrower\nW1,Ann\nW2,Bo\nH1,Cy\n")
    (files / "stock.csv").write_text("Item no,Type\nW1,Wheelchair\nW2,Wheelchair\nH1,Hoist\n")
    with closing(open_tables(files, library)) as tables:
        views = {one.columns[0].name: one for one in joins([view_of(one) for one in tables.named], tables)}
    assert [one.name for one in views["Item"].columns] == ["Item", "Borrower", "Type"]


def test_what_no_row_has_is_no_value(tables: RelationSet) -> None:
    where = {("Qty", "99"): "more"}
    with pytest.raises(NoRowsError):
        computed(tables, "orders_2024", "sum", "99", measure="Qty", where=where)
    assert computed(tables, "orders_2024", "whether", "99", where=where).value == "no"


QUESTION = "in Feb 2024 or since 3 March, kessler, planner, holm, A, more than 2, top 3, 1,200"


@given(st.data())
def test_any_program_has_a_result_or_says_that_it_has_none(tables: RelationSet, data: st.DataObject) -> None:
    view = view_of(data.draw(st.sampled_from(tables.named)))
    found = mentions(QUESTION, view, tables)
    column = st.integers(NONE, len(view.columns) - 1)
    program = Program(
        data.draw(st.sampled_from(list(OPERATIONS))),
        tuple(data.draw(st.sampled_from(RELATIONS)) for _ in found),
        tuple(data.draw(st.sampled_from(FILLED)) for _ in view.columns),
        measure=data.draw(column),
        shown=data.draw(column),
        group=data.draw(column),
        part=data.draw(st.sampled_from(PARTS)),
        direction=data.draw(st.sampled_from(DIRECTIONS)),
        left=data.draw(column),
        right=data.draw(column),
        pair=data.draw(st.sampled_from(PAIRS)),
        any_of=data.draw(st.booleans()),
    )
    try:
        table = run(computation(program, view, found), tables)
    except (NotComputableError, NoRowsError, QuestionError):
        return
    assert table.said
    if table.rows_sql:
        assert len(tables.query(table.rows_sql).rows) >= min(1, len(table.rows))


def test_every_operation_is_one_of_the_program(tables: RelationSet) -> None:
    assert len(set(itertools.chain(*OPERATIONS.values()))) == 4
