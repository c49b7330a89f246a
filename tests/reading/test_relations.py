"""Tables of documents as typed relations."""

import json
import zlib
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped]

from local_rag.document_records import Relation
from local_rag.reading.read import read
from local_rag.reading.relations import relations_of


def relations(path: Path) -> tuple[Relation, ...]:
    return relations_of(read(path))


def rows(relation: Relation) -> list[list[Any]]:
    return [row for block in relation.blocks for row in json.loads(zlib.decompress(block))]


def test_sheets_become_relations_without_captions_totals_and_repeated_headers(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Budget"
    for row in (
        ["Budget in kEUR"],
        ["Department", 2024, 2025],
        ["Sales", 450, 540],
        ["Finance", 155, "=C2"],
        ["Department", 2024, 2025],
        ["Marketing", 300, 320],
        ["Total", 905, "=SUM(C3:C6)"],
    ):
        sheet.append(row)
    sheet["F9"], sheet["G9"], sheet["F10"], sheet["G10"] = "City", "Staff", "Oslo", 12
    book.save(tmp_path / "budget.xlsx")
    budget, staff = relations(tmp_path / "budget.xlsx")
    assert [(one.name, one.kind) for one in budget.columns] == [
        ("Department", "text"),
        ("2024", "number"),
        ("2025", "number"),
    ]
    assert (budget.name, budget.sheet, budget.rows, budget.totals) == ("Budget in kEUR", "Budget", 3, 1)
    assert [row[1:4] for row in rows(budget)] == [
        [0, "Sales", 450],
        [0, "Finance", 155],
        [0, "Marketing", 300],
        [1, "Total", 905],
    ]
    assert budget.columns[2].uncomputed == 2
    assert (staff.cells, [one.name for one in staff.columns]) == ("F10:G10", ["City", "Staff"])


def test_a_block_below_a_blank_row_goes_on_with_the_table_above(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Name,Net\nA,1\nB,2\n\nC,3\n")
    [relation] = relations(tmp_path / "a.csv")
    assert [row[2:] for row in rows(relation)] == [["A", 1], ["B", 2], ["C", 3]]


def test_rows_of_one_cell_name_the_rows_below_them(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Item,Qty,Net\nNorth,,\nA,1,2\nSouth,,\nB,3,4\n")
    [relation] = relations(tmp_path / "a.csv")
    assert relation.columns[-1].name == "Section"
    assert [row[2:] for row in rows(relation)] == [["A", 1, 2, "North"], ["B", 3, 4, "South"]]


def test_tables_of_pages_and_prose_become_relations_below_their_heading(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        "<h1>Prices</h1><p>Valid.</p><table><tr><th>Product</th><th>Price (EUR)</th></tr>"
        "<tr><td>Planner</td><td>1.049,50</td></tr><tr><td>Tracker</td><td>12,00</td></tr></table>"
    )
    [relation] = relations(tmp_path / "a.html")
    assert (relation.name, relation.columns[1].unit) == ("Prices", "EUR")
    assert [row[2:] for row in rows(relation)] == [["Planner", 1049.5], ["Tracker", 12]]
    (tmp_path / "a.md").write_text("# No table\n\nOnly text | with a pipe.\n")
    assert relations(tmp_path / "a.md") == ()


def test_rows_of_markdown_keep_blank_cells_and_pipes_in_their_columns(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(
        "# Berths\n\n| Berth | Ropes | Mark |\n|---|---|---|\n|A|1|red|\n|B||blue|\n||3|green|\n|C|4||\n|D|5|a\\|"
    )
    [relation] = relations(tmp_path / "a.md")
    assert [row[2:] for row in rows(relation)] == [
        ["A", 1, "red"],
        ["B", None, "blue"],
        [None, 3, "green"],
        ["C", 4, None],
        ["D", 5, "a|"],
    ]


def test_columns_may_be_called_anything(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('x"; DROP TABLE documents; --,rowid,x"; DROP TABLE documents; --\n1,2,3\n4,5,6\n')
    [relation] = relations(tmp_path / "a.csv")
    assert len({one.name.casefold() for one in relation.columns}) == 3


def test_notes_captions_and_tables_side_by_side(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (
        ["Use by site (kWh)"],
        [],
        ["Site", "Jan", "Feb", None, "Store", "City"],
        ["RS-1", 10, 20, None, "North", "Hull"],
        ["RS-2", 5, 6, None, "South", "York"],
        ["Subtotal coast", 15, 26],
        ["RS-3", 7, 8],
        ["RS-4"],
        ["Total", 22, 34],
        [],
        ["Note: 2 meters were read late in 2022."],
        ["Checked on 3 May"],
    ):
        sheet.append(row)
    book.save(tmp_path / "use.xlsx")
    use, stores = relations(tmp_path / "use.xlsx")
    assert (use.name, use.rows, use.totals) == ("Use by site (kWh)", 4, 2)
    assert [(one.name, one.unit) for one in use.columns] == [("Site", ""), ("Jan", "kWh"), ("Feb", "kWh")]
    assert [row[2] for row in rows(use) if not row[1]] == ["RS-1", "RS-2", "RS-3", "RS-4"]
    assert ([one.name for one in stores.columns], stores.rows, stores.cells) == (["Store", "City"], 2, "E4:F5")


def test_a_ditto_mark_and_a_day_named_once_stand_for_the_cell_above(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("Day,Boat,Tons\n2024-05-01,Skua,4\n,Tern,5\n2024-05-02,Skua,〃\n,Tern,6\n")
    (relation,) = relations(path)
    first, second = "2024-05-01", "2024-05-02"
    assert [row[2:] for row in rows(relation)] == [
        [first, "Skua", 4],
        [first, "Tern", 5],
        [second, "Skua", 5],
        [second, "Tern", 6],
    ]


def test_names_of_groups_stand_above_their_columns_in_any_form(tmp_path: Path) -> None:
    levels = ",North,,,,South,,,\n,2021,,2022,,2021,,2022,\nQuay,In,Out,In,Out,In,Out,In,Out\na,1,2,3,4,5,6,7,8\n"
    centred = ",,Spring,,,Fall,\nQuay,In,Out,Crew,In,Out,Crew\na,1,2,3,4,5,6\n"
    other = ",Arrivals,,Departures,\nQuay,Ships,Tons,Vessels,Cargo\na,1,2,3,4\n"
    for text, last in (levels, "South 2022 Out"), (centred, "Fall Crew"), (other, "Departures Cargo"):
        path = tmp_path / "a.csv"
        path.write_text(text)
        (relation,) = relations(path)
        assert relation.columns[-1].name == last
    path = tmp_path / "a.md"
    path.write_text(
        "|  | 2021 |  | 2022 |  |\n|--|--|--|--|--|\n| Quay | In | Out | In | Out |\n| a | 1 | 2 | 3 | 4 |\n"
    )
    (relation,) = relations(path)
    assert [one.name for one in relation.columns] == ["Quay", "2021 In", "2021 Out", "2022 In", "2022 Out"]


def test_dates_in_the_text_tell_the_order_of_day_and_month(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("Until 12/31/2023:\n\n| Box | In |\n|--|--|\n| B1 | 03/05/2024 1:30 PM |\n| B2 | 04/02/2024 |\n")
    assert [row[3] for row in rows(relations(path)[0])] == ["2024-03-05 13:30:00", "2024-04-02"]
