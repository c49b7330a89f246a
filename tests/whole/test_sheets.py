"""Sheets in a library: found, asked, queried, limited and erased with their documents."""

import json
import re
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.asking import Filters
from local_rag.errors import QuestionError
from tests.conftest import Run
from tests.support.indexed import index_texts

ROOT = Path(__file__).parents[2]
ORDERS = (
    "Order no.,Order date,Customer,Net EUR,Status\n"
    "O-1,2024-01-03,Fjordan Freight,100.50,Open\n"
    "O-2,2024-02-15,Kessler GmbH,1200,Open\n"
    "O-3,2024-03-20,Fjordan Freight,30,Cancelled\n"
    "O-4,2023-03-20,Fjordan Freight,5,Open\n"
)
TEXTS = {
    "sales/orders.csv": ORDERS,
    "hr/pay.csv": "Name,Salary EUR\nAda,9000\nBob,8000\n",
    "hr/leave.md": "# Leave\n\nText.\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    monkeypatch.chdir(tmp_path)
    index_texts(tmp_path, TEXTS, run)
    return tmp_path


def test_the_example_of_the_docs_is_what_ask_prints(folder: Path, run: Run) -> None:
    page = (ROOT / "docs/sheets.md").read_text()
    [command, *wanted] = re.findall(r"```console\n\$ local-rag (.*?)```", page, re.DOTALL)[0].strip().splitlines()
    question = command.removeprefix('ask "').removesuffix('"')
    printed = run("ask", question).stdout
    assert printed.splitlines()[: len(wanted)] == wanted
    assert "O-1        2024-01-03" in printed
    assert "[1] documents/sales/orders.csv, A2:E5" in printed


def test_an_answer_from_rows_has_all_its_parts_in_json(folder: Path, run: Run) -> None:
    answer = json.loads(run("ask", "What is the total net of Fjordan Freight in 2024?", "--json").stdout)
    assert (answer["outcome"], answer["answered_from"], answer["tokens"]) == ("answered", "rows", 0)
    table = answer["table"]
    assert (table["value"], table["unit"], table["row_count"]) == (130.5, "EUR", 2)
    assert table["sources"] == [
        {
            "path": "documents/sales/orders.csv",
            "table": "orders",
            "sheet": None,
            "cells": "A2:E5",
            "page": None,
            "page_label": None,
        }
    ]
    assert [row[0] for row in table["rows"]] == ["O-1", "O-3"]
    assert answer["citations"][0]["path"] == "documents/sales/orders.csv"


def test_tables_are_listed_and_queried(folder: Path, run: Run) -> None:
    listed = json.loads(run("tables", "--json").stdout)["tables"]
    assert [one["table"] for one in listed] == ["pay", "orders"]
    assert listed[1]["columns"][3] == {"name": "Net EUR", "kind": "number", "unit": "EUR", "formulas_without_value": 0}
    assert "orders: 4 rows, documents/sales/orders.csv, A2:E5" in run("tables").stdout
    result = json.loads(run("query", "SELECT Customer, count(*) FROM orders GROUP BY 1 ORDER BY 1", "--json").stdout)
    assert result == {
        "columns": ["Customer", "count(*)"],
        "rows": [["Fjordan Freight", 3], ["Kessler GmbH", 1]],
        "complete": True,
    }
    assert run("query", "SELECT Name FROM pay", "--csv").stdout.splitlines() == ["Name", "Ada", "Bob"]
    for wrong in ("DELETE FROM orders", "SELECT * FROM documents", "SELECT nothing FROM orders"):
        refused = run("query", wrong)
        assert refused.exit_code == 1
        assert "Traceback" not in refused.output


@pytest.mark.parametrize("name", ["nothing", "order", "[no such]", "people"])
def test_a_table_that_there_is_not_is_told_also_if_its_name_is_a_keyword(name: str, folder: Path) -> None:
    told = f"There is no table {name.strip('[]').split()[0]}; `local-rag tables` lists the tables."
    for statement in (f"select * from {name}", f"WITH o AS (SELECT * FROM orders) SELECT * FROM o JOIN {name}"):
        with pytest.raises(QuestionError, match=re.escape(told)):
            Library().tables.query(statement)
    with pytest.raises(QuestionError, match="syntax error"):
        Library().tables.query("WITH o AS (SELECT 1) SELECT nothing nothing FROM o")


def test_a_person_sees_only_the_tables_within_the_limits(folder: Path) -> None:
    library = Library()
    part = library.seen_by(Filters(within=("sales/**",)))
    assert [one.table for one in part.tables.listed()] == ["orders"]
    with pytest.raises(Exception, match="There is no table pay; `local-rag tables` lists"):
        part.tables.query("SELECT * FROM pay")
    assert [one.table for one in library.tables.listed(filters={"within": ["hr"]})] == ["pay"]


def test_nobody_waits_for_the_query_of_somebody_else(folder: Path) -> None:
    library, problems = Library(), list[str]()
    part = library.seen_by(Filters(within=("sales/**",)))

    def ask_much() -> None:
        with pytest.raises(QuestionError, match="longer than") as problem:
            library.tables.query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")
        problems.append(str(problem.value))

    asking = threading.Thread(target=ask_much)
    asking.start()
    for _ in range(3):
        assert library.tables.query("SELECT count(*) FROM orders").rows == [(4,)]
        assert [one.table for one in part.tables.listed()] == ["orders"]
        assert len(library.tables.listed()) == 2
    assert asking.is_alive(), problems
    asking.join()
    assert library.tables.query("SELECT count(*) FROM pay").rows == [(2,)]


def test_tables_change_and_go_with_their_documents(folder: Path, run: Run) -> None:
    (folder / "documents/sales/orders.csv").write_text(ORDERS + "O-5,2024-05-01,Kessler GmbH,7,Open\n")
    assert run("index").exit_code == 0
    assert "3 rows" not in run("tables").stdout
    assert json.loads(run("query", "SELECT count(*) FROM orders", "--json").stdout)["rows"] == [[5]]
    assert run("remove", "documents/hr/pay.csv", "--erase").exit_code == 0
    assert "pay" not in run("tables").stdout
    with closing(sqlite3.connect(folder / ".local-rag/library.sqlite3")) as store:
        assert store.execute("SELECT count(DISTINCT document_id) FROM relation_blocks").fetchone() == (1,)
