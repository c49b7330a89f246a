"""What a program computes, whatever question it was made for."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.answer_records import TableAnswer, TableValue
from local_rag.errors import QuestionError
from local_rag.tables.computation import NotComputableError, computation, rates
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
from local_rag.tables.views import View, joins, unions, view_of
from tests.support.opened_tables import opened


def computed(tables: RelationSet, name: str, operation: str, question: str = "", **how: Any) -> TableAnswer:
    """Run a program on one table."""
    view = view_of(next(one for one in tables.named if one.table == name))
    return computed_of(view, tables, operation, question, **how)


def computed_of(
    view: View, tables: RelationSet, operation: str, question: str = "", *, with_rows: bool = True, **how: Any
) -> TableAnswer:
    """Run a program: columns by their names, relations by the words that are mentioned."""
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
    program = Program(operation, tuple(relations), filled, **columns, **how)
    return run(computation(program, view, found, tables), tables, with_rows=with_rows)


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
    assert [row[0] for row in stock.rows] == ["Gauze", "Masks", "Syringes", "Tape"]
    assert len(tables.query(stock.rows_sql).rows) == stock.count == 4


def test_rows_and_notes_on_them_are_left_to_the_answer_that_is_given(tables: RelationSet) -> None:
    where = {("Customer", "Fjordan Freight"): "is"}
    how: dict[str, Any] = {"shown": "Customer", "measure": "Net EUR", "where": where}
    whole = computed(tables, "orders_2024", "share of sum", "fjordan", **how)
    plain = computed(tables, "orders_2024", "share of sum", "fjordan", with_rows=False, **how)
    assert whole.rows
    assert len(whole.notes) > 1
    assert (plain.rows, plain.sources, plain.notes) == ((), (), ())
    assert (plain.value, plain.unit, plain.values, plain.count) == (whole.value, "%", whole.values, 4)


def test_differences_have_no_sign_and_name_their_parts(tables: RelationSet) -> None:
    where = {("Customer", "Kessler GmbH"): "is", ("Customer", "Severn Utilities"): "is"}
    table = computed(
        tables, "orders_2024", "difference of sums", "kessler severn", shown="Customer", measure="Net EUR", where=where
    )
    assert table.value == 1050
    assert [one.label for one in table.values] == ["Kessler GmbH", "Severn Utilities"]
    assert computed(tables, "store_room", "range", measure="Stock").value == 85
    columns = computed(tables, "store_room", "difference of columns", left="Minimum stock", right="Stock")
    assert [one.label for one in columns.values] == ["Minimum stock", "Stock"]
    assert (columns.value, tables.query(columns.sql).rows) == (27, [(27,)])
    assert len(tables.query(table.rows_sql).rows) == len(table.rows) == table.count == 2


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


def test_a_difference_of_two_currencies_is_none(tables: RelationSet) -> None:
    where = {("Trip", "Oslo"): "is", ("Trip", "Leeds"): "is"}
    with pytest.raises(NoRowsError):
        computed(tables, "travel", "difference of sums", "Oslo Leeds", shown="Trip", measure="Cost", where=where)


def test_the_only_unit_of_the_rows_is_told(tables: RelationSet) -> None:
    how: dict[str, Any] = {"measure": "Cost", "where": {("Trip", "Leeds"): "is not"}, "direction": "max"}
    for of in ({"operation": "top", "shown": "Trip"}, {"operation": "sum", "group": "Trip"}):
        table = computed(tables, "travel", question="Leeds", **of, **how)
        assert table.values == (TableValue("Oslo", 100, "EUR"),)


def test_a_date_has_no_currency_and_no_sum(tmp_path: Path) -> None:
    text = "Trip,Start,Fare,Currency\nOslo,2024-01-03,10,EUR\nLeeds,2024-02-01,20,GBP\nBergen,2024-03-01,,EUR\n"
    with opened(tmp_path, {"trips.csv": text}) as tables:
        assert computed(tables, "trips", "max", measure="Start").value == "2024-03-01"
        latest = computed(tables, "trips", "top", measure="Start", shown="Trip", direction="max")
        assert latest.value == "Bergen"
        for operation in ("sum", "mean"):
            with pytest.raises(NotComputableError):
                computed(tables, "trips", operation, measure="Start")


def test_a_row_without_a_value_has_no_other_unit(tmp_path: Path) -> None:
    with opened(tmp_path, {"costs.csv": "Trip,Cost\nOslo,5 EUR\nOslo,\nLeeds,7 GBP\nBergen,9 EUR\n"}) as tables:
        table = computed(tables, "costs", "list", "oslo", shown="Cost", where={("Trip", "Oslo"): "is"})
    assert (table.value, table.unit) == (5, "EUR")


def test_a_text_among_dates_is_of_no_month_and_never_the_latest(tmp_path: Path) -> None:
    days = "".join(f"A{day},2024-04-{day}\n" for day in range(10, 30))
    with opened(tmp_path, {"calls.csv": f"Call,Day\n{days}B,2024-05-02\nC,delay05\n"}) as tables:
        assert computed(tables, "calls", "count", "May", where={("Day", "May"): "is"}).value == 1
        with pytest.raises(NoRowsError):
            computed(tables, "calls", "max", "C", measure="Day", where={("Call", "C"): "is"})


def test_more_groups_than_are_listed_are_told(tmp_path: Path) -> None:
    rows = "".join(f"name {number},{number}\n" for number in range(201))
    with opened(tmp_path, {"names.csv": f"Name,Load\n{rows}"}) as tables:
        table = computed(tables, "names", "sum", measure="Load", group="Name")
    assert (len(table.values), table.notes) == (200, ("Only the first 200 are listed.",))


def test_the_sql_that_is_shown_can_be_asked_whatever_the_column_is_called(tmp_path: Path) -> None:
    text = "Member,\"Paid? 'yes'\",Fee\nAnn,yes,1234567.25\nBo,no,2\nIda,yes,3\n"
    with opened(tmp_path, {"dues.csv": text}) as tables:
        where = {("Paid? 'yes'", "yes"): "is", ("Fee", "1,234,567.2"): "more"}
        table = computed(tables, "dues", "sum", "yes 1,234,567.2", measure="Fee", where=where)
        assert tables.query(table.sql).rows == [(table.value,)]
        assert tables.query(table.rows_sql).rows == [("Ann", "yes", 1234567.25)]


def test_files_of_the_same_columns_are_asked_as_one(tmp_path: Path) -> None:
    files = {
        f"{month}.csv": f"Item,Load\nA,{load}\nB,2\nTotal,{load + 2}\n" for month, load in (("Jan", 7), ("Feb", 9))
    }
    with opened(tmp_path, files) as tables:
        [view] = unions(tables.named)
        where = {("File", "Jan"): "is", ("File", "Feb"): "is"}
        table = computed_of(view, tables, "difference of sums", "Jan Feb", shown="File", measure="Load", where=where)
        assert (table.value, table.notes) == (2, ("2 rows of totals are left out.",))
        assert sorted(one.table for one in table.sources) == ["feb", "jan"]
        assert len(tables.query(table.rows_sql).rows) == table.count == 4


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
    assert run(computation(program, view, found, tables), tables).value == 100.5


def test_a_table_is_joined_by_the_number_of_what_the_other_lists(tmp_path: Path) -> None:
    stock = "Item|no,Type\nW1,Wheelchair\nW2,Wheelchair\nH1,Hoist\n"
    with opened(tmp_path, {"loans.csv": "Item,Borrower\nW1,Ann\nW2,Bo\nH1,Cy\n", "stock.csv": stock}) as tables:
        views = {one.columns[0].name: one for one in joins([view_of(one) for one in tables.named], tables)}
        assert [one.name for one in views["Item"].columns] == ["Item", "Borrower", "Type"]
        where = {("Type", "Hoist"): "is"}
        assert computed_of(views["Item"], tables, "list", "hoist", shown="Borrower", where=where).value == "Cy"


def test_a_join_adds_no_numbers_that_it_repeats(tmp_path: Path) -> None:
    files = {
        "loans.csv": "Item,Borrower\nW1,Ann\nW1,Bo\nH1,Cy\n",
        "stock.csv": "Item,Type,Worth\nW1,Chair,50\nH1,Hoist,90\nH2,Hoist,70\n",
    }
    with opened(tmp_path, files) as tables:
        [view] = [
            one for one in joins([view_of(one) for one in tables.named], tables) if one.columns[1].name == "Borrower"
        ]
        for operation in ("sum", "mean"):
            with pytest.raises(NotComputableError):
                computed_of(view, tables, operation, "chair", measure="Worth", where={("Type", "Chair"): "is"})
        with pytest.raises(NotComputableError):
            computed_of(
                view, tables, "difference of sums", "chair hoist", shown="Type", measure="Worth",
                where={("Type", "Chair"): "is", ("Type", "Hoist"): "is"},
            )  # fmt: skip
        assert computed_of(view, tables, "sum", "bo", measure="Worth", where={("Borrower", "Bo"): "is"}).value == 50
        assert computed_of(view, tables, "count", "chair", where={("Type", "Chair"): "is"}).value == 2


@pytest.mark.parametrize("name", ["Price £/night", "Yield (l/s)", "Share %"])
def test_so_much_of_each_thing_is_averaged_but_not_added(tmp_path: Path, name: str) -> None:
    with opened(tmp_path, {"stays.csv": f"Guest,{name}\nAnn,10\nBo,20\nCy,30\n"}) as tables:
        [view] = map(view_of, tables.named)
        measure = view.columns[1].name
        with pytest.raises(NotComputableError):
            computed_of(view, tables, "sum", measure=measure)
        assert computed_of(view, tables, "mean", measure=measure).value == 20


PRICED = {
    "its unit": (
        "Item,Pieces,Each,Amount\nA,2,10 EUR,20 EUR\nB,30,4 EUR,120 EUR\nC,5,6 EUR,30 EUR\n"
        "D,7,8 EUR,56 EUR\nE,9,3 EUR,27 EUR\n"
    ),
    "the same for the same thing": (
        "Item,Pieces,Each,Pay\nOak,7,2.50,17.50\nElm,3,3,9\nOak,8,2.50,20\nElm,2,3,6\nOak,6,2.50,15\nElm,1,3,3\n"
    ),
    "rounding": (
        "Item,Weight (kg),Each (EUR),Amount (EUR)\n"
        "A,2.5,11.333,28.33\nB,3,8,24\nC,1.5,6.33,9.5\nD,2,8.5,17\nE,7,9.777,68.44\n"
    ),
    "one row that is wrong": (
        "Item,Pieces,Each (EUR),Amount (EUR)\nA,2,10.99,21.98\nB,3,4.25,12.75\nC,5,6.5,99\nD,4,8.5,34\nE,7,3.49,24.43\n"
    ),
}


@pytest.mark.parametrize("told_by", PRICED)
def test_what_times_a_quantity_is_a_third_column_is_averaged_but_not_added(tmp_path: Path, told_by: str) -> None:
    with opened(tmp_path, {"lines.csv": PRICED[told_by]}) as tables:
        [view] = map(view_of, tables.named)
        _, quantity, rate, amount = (one.name for one in view.columns)
        with pytest.raises(NotComputableError):
            computed_of(view, tables, "sum", measure=rate)
        assert computed_of(view, tables, "mean", measure=rate).value
        assert computed_of(view, tables, "sum", measure=quantity).value
        assert computed_of(view, tables, "sum", measure=amount).value


def test_no_operation_adds_rates(tmp_path: Path) -> None:
    how: dict[str, Any] = {"shown": "Item", "where": {("Item", "A"): "is", ("Item", "B"): "is"}}
    lines = PRICED["its unit"]
    for priced, rate in ((lines, "Each"), (lines.replace("Each", "Each %"), "Each %")):
        folder = tmp_path / rate
        folder.mkdir()
        with opened(folder, {"lines.csv": priced}) as tables:
            for operation in ("difference of sums", "share of sum"):
                assert computed(tables, "lines", operation, "A B", measure="Amount", **how).value
                with pytest.raises(NotComputableError):
                    computed(tables, "lines", operation, "A B", measure=rate, **how)
            assert computed(tables, "lines", "difference of columns", left="Amount", right="Pieces").value
            for left, right in ((rate, "Amount"), ("Amount", rate)):
                with pytest.raises(NotComputableError):
                    computed(tables, "lines", "difference of columns", left=left, right=right)


@pytest.mark.parametrize(
    "rows",
    [
        "A,2,10.5,21\nB,3,4.5,13.5\nC,5,6.5,32.5\nD,4,8.5,34\n",  # too few
        "A,1,10.5,10.5\nB,1,4.5,4.5\nC,1,6.5,6.5\nD,1,8.5,8.5\nE,2,3.5,3.5\n",  # a copy
        "A,1,10.5,10.5\nB,1,4.5,4.5\nC,1,6.5,6.5\nD,1,8.5,8.5\nE,2,3.5,7\n",  # one row tells, perhaps by chance
        "A,1,10.5,77\nB,1,4.5,78\nC,1,6.5,79\nD,2,8.5,17\nE,3,3.5,10.5\nF,2,6.5,13\n",  # not those of 1
        "A,2,10.5,21\nB,3,4.5,13.5\nC,5,6.5,99\nD,4,8.5,99\nE,7,3.5,24.5\n",  # right in some rows alone
        "A,2,10,20\nB,30,4,120\nC,5,6,30\nD,7,8,56\nE,9,3,27\n",  # nothing tells which of the two is the price
        "A,7.5,20,150\nB,3,35,105\nC,8.5,40,340\nD,2.25,20,45\nE,6,30,180\n",  # nor here, of hours
    ],
)
def test_what_is_no_product_in_most_rows_is_added(tmp_path: Path, rows: str) -> None:
    with opened(tmp_path, {"lines.csv": f"Item,Pieces,Each,Amount\n{rows}"}) as tables:
        for measure in ("Pieces", "Each", "Amount"):
            assert computed(tables, "lines", "sum", measure=measure).value


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        ("Person,Hours,Rate,Cost", [(8, 50), (8, 60), (8, 70), (8, 55), (8, 65)]),
        ("Load,Tonnes,Price,Value", [(0.5, 150), (0.25, 160), (0.8, 180), (0.75, 140), (1.5, 170)]),
        ("Lot,Kilos,Price,Value", [(37.5, 15), (42.25, 16), (20.5, 18), (31.5, 14), (25, 17)]),
        ("Invoice,Net amount,VAT factor,Gross amount", [(100, 1.19), (200, 1.07), (50, 1.19), (80, 1.07), (300, 1.19)]),
        ("Day,Amount (EUR),Growth,Planned (EUR)", [(100, 1.1), (200, 1.2), (50, 1.3), (80, 1.05), (300, 1.1)]),
        ("Item,Units sold,Price,Revenue sold", [(10, 15), (12, 16), (20, 18), (31, 14), (25, 17)]),
        ("Menu,Portions,Price,Cost", [(20, 15), (20, 16), (40, 18), (40, 14), (10, 17), (10, 12)]),
    ],
)
def test_a_quantity_is_added_though_a_number_times_it_is_a_third_column(
    tmp_path: Path, names: str, rows: list[tuple[float, float]]
) -> None:
    lines = [f"{'ABC'[at // 2]},{one},{other},{round(one * other, 2)}" for at, (one, other) in enumerate(rows)]
    with opened(tmp_path, {"lines.csv": "\n".join([names, *lines])}) as tables:
        [view] = map(view_of, tables.named)
        assert computed_of(view, tables, "sum", measure=view.columns[1].name).value


def test_rates_are_looked_for_once_in_a_view(tmp_path: Path) -> None:
    with opened(tmp_path, {"lines.csv": PRICED["its unit"]}) as tables:
        [view] = map(view_of, tables.named)
        assert rates(view, tables) is rates(view_of(tables.named[0]), tables)


@pytest.mark.parametrize("name", ["Hours per week", "Amount (w/o VAT)", "Passengers (in/out)", "Spend (2023/24)"])
def test_what_only_looks_like_a_rate_is_added(tmp_path: Path, name: str) -> None:
    with opened(tmp_path, {"sums.csv": f"Guest,{name}\nAnn,10\nBo,20\nCy,30\n"}) as tables:
        [view] = map(view_of, tables.named)
        assert computed_of(view, tables, "sum", measure=view.columns[1].name).value == 60


def test_the_numbers_of_rows_are_neither_added_nor_averaged(tmp_path: Path) -> None:
    files = {"dockets.csv": "Docket,Pieces\n" + "".join(f"{301 + row},2\n" for row in range(12))}
    files["loads.csv"] = "Load,Day\n3,1\n4,2\n5,3\n"  # too few to tell
    with opened(tmp_path, files) as tables:
        for operation in ("sum", "mean"):
            with pytest.raises(NoRowsError):
                computed(tables, "dockets", operation, measure="Docket")
        assert computed(tables, "dockets", "max", measure="Docket").value == 312
        assert computed(tables, "dockets", "sum", measure="Pieces").value == 24
        assert computed(tables, "loads", "sum", measure="Load").value == 12


@pytest.mark.parametrize(("said", "relation"), [("May 2024", "more"), ("May 2024", "at least"), ("April", "at least")])
def test_an_open_time_needs_no_row_in_the_month_where_it_begins(tables: RelationSet, said: str, relation: str) -> None:
    where = {("Order date", said): relation, ("Status", "Cancelled"): "is"}
    found = computed(tables, "orders_2024", "count", f"cancelled, {said}", where=where)
    assert (found.value, found.count) == (0, 0)


def test_whether_there_is_a_row_is_not_told_of_a_time_that_the_table_lacks(tables: RelationSet) -> None:
    def asked(month: str) -> TableAnswer:
        where = {("Order date", month): "is", ("Status", "Open"): "is"}
        return computed(tables, "orders_2024", "whether", f"open in {month}", where=where)

    assert asked("Feb 2024").value == "no"
    assert computed(tables, "orders_2024", "whether", filled={"Order date": "empty"}).value == "no"
    with pytest.raises(NoRowsError):
        asked("Feb 2027")


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
        table = run(computation(program, view, found, tables), tables)
    except (NotComputableError, NoRowsError, QuestionError):
        return
    assert table.said
    assert tables.query(table.sql).rows
    assert len(tables.query(table.rows_sql).rows) == table.count


def test_every_operation_is_one_of_the_program(tables: RelationSet) -> None:
    assert len(set(itertools.chain(*OPERATIONS.values()))) == 4
