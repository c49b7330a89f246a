"""A conversation, a table and a file of questions belong to a person; for everybody else they are not there."""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from local_rag.store.people_file import add_person
from local_rag.web import app
from tests.support import served

TOKEN = "a-token-of-the-owner"
JSON = {"accept": "application/json"}
HOST = {"authorization": f"Bearer {TOKEN}"}


def kept_of(opened: TestClient, who: Any) -> dict[str, str]:
    """Keep one of each; return their ids by the names that addresses call them by."""
    asked = opened.post("/ask", data={"question": served.QUESTION}, headers=JSON | who).json()
    table = opened.post("/tables", data={"columns": "Leaves: When does it leave?"}, headers=JSON | who).json()
    sent = {"file": ("tender.txt", served.QUESTION.encode())}
    questions = opened.post("/questions", files=sent, headers=JSON | who).json()
    return {"conversation": asked["conversation"], "table": table["id"], "list": questions["id"]}


def addresses(kept: dict[str, str]) -> list[tuple[str, str, dict[str, str]]]:
    """Return method, address and fields of all that is asked of what is kept, whatever page is added."""
    routes = [route for page in app._PAGES for route in page.ROUTES if kept.keys() & route.param_convertors.keys()]
    fields = {"question": served.QUESTION, "answer": "x", "document": "1", "column": "1", "value": "x"}
    found = [
        (method, route.path.format(**kept, form="csv"), fields)
        for route in routes
        for method in sorted((route.methods or set()) - {"HEAD"})
    ]
    one = kept["conversation"]
    found += [("GET", f"/?conversation={one}", {}), ("GET", f"/history/menu?id={one}", {})]
    changes = {"rename": {"title": "another"}, "pin": {"on": "1"}, "forget": {}}
    return found + [("POST", f"/history/{change}", {"id": one, **more}) for change, more in changes.items()]


@pytest.mark.parametrize("other", ["another person", "the host"])
def test_no_address_shows_or_changes_what_belongs_to_somebody_else(folder: Path, other: str) -> None:
    anna, ben = ({"authorization": f"Bearer {add_person(folder, name, 'owner')}"} for name in ("Anna", "Ben"))
    with served.client(folder, token=TOKEN) as opened:
        kept = kept_of(opened, anna)
        tried = addresses(kept)
        assert len(tried) > 20
        who = JSON | (ben if other == "another person" else HOST)
        statuses = {
            (method, address): opened.request(method, address, data=fields or None, headers=who).status_code
            for method, address, fields in tried
        }
        assert set(statuses.values()) == {404}, statuses
        for name, page in (("table", "/tables"), ("list", "/questions")):
            assert opened.get(f"{page}/{kept[name]}", headers=JSON | anna).status_code == 200
            assert opened.get(page, headers=who).json() == []
        (left,) = opened.get("/history?format=json", headers=anna).json()["conversations"]
        assert (left["id"], left["title"], left["pinned"]) == (kept["conversation"], served.QUESTION, False)
