"""Tables as people lay them out: labels once a group, blank rows, tables beside each other, headers of two rows."""

import json
import zlib
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped]
import pytest

from local_rag.document_records import Relation
from local_rag.reading.converters.table_layout import fill_labels, find_header
from local_rag.reading.read import parse, read
from local_rag.reading.relations import MOST_COLUMNS, relations_of

Cells = Sequence[Sequence[object]]


def relations(tmp_path: Path, rows: Cells) -> tuple[Relation, ...]:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    return relations_of(read(tmp_path / "a.xlsx"))


def values(relation: Relation) -> list[list[Any]]:
    return [row[2:] for block in relation.blocks for row in json.loads(zlib.decompress(block))]


def names(relation: Relation) -> list[str]:
    return [one.name for one in relation.columns]


def test_labels_that_stand_once_a_group_belong_to_its_rows(tmp_path: Path) -> None:
    rows: Cells = [
        ["Region", "City", "Month", "Amount"],
        ["North", "Aldra", "Jan", 10],
        [None, None, "Feb", 20],
        [None, "Brekk", "Jan", 30],
        ["South", "Corvik", "Jan", 5],
        [None, None, "Feb", 6],
        [None, None, "Total", 71],
    ]
    [relation] = relations(tmp_path, rows)
    assert [row[:2] for row in values(relation)][:5] == [
        ["North", "Aldra"],
        ["North", "Aldra"],
        ["North", "Brekk"],
        ["South", "Corvik"],
        ["South", "Corvik"],
    ]
    assert (relation.rows, relation.totals) == (5, 1)
    assert relation.columns[0].remarks == ("A blank *Region* is read as the one above it.",)
    assert "Row 3: Region: North; City: Aldra; Month: Feb; Amount: 20" in read(tmp_path / "a.xlsx").text


def test_a_sign_of_a_table_of_signs_is_no_ditto_mark() -> None:
    for signs in (["''", '"', "\u201d"], ["&", '"', "''"]):
        rows = [(at, [sign, "a sign"]) for at, sign in enumerate(signs)]
        assert [row[0] for _, row in fill_labels(rows)[0]] == signs
    rows = [(0, ["Skua", "4"]), (1, ['"', "5"]), (2, ["''", "6"])]
    assert [row[0] for _, row in fill_labels(rows)[0]] == ["Skua"] * 3


@pytest.mark.parametrize(
    "rows",
    [
        [["Ann", "Plan"], ["Bob", "Build"], ["", "Paint"], ["Kim", "Sell"]],  # a name is missing
        [["Ann", "Plan"], ["", "Build"], ["Ann", "Paint"], ["", "Sell"]],  # a label stands twice
        [["", "Plan"], ["Ann", "Build"], ["", "Paint"], ["", "Sell"]],  # the first row has none
        [["1", "Plan"], ["", "Build"], ["2", "Paint"], ["", "Sell"]],  # numbers
        [["01.02.2024", "Plan"], ["", "Build"], ["", "Paint"], ["03.02.2024", "Sell"]],  # when something was done
    ],
)
def test_blank_cells_that_are_simply_blank_stay_so(rows: list[list[str]]) -> None:
    assert fill_labels(list(enumerate(rows))) == (list(enumerate(rows)), ())


def test_group_headings_of_two_columns_are_no_rows(tmp_path: Path) -> None:
    crops: Cells = [["Crop", "Kilos"], ["Fruit"], ["Apples", 100], ["Pears", 50], ["Roots"], ["Beet", 70]]
    [relation] = relations(tmp_path, crops)
    assert (relation.rows, names(relation)) == (3, ["Crop", "Kilos", "Section"])
    [lacking] = relations(
        tmp_path, [["Crop", "Kilos"], ["Apples", 100], ["Pears"], ["Beet", 70], ["Leek"], ["Oats", 9]]
    )
    assert lacking.rows == 5


def test_tables_of_one_length_beside_each_other_stay_two(tmp_path: Path) -> None:
    rows: Cells = [
        ["Item", "Stock", None, "Driver", "Shifts"],
        ["Rope", 12, None, "Ann", 4],
        ["Lamp", 3, None, "Kai", 2],
    ]
    found = relations(tmp_path, rows)
    assert [names(one) for one in found] == [["Item", "Stock"], ["Driver", "Shifts"]]
    assert "Stock: 12; Driver" not in read(tmp_path / "a.xlsx").text
    spaced: Cells = [["Item", "Jan", None, "Feb", "Mar"], ["Rope", 12, None, 3, 4], ["Lamp", 3, None, 5, 2]]
    assert [names(one) for one in relations(tmp_path, spaced)] == [["Item", "Jan", "Feb", "Mar"]]


@pytest.mark.parametrize(
    "rows",
    [
        [["Item", "Stock", None, "Crew", "Hours"], ["Rope", 12, None, "Ann", 4], ["Rope", 3, None, "Ann", 2]],
        [
            ["Day", "Sales", None, "Day", "Visits"],
            ["2024-01-01", 5, None, "2024-02-01", 9],
            ["2024-01-02", 6, None, "2024-02-01", 8],
        ],
    ],
)
def test_tables_beside_each_other_whose_first_column_repeats_stay_two(tmp_path: Path, rows: Cells) -> None:
    left, right = relations(tmp_path, rows)
    assert (names(left), names(right)) == (list(rows[0][:2]), list(rows[0][3:]))


@pytest.mark.parametrize("repeated", ["open", "closed"])
def test_a_blank_column_within_a_table_of_names_parts_nothing(tmp_path: Path, repeated: str) -> None:
    states = ["open", "closed", repeated]
    people = [[name, "Sales", None, state, at] for at, (name, state) in enumerate(zip("ABC", states, strict=True))]
    rows: Cells = [["Name", "Dept", None, "Status", "Amount"], *people]
    assert [len(names(one)) for one in relations(tmp_path, rows)] == [4]


def test_a_blank_column_before_words_that_say_how_a_row_stands_parts_nothing(tmp_path: Path) -> None:
    rows: Cells = [
        ["Order", "Item", None, "Status", "Paid"],
        ["A", "Rope", None, "open", "no"],
        ["B", "Oar", None, "done", "yes"],
        ["C", "Oar", None, "open", "no"],
    ]
    assert [len(names(one)) for one in relations(tmp_path, rows)] == [4]


def test_a_dash_labels_several_groups_that_have_no_name(tmp_path: Path) -> None:
    rows: Cells = [
        ["Region", "City", "Amount"],
        ["North", "Aldra", 10],
        [None, "Brekk", 20],
        ["-", "Corvik", 5],
        [None, "Dunmar", 6],
        ["South", "Elm", 7],
        [None, "Fjell", 8],
        ["-", "Garn", 9],
        [None, "Holm", 4],
    ]
    [relation] = relations(tmp_path, rows)
    regions = [row[0] for row in values(relation)]
    assert regions == ["North", "North", None, None, "South", "South", None, None]


def test_labels_stand_behind_the_numbers_of_the_rows(tmp_path: Path) -> None:
    cities = ["Aldra", "Brekk", "Aldra", "Brekk"]
    labels = ["North", None, "South", None]
    table = [[at, label, city] for at, (label, city) in enumerate(zip(labels, cities, strict=True), start=1)]
    [relation] = relations(tmp_path, [["No", "Region", "City"], *table])
    assert [row[1] for row in values(relation)] == ["North", "North", "South", "South"]
    [other] = relations(tmp_path, [["Code", "Region", "City"], *([f"x{at}", *row] for at, *row in table)])
    assert [row[1] for row in values(other)] == labels
    codes = [[at, label, name] for at, label, name in zip(range(1, 5), labels, ["Ann", "Bob", "Cy", "Di"], strict=True)]
    [lacking] = relations(tmp_path, [["No", "Discount code", "Customer"], *codes])
    assert [row[1] for row in values(lacking)] == labels


def test_a_header_of_two_rows_without_merged_cells_names_both() -> None:
    rows = [
        ["", "2023", "", "2024", "", ""],
        ["Port", "Calls", "Tonnes", "Calls", "Tonnes", "Note"],
        ["A", "1", "2", "3", "4", "x"],
    ]
    assert find_header(rows).names == ("Port", "2023 Calls", "2023 Tonnes", "2024 Calls", "2024 Tonnes", "Note")
    assert find_header(rows, marked=2).names == find_header(rows).names
    tall = [["Site", "Q1", "", "Q2", ""], ["", "kWh", "EUR", "kWh", "EUR"], ["Pier", "1", "2", "3", "4"]]
    assert find_header(tall).names == ("Site", "Q1 kWh", "Q1 EUR", "Q2 kWh", "Q2 EUR")
    deep = [["", f"{n}", "", f"{n + 1}", "", ""] for n in range(20_000)]
    assert find_header([*deep, *rows], marked=len(deep) + 2).names[2] == "2023 Tonnes"
    apart = [["", "Costs", "", "Income"], ["Port", "Staff", "Fuel", "Fares"], ["A", "1", "2", "3"]]
    assert find_header(apart).names == ("Port", "Staff", "Fuel", "Fares")


def test_a_row_of_units_is_no_data(tmp_path: Path) -> None:
    rows: Cells = [["Cargo", "Mass", "Duty"], [None, "kg", "[EUR]"], ["Timber", 1200, 30], ["Salt", 800, 12]]
    [relation] = relations(tmp_path, rows)
    assert [(one.name, one.unit) for one in relation.columns] == [
        ("Cargo", ""),
        ("Mass (kg)", "kg"),
        ("Duty (EUR)", "EUR"),
    ]
    assert relation.rows == 2
    units: Cells = [["Name", "Sign"], ["kilogram", "kg"], ["euro", "EUR"]]
    assert relations(tmp_path, units)[0].rows == 2


def test_a_row_of_units_may_have_units_that_are_not_known(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "Batch;Oven;Heat;Time;Water;Loss;Note\n;;\u00b0C;h:mm;m\u00b3/d;%;\n"
        "B1;Old;220;1:10;-;4;ok\nB2;New;230;0:55;-;5;\nB3;New;235;1:05;2.5;3;late\n"
    )
    [relation] = relations_of(read(tmp_path / "a.csv"))
    assert relation.rows == 3
    assert names(relation)[2:6] == ["Heat (\u00b0C)", "Time (h:mm)", "Water (m\u00b3/d)", "Loss (%)"]
    first: Cells = [["Name", "Colour", "Age"], ["Rex", "red", "ok"], ["Tom", "blue", 4], ["Ann", "kg", 5]]
    assert relations(tmp_path, first)[0].rows == 3, "values are no units, even with one word that is"


def test_a_last_row_that_only_holds_the_sum_is_a_total_whatever_it_is_called(tmp_path: Path) -> None:
    rows: Cells = [
        ["Cow", "Name", "Breed", "Milk"],
        ["1", "Zenzi", "A", 30],
        ["2", "Vroni", "B", 12],
        ["3", "Lies", "A", 8],
    ]
    [relation] = relations(tmp_path, [*rows, [None, "Herd", None, 50]])
    assert (relation.rows, relation.totals) == (3, 1)
    for last in ([None, "Herd", None, 51], ["4", "Herd", "A", 50]):
        [relation] = relations(tmp_path, [*rows, last])
        assert (relation.rows, relation.totals) == (4, 0)


def test_a_total_without_a_value_begins_no_section(tmp_path: Path) -> None:
    rows: Cells = [
        ["Week", "Picker", "Kilos"], [36, "Ann", 3], [36, "Bo", 4], ["Week 36 total"], [37, "Ann", 5],
        ["Week 37 total"], [38, "Bo", 6], ["Week 38 total"],
    ]  # fmt: skip
    [relation] = relations(tmp_path, rows)
    assert names(relation) == ["Week", "Picker", "Kilos"]
    assert relation.rows == 4


def test_days_without_a_year_are_of_the_year_that_the_title_names(tmp_path: Path) -> None:
    days = ["Sat 1 Mar", "Mon 10 Mar", "March 12", "-", "2nd Apr"]
    rows: Cells = [["Haulage - March 2025"], ["Date", "Load"], *([day, number] for number, day in enumerate(days))]
    [relation] = relations(tmp_path, rows)
    assert [row[0] for row in values(relation)] == ["2025-03-01", "2025-03-10", "2025-03-12", None, "2025-04-02"]
    assert relation.columns[0].remarks == (
        "The days in *Date* are read as those of 2025, which the title of the table names.",
    )
    for title in ("Haulage", "Season 2024/2025, from 2024 to 2025"):
        [relation] = relations(tmp_path, [[title], *rows[1:]])
        assert relation.columns[0].kind == "text", "of which year nothing tells"


def test_a_date_whose_format_shows_no_year_keeps_its_own(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["Sailing", "Cars"])
    for day in (5, 6, 7):
        book.active.append([date(2025, 7, day), day])
        book.active.cell(day - 3, 1).number_format = "ddd d mmm"
    book.save(tmp_path / "a.xlsx")
    document = read(tmp_path / "a.xlsx")
    assert "Sailing: 2025-07-05; Cars: 5" in document.text
    [relation] = relations_of(document)
    assert relation.columns[0].kind == "date"


def test_blank_rows_below_the_header_and_between_groups_end_nothing(tmp_path: Path) -> None:
    rows: Cells = [
        ["Tool", "Shed"], [], ["Hammer", "East"], ["Saw", "West"], [], ["Drill", "East"], [],
        ["Name", "Age"], ["Ann", 4],
    ]  # fmt: skip
    first, second = relations(tmp_path, rows)
    assert values(first) == [["Hammer", "East"], ["Saw", "West"], ["Drill", "East"]]
    assert names(second) == ["Name", "Age"]
    assert "Row 6: Tool: Drill; Shed: East" in read(tmp_path / "a.xlsx").text


def test_numbers_with_signs_are_numbers_and_the_order_of_dates_is_that_of_the_file() -> None:
    text = 'Grant,Sum,Seen\nA,"4,500*",03/05/2024\nB,~500,04/02/2024\nC,10-12,05/03/2024\n'
    text += "D,7,06/04/2024\nE,8 †,07/05/2024\n"
    [relation] = relations_of(parse(Path("a.csv"), text.encode()))
    assert [row[1] for row in values(relation)] == [4500, 500, "10-12", 7, 8]
    assert relation.columns[1].remarks == ("4,500*, ~500, 8 † in *Sum* are read as plain numbers.",)
    assert relation.columns[2].remarks == (
        "03/05/2024 in *Seen* is read as 2024-05-03, the day first, which nothing in the file tells.",
    )
    told = text.replace("Seen\n", "Seen,Sent\n").replace("/2024\n", "/2024,03/14/2024\n")
    [relation] = relations_of(parse(Path("a.csv"), told.encode()))
    assert [row[2] for row in values(relation)][:2] == ["2024-03-05", "2024-04-02"]
    assert relation.columns[2].remarks == ()


def test_more_columns_than_the_limit_are_told(tmp_path: Path) -> None:
    rows: Cells = [["Station", *(f"Day {n}" for n in range(MOST_COLUMNS))], ["Pier", *range(MOST_COLUMNS)]]
    [relation] = relations(tmp_path, rows)
    assert relation.remarks == (f"1 column is beyond the first {MOST_COLUMNS} and left out.",)
