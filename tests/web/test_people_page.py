"""People from the page: owners add them, a link lets in once, limits are ticked in a tree, and what is seen counted."""

import html
import json
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from local_rag.files import AUDIT_FILE
from local_rag.library import Library
from local_rag.store.people_file import PEOPLE_FILE, add_person, list_people
from local_rag.store.recorded_questions import QUESTIONS_FILE, WRONG_FILE
from tests.support import served

HOST = "a-token-of-the-owner"
OWNER = {"authorization": f"Bearer {HOST}"}
ADDRESS = "http://notes.example"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    for name in ("open/a.md", "open/[x] b/c.md", "open/d.md", "closed/ledger.md"):
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Of {path.stem}\n\nThe boat {path.stem} leaves at seven.\n")
    served.index(tmp_path / "docs", tmp_path / "lib")
    return tmp_path / "lib"


@pytest.fixture
def opened(library: Path) -> Iterator[TestClient]:
    parts = served.parts(lambda _prompt: "The boat a leaves at seven.")
    with served.client(library, parts, token=HOST, audit_log=True) as client:
        yield client


def add(opened: TestClient, name: str, *source: str, who: Any = OWNER, **fields: str) -> str:
    """Add a person on the page; return the path of the link."""
    sees = "chosen" if source or fields.get("tag") or fields.get("in") else "everything"
    sent = {"name": name, "sees": sees, "source": list(source), **fields}
    page = opened.post("/people", data=sent, headers={"origin": served.ADDRESS, **who})
    assert page.status_code == 200, page.text
    (link,) = re.findall(rf'href="{served.ADDRESS}(/join/[\w-]+)"', page.text)
    return str(link)


def boxes(page: str) -> dict[str, str]:
    """Return the values of the boxes of the tree, by what stands beside them."""
    found = re.findall(r'name="source" value="([^"]*)"(?: checked)?> ([^<]*)</label>', page)
    return {html.unescape(name).strip(): html.unescape(value) for value, name in found}


def seen(opened: TestClient, who: Any) -> list[str]:
    found = opened.get("/library?format=json", headers=who).json()["documents"]
    return sorted(Path(one["path"]).name for one in found)


def token_of(page: str) -> dict[str, str]:
    (token,) = re.findall(r'<code id="token">([^<]+)</code>', page)
    return {"authorization": f"Bearer {token}"}


def test_a_link_lets_in_once_and_shows_a_token_of_their_own(opened: TestClient, library: Path) -> None:
    link = add(opened, "Anna")
    for _ in range(3):  # a program that looks at links uses none up
        assert "Welcome, Anna" in opened.get(link).text
    came = opened.post(link)
    assert came.status_code == 200
    assert opened.get("/library").status_code == 200, "with the cookie of the new session"
    assert "Anna, reader" in opened.get("/library").text
    anna = token_of(came.text)
    opened.cookies.clear()
    assert opened.get("/library").status_code == 401
    assert opened.get("/library", headers=anna).status_code == 200
    for again in (opened.get(link), opened.post(link)):
        assert (again.status_code, "was used, has expired" in again.text) == (404, True)
        assert "Anna" not in again.text
    kept = (library / PEOPLE_FILE).read_bytes()
    assert anna["authorization"].removeprefix("Bearer ").encode() not in kept
    assert link.rpartition("/")[2].encode() not in kept


def test_a_link_expires_and_a_new_one_replaces_it(opened: TestClient, library: Path) -> None:
    first = add(opened, "Anna")
    (anna,) = list_people(library)
    page = opened.post(f"/people/{anna.id}/link", headers={"origin": served.ADDRESS, **OWNER}).text
    (second,) = re.findall(rf'href="{served.ADDRESS}(/join/[\w-]+)"', page)
    assert [opened.get(link).status_code for link in (first, second)] == [404, 200]
    with closing(sqlite3.connect(library / PEOPLE_FILE)) as connection, connection:
        connection.execute("UPDATE invitations SET expires = ?", (time.time() - 1,))
    assert [opened.get(second).status_code, opened.post(second).status_code] == [404, 404]
    assert "not used yet" not in opened.get("/people", headers=OWNER).text


def test_a_new_link_ends_earlier_sessions_and_the_earlier_token(opened: TestClient, library: Path) -> None:
    before = token_of(opened.post(add(opened, "Anna")).text)
    lost = dict(opened.cookies)
    (anna,) = list_people(library)
    opened.cookies.clear()
    page = opened.post(f"/people/{anna.id}/link", headers={"origin": served.ADDRESS, **OWNER}).text
    (link,) = re.findall(rf'href="{served.ADDRESS}(/join/[\w-]+)"', page)
    assert opened.get("/library", headers=before).status_code == 200, "until the link is used"
    after = token_of(opened.post(link).text)
    opened.cookies.clear()
    assert [opened.get("/library", headers=one).status_code for one in (before, after)] == [401, 200]
    opened.cookies.update(lost)
    assert opened.get("/library").status_code == 401


def test_who_guesses_links_is_stopped(opened: TestClient) -> None:
    statuses = [opened.get(f"/join/{number}-guess").status_code for number in range(8)]
    assert statuses == [404] * 5 + [429] * 3


def test_limits_are_ticked_in_the_tree_and_what_is_seen_is_counted(opened: TestClient, library: Path) -> None:
    page = opened.get("/people/new", headers=OWNER).text
    tree = boxes(page)
    assert list(tree) == ["docs", "closed", "ledger.md", "open", "[x] b", "c.md", "a.md", "d.md"]
    for chosen, documents in (
        (["open"], ["a.md", "c.md", "d.md"]),
        (["[x] b"], ["c.md"]),
        (["a.md", "closed"], ["a.md", "ledger.md"]),
        (["docs"], ["a.md", "c.md", "d.md", "ledger.md"]),
    ):
        sources = [tree[name] for name in chosen]
        counted = opened.post("/people/preview?part=1", data={"sees": "chosen", "source": sources}, headers=OWNER).text
        assert f"{len(documents)} of 4 documents" in counted
        anna = token_of(opened.post(add(opened, f"Anna {chosen}", *sources)).text)
        opened.cookies.clear()
        assert seen(opened, anna) == documents
    (library.parent / "docs/open/[x] b/later.md").write_text("# Later\n\nThe boat.\n")
    served.index(library.parent / "docs", library)
    (person,) = [one for one in list_people(library) if one.name == "Anna ['[x] b']"]
    form = opened.get(f"/people/{person.id}", headers=OWNER).text
    assert re.findall(r'value="([^"]*)" checked> \[x\] b', form) == [tree["[x] b"]]
    assert re.findall(r"\d+ of \d+ documents", form) == ["2 of 5 documents"], "a folder stands for what is added later"


def test_without_a_script_the_form_comes_back_with_the_count(opened: TestClient) -> None:
    tree = boxes(opened.get("/people/new", headers=OWNER).text)
    sent = {
        "name": "Ed",
        "role": "editor",
        "sees": "chosen",
        "source": [tree["open"]],
        "in": "closed/**",
        "tag": "x, y",
    }
    page = opened.post("/people/preview", data=sent, headers=OWNER).text
    assert "0 of 4 documents" in page, "none has the tags"
    assert 'value="Ed"' in page
    assert 'value="editor" checked' in page
    assert re.search(r'name="source" value="[^"]*/open/\*\*" checked', page)
    assert 'name="in" value="closed/**"' in page
    assert 'name="tag" value="x, y"' in page
    empty = opened.post("/people", data={"name": "Ed", "sees": "chosen"}, headers=OWNER)
    assert (empty.status_code, "Nothing was chosen" in empty.text) == (400, True)
    assert "0 of 4" in opened.post("/people/preview?part=1", data={"sees": "chosen"}, headers=OWNER).text


def test_a_person_is_changed_and_other_limits_take_the_conversations(opened: TestClient, library: Path) -> None:
    anna = token_of(opened.post(add(opened, "Anna")).text)
    opened.cookies.clear()
    asked = {"question": "When does the boat ledger leave?"}
    opened.post("/ask", data=asked, headers={"accept": "application/json", **anna})
    (person,) = list_people(library)
    change = {"id": person.id, "name": "Anna B", "role": "editor", "sees": "everything"}
    assert opened.post("/people", data=change, headers=OWNER).status_code == 303
    kept = opened.get("/history?format=json", headers=anna).json()["conversations"]
    assert len(kept) == 1, "only the role has changed"
    open_folder = boxes(opened.get("/people/new", headers=OWNER).text)["open"]
    limited = change | {"sees": "chosen", "source": open_folder, "role": "reader"}
    assert opened.post("/people", data=limited, headers=OWNER).status_code == 303
    assert seen(opened, anna) == ["a.md", "c.md", "d.md"]
    assert opened.get("/history?format=json", headers=anna).json()["conversations"] == []
    listed = opened.get("/people?format=json", headers=OWNER).json()
    assert [(one["name"], one["role"], one["in"]) for one in listed] == [("Anna B", "reader", [open_folder])]
    assert "3 of 4" in opened.get("/people", headers=OWNER).text
    assert opened.post("/people", data=change | {"id": "0" * 16}, headers=OWNER).status_code == 404


def test_a_person_is_removed_once_that_is_confirmed(opened: TestClient, library: Path) -> None:
    anna = token_of(opened.post(add(opened, "Anna")).text)
    opened.cookies.clear()
    link = add(opened, "Ben")
    people = {one.name: one.id for one in list_people(library)}
    assert "Remove Anna?" in opened.post(f"/people/{people['Anna']}/remove", headers=OWNER).text
    assert opened.get("/library", headers=anna).status_code == 200
    for name in people.values():
        assert opened.post(f"/people/{name}/remove", data={"confirmed": "1"}, headers=OWNER).status_code == 303
    assert opened.get("/library", headers=anna).status_code == 401
    assert opened.post(link).status_code == 404
    lines = [json.loads(line) for line in (library / AUDIT_FILE).read_text().splitlines()]
    assert [(line["change"], line["name"]) for line in lines] == [
        ("add person", "Anna"), ("add person", "Ben"), *(("remove person", name) for name in people)
    ]  # fmt: skip


def test_only_owners_of_the_whole_library_manage_people(opened: TestClient, library: Path) -> None:
    who = {
        "reader": add_person(library, "R", "reader"),
        "editor": add_person(library, "E", "editor"),
        "limited": add_person(library, "L", "owner", within=["open/**"]),
        "owner": add_person(library, "O", "owner"),
    }
    people = {one.name: one.id for one in list_people(library)}
    for role, token in who.items():
        headers, allowed = {"authorization": f"Bearer {token}"}, role == "owner"
        routes = [opened.get(path, headers=headers).status_code for path in (
            "/people", "/people?format=json", "/people/new", f"/people/{people['R']}"
        )]  # fmt: skip
        routes += [opened.post(path, data={"name": f"x{role}"}, headers=headers).status_code for path in (
            "/people/preview", "/people", f"/people/{people['R']}/link", f"/people/{people['R']}/remove",
        )]  # fmt: skip
        assert set(routes) == ({200} if allowed else {403}), role
        assert ('href="/people"' in opened.get("/library", headers=headers).text) is allowed
    assert opened.post("/people/contact", headers={"authorization": f"Bearer {who['limited']}"}).status_code == 403
    assert [one.name for one in list_people(library) if one.name.startswith("x")] == ["xowner"]
    assert opened.get("/people").status_code == 401
    owner = {"authorization": f"Bearer {who['owner']}"}
    for path in (f"/people/{people['O']}/remove", "/people"):
        sent = {"confirmed": "1", "id": people["O"], "name": "O", "role": "reader"}
        assert opened.post(path, data=sent, headers=owner).status_code == 400, "nobody shuts themselves out"


def test_a_page_of_another_site_manages_nobody_and_may_lead_to_a_link(opened: TestClient) -> None:
    link = add(opened, "Anna")
    other = {"origin": "http://evil.example", "sec-fetch-site": "cross-site"}
    assert opened.post("/people", data={"name": "Eve"}, headers=OWNER | other).status_code == 403
    assert opened.post(link, headers=other).status_code == 403
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert "Welcome, Anna" in opened.get(link, headers=followed).text


def test_without_a_token_there_are_no_people_to_manage(library: Path) -> None:
    with served.client(library) as opened:
        assert opened.get("/people").status_code == 403
        assert 'href="/people"' not in opened.get("/").text


def test_the_form_to_log_in_says_whom_to_ask(opened: TestClient) -> None:
    assert "Ask whoever gave you this address" in opened.get("/login").text
    sent = {"contact": "Maria <Quist>,  room 3"}
    assert opened.post("/people/contact", data=sent, headers=OWNER).status_code == 303
    assert "Ask for a link: Maria &lt;Quist&gt;, room 3" in opened.get("/login").text
    assert opened.post("/people/contact", data={"contact": "x" * 201}, headers=OWNER).status_code == 400
    opened.post("/people/contact", data={"contact": ""}, headers=OWNER)
    assert "Maria" not in opened.get("/login").text


def test_readers_say_what_is_right_and_wrong(opened: TestClient, library: Path) -> None:
    reader = {"authorization": f"Bearer {add_person(library, 'Anna', 'reader', within=['open/**'])}"}
    asked = {"question": "When does the boat a leave?"}
    page = opened.post("/ask", data=asked, headers={"accept": "text/html", **reader}).text
    form = page.partition('class="rate"')[2].partition("</form>")[0]
    (chunk,) = re.findall(r'name="chunk" value="(\d+)"', form)
    assert opened.post("/rate", data=asked | {"chunk": chunk}, headers=reader).status_code == 303
    assert asked["question"] in (library / QUESTIONS_FILE).read_text()
    as_json = {"accept": "application/json", **reader}
    assert opened.post("/rate", data=asked | {"wrong": chunk}, headers=as_json).json()["kept"] == "wrong"
    right, wrong = ((library / name).read_text() for name in (QUESTIONS_FILE, WRONG_FILE))
    assert asked["question"] in wrong
    assert asked["question"] not in right, "a later mark takes the place of the one before"
    with Library(library) as whole:
        hidden = next(one for path, one in whole.documents.contents().documents.items() if "ledger" in path)
        outside = whole.documents.get(hidden).passages[0].chunk_id
    for number in (outside, 0, 10**17):
        assert opened.post("/rate", data=asked | {"chunk": str(number)}, headers=reader).status_code in {400, 404}
    assert opened.post("/rate", data=asked, headers=reader).status_code == 400
    assert "ledger" not in (library / QUESTIONS_FILE).read_text()
