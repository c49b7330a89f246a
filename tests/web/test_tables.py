"""Extracted tables on the page: tried, asked, read, corrected, downloaded, and nobody else's."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from local_rag.library import Library
from local_rag.store.people_file import add_person
from tests.fakes import QUICK, FakeGenerator, generating
from tests.support import served
from tests.support.served import wait_until

JSON = {"accept": "application/json"}
COLUMNS = "Leaves: When does the boat leave the harbour?\nCarries: How many people does it carry? (number)"


def answer(prompt: str) -> str:
    document, _, question = prompt.rpartition("Question: ")
    wanted = "seven" if "leave" in question else "twelve"
    return wanted if wanted in document else "Unanswerable."


PARTS = replace(QUICK, open_engine=generating(FakeGenerator(answer, context_tokens=100_000)))


def begin(opened: TestClient, who: Any = None, **fields: str) -> str:
    sent = opened.post("/tables", data={"columns": COLUMNS, "name": "<b>Boats", **fields}, headers=JSON | (who or {}))
    assert sent.status_code == 200, sent.text
    identifier: str = sent.json()["id"]
    return identifier


def finished(opened: TestClient, identifier: str, who: Any = None) -> Any:
    def state() -> Any:
        return opened.get(f"/tables/{identifier}?format=json", headers=who).json()

    wait_until(lambda: not state()["running"])
    return state()


def test_a_table_is_tried_asked_read_and_downloaded(folder: Path) -> None:
    with served.client(folder, PARTS) as opened:
        identifier = begin(opened)
        rows = finished(opened, identifier)["rows"]
        boat = next(row for row in rows if row["document"].endswith("boat.txt"))
        assert boat["cells"]["Leaves"]["text"] == "seven"
        page = opened.get(f"/tables/{identifier}").text
        assert "A preview of" in page
        assert "<b>Boats" not in page
        assert opened.post(f"/tables/{identifier}/go", headers={"accept": "text/html"}).status_code in {200, 303}
        finished(opened, identifier)
        assert "A preview of" not in opened.get(f"/tables/{identifier}").text
        shown = opened.get(f"/tables/{identifier}?show=not-stated").text
        assert "boat.txt" not in shown or "not stated" in shown
        table = opened.get(f"/tables/{identifier}/table.csv")
        assert "attachment" in table.headers["content-disposition"]
        assert "seven" in {row["Leaves"] for row in csv.DictReader(io.StringIO(table.text))}
        assert opened.get(f"/tables/{identifier}/table.xlsx").content[:2] == b"PK"
        assert opened.get(f"/tables/{identifier}/table.html").status_code == 400
        assert "&lt;b&gt;Boats" in opened.get("/tables").text
        opened.post(f"/tables/{identifier}/forget")
        assert opened.get(f"/tables/{identifier}").status_code == 404


def test_a_cell_is_corrected_kept_and_taken_back(folder: Path) -> None:
    with served.client(folder, PARTS) as opened:
        identifier = begin(opened)
        finished(opened, identifier)
        with Library(folder, parts=QUICK) as library:
            document = next(
                key for path, key in library.documents.contents().documents.items() if path.endswith("boat.txt")
            )

        def correct(value: str, column: int = 2, **more: str) -> Any:
            fields = {"document": str(document), "column": str(column), "value": value, **more}
            return opened.post(f"/tables/{identifier}/cell", data=fields, headers=JSON)

        def cell() -> Any:
            rows = finished(opened, identifier)["rows"]
            return next(row for row in rows if row["document"].endswith("boat.txt"))["cells"]["Carries"]

        assert correct("many").status_code == 400
        correct("13")
        assert (cell()["value"], cell()["by"]) == (13, "person")
        correct("")
        assert (cell()["state"], cell()["by"]) == ("not stated", "person")
        correct("", take_back="1")
        assert (cell()["value"], cell()["by"]) == (12, "model")
        assert correct("13", column=9).status_code == 400


def test_a_table_belongs_to_a_person_and_shows_what_the_person_may_see(folder: Path) -> None:
    anna = {"authorization": f"Bearer {add_person(folder, 'Anna', 'reader', within=('norway/**',))}"}
    ben = {"authorization": f"Bearer {add_person(folder, 'Ben', 'editor')}"}
    with served.client(folder, PARTS, token="a-token-of-the-owner") as opened:
        identifier = begin(opened, ben)
        finished(opened, identifier, ben)
        assert opened.get(f"/tables/{identifier}", headers=anna).status_code == 404
        assert opened.get("/tables?format=json", headers=anna).json() == []
        own = begin(opened, anna)
        rows = finished(opened, own, anna)["rows"]
        assert rows
        assert "boat" not in json.dumps(rows)
        refused = opened.post(f"/tables/{own}/cell", data={"document": "1", "column": "1"}, headers=JSON | anna)
        assert refused.status_code == 403


def test_wrong_columns_and_a_library_without_history_are_refused(folder: Path) -> None:
    with served.client(folder, PARTS, history=False) as opened:
        for columns, said in (
            ("", "There are no columns"),
            ("A: B? (date)\nA: C?", "named"),
            (COLUMNS, "history is off"),
        ):
            refused = opened.post("/tables", data={"columns": columns}, headers=JSON)
            assert refused.status_code >= 400
            assert said in refused.text
