"""The page of the library: documents are searched, sorted, gone through by folder, and removed several at once."""

import html
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from local_rag.store.database import library_lock
from local_rag.store.people_file import add_person
from tests.support import served

COMMAND = [sys.executable, "-m", "tests.support.maintain_with_fakes"]
HOST = "a-token-of-the-owner"
OWNER = {"authorization": f"Bearer {HOST}"}


@pytest.fixture
def library(tmp_path: Path) -> Path:
    for folder, count in (("open/2024", 3), ("open/2025", 2), ("closed", 2)):
        for number in range(count):
            path = tmp_path / "docs" / folder / f"note {number}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# Tide {folder[-1]}{number}\n\n{'It is high. ' * (number + 1)}\n")
    (tmp_path / "docs/open/straße.md").write_text("# Überfahrt\n\nDas Boot.\n")
    (tmp_path / "docs/open/broken.pdf").write_bytes(b"%PDF-1.4 this is none")
    (tmp_path / "docs/closed/secret.pdf").write_bytes(b"%PDF-1.4 this is none")
    served.index(tmp_path / "docs", tmp_path / "lib")
    return tmp_path / "lib"


@pytest.fixture
def opened(library: Path) -> Iterator[TestClient]:
    with served.client(library, token=HOST, maintain=COMMAND) as client:
        yield client


def person(library: Path, role: Any = "reader", *within: str) -> dict[str, str]:
    return {"authorization": f"Bearer {add_person(library, f'{role} {within}', role, within=within)}"}


def look(opened: TestClient, query: str = "", who: dict[str, str] = OWNER) -> Any:
    return opened.get(f"/library?format=json&{query}", headers=who).json()


def titles(found: Any) -> list[str]:
    return [one["title"] for one in found["documents"]]


def test_documents_are_searched_by_name_folder_and_title(opened: TestClient) -> None:
    assert (look(opened)["found"], len(titles(look(opened)))) == (8, 8)
    assert titles(look(opened, "q=2024+NOTE+1")) == ["Tide 41"]
    assert titles(look(opened, "q=tide+51")) == ["Tide 51"]
    assert titles(look(opened, "q=STRASSE")) == titles(look(opened, "q=überfahrt")) == ["Überfahrt"]
    assert titles(look(opened, "q=%25")) == []
    page = opened.get("/library?q=%3Cb%3E", headers=OWNER).text
    assert "No document here has “&lt;b&gt;”" in page


def test_documents_are_sorted_both_ways(opened: TestClient) -> None:
    assert titles(look(opened, "sort=title"))[:2] == ["Tide 40", "Tide 41"]
    assert titles(look(opened, "sort=title&down=1"))[0] == "Überfahrt"
    sizes = [one["size"] for one in look(opened, "sort=size")["documents"]]
    assert sizes == sorted(sizes)
    assert look(opened, "sort=nonsense") == look(opened)
    page = opened.get("/library?sort=title&q=tide", headers=OWNER).text
    assert 'aria-sort="ascending"><a href="/library?q=tide&amp;sort=title&amp;down=1">Document</a>' in page


def test_folders_are_counted_and_gone_through(opened: TestClient, library: Path) -> None:
    docs = library.parent / "docs"
    found = look(opened)
    assert [(one["name"], one["documents"]) for one in found["folders"]] == [("closed", 2), ("open", 6)]
    below = look(opened, f"folder={docs}/open")
    assert [(one["name"], one["documents"]) for one in below["folders"]] == [("2024", 3), ("2025", 2)]
    assert ([one["name"] for one in below["above"]], below["found"]) == (["docs", "open"], 6)
    assert look(opened, f"folder={docs}/ope")["found"] == 0
    assert look(opened, f"folder={docs}/open&q=note+2.md")["found"] == 1


def test_what_needs_attention_stands_above_the_documents(opened: TestClient) -> None:
    page = opened.get("/library", headers=OWNER).text
    assert page.index("2 files could not be read") < page.index("broken.pdf") < page.index(">Documents</h2>")
    assert "Up to date." not in page


def test_a_file_without_text_needs_no_attention(opened: TestClient, library: Path) -> None:
    (library.parent / "docs" / "open" / "empty.txt").write_text("")
    served.index(library.parent / "docs", library)
    page = opened.get("/library", headers=OWNER).text
    assert "2 files could not be read" in page
    assert page.index("broken.pdf") < page.index("Nothing to read in 1 file") < page.index("empty.txt")
    assert "2 files could not be read" in opened.get("/", headers=OWNER).text


def test_tables_of_the_documents_are_listed_for_who_sees_them(opened: TestClient, library: Path) -> None:
    (library.parent / "docs" / "closed" / "fares.csv").write_text("Route,Fare (EUR)\nOslo,40\nBergen,55\n")
    served.index(library.parent / "docs", library)
    page = opened.get("/library/tables", headers=OWNER).text
    assert "docs/<wbr>closed/<wbr>fares.csv" in page
    assert "Route, Fare (EUR)" in page
    assert "No document has a table" in opened.get("/library/tables", headers=person(library, "reader", "open/**")).text


def test_a_page_of_documents_leads_to_the_next(opened: TestClient, library: Path) -> None:
    notes = library.parent / "docs" / "many"
    notes.mkdir()
    for number in range(120):
        (notes / f"{number:03}.md").write_text(f"# Many {number}\n\nText.\n")
    served.index(library.parent / "docs", library)
    first = look(opened, "q=many")
    assert (first["found"], len(first["documents"]), first["after"]) == (120, 100, 100)
    page = opened.get("/library?q=many", headers=OWNER).text
    (more,) = re.findall('href="([^"]*from=100)"', page)
    assert "101 to 120 of 120 documents" in opened.get(html.unescape(more), headers=OWNER).text
    assert 'name="all" value="120"' in page


def test_several_documents_are_removed_once_that_is_confirmed(opened: TestClient, library: Path) -> None:
    editor = person(library, "editor")
    ids = [str(one["id"]) for one in look(opened, "q=2024")["documents"]]
    asked = opened.post("/library/remove", data={"document": ids[:2]}, headers=editor)
    assert "Remove 2 documents from the library?" in asked.text
    assert asked.text.count('name="document"') == 2
    assert 'value="erase"' not in asked.text
    assert look(opened)["found"] == 8
    assert opened.post("/library/remove", headers=editor).status_code == 400
    assert opened.post("/library/remove", data={"document": [ids[0], "77"]}, headers=editor).status_code == 404
    confirmed = {"document": ids[:2], "confirmed": "1"}
    assert opened.post("/library/remove", data=confirmed | {"how": "erase"}, headers=editor).status_code == 403
    assert opened.post("/library/remove", data=confirmed, headers=editor).status_code == 303
    wait(opened)
    assert titles(look(opened, "q=2024")) == ["Tide 42"]


def test_all_that_was_found_is_erased_and_no_more_than_was_confirmed(opened: TestClient, library: Path) -> None:
    chosen = {"all": "6", "q": "note", "folder": f"{library.parent}/docs/open"}
    asked = opened.post("/library/remove", data=chosen, headers=OWNER)
    assert "Remove 5 documents" in asked.text
    assert "Meanwhile there are 5" in asked.text
    again = dict(re.findall('<input type="hidden" name="([^"]+)" value="([^"]+)">', asked.text))
    assert again == {**chosen, "all": "5", "confirmed": "1", "back": "/"}
    assert opened.post("/library/remove", data=chosen | {"confirmed": "1"}, headers=OWNER).status_code == 200
    assert look(opened)["found"] == 8, "another number was confirmed"
    assert opened.post("/library/remove", data=again | {"how": "erase"}, headers=OWNER).status_code == 303
    wait(opened)
    assert sorted(titles(look(opened))) == ["Tide d0", "Tide d1", "Überfahrt"]


def wait(opened: TestClient) -> None:
    def is_done() -> bool:
        return opened.get("/library/task", headers=OWNER).headers["x-local-rag-running"] == "no"

    served.wait_until(is_done, 120)


def test_limits_hold_while_looking_through_and_removing(opened: TestClient, library: Path) -> None:
    editor = person(library, "editor", "open/2024/**")
    closed = f"{library.parent}/docs/closed"
    seen = look(opened, who=editor)
    assert (seen["found"], [one["name"] for one in seen["folders"]], seen["skipped"]) == (3, ["open"], [])
    for query in ("q=closed", f"folder={closed}", "q=secret", "show=part", "q=straße"):
        found = look(opened, query, editor)
        assert (found["found"], found["documents"], found["folders"]) == (0, [], []), query
    hidden = [str(one["id"]) for one in look(opened, "q=closed")["documents"]]
    for chosen in ({"document": hidden}, {"root": f"{library.parent}/docs"}):
        assert opened.post("/library/remove", data=chosen | {"confirmed": "1"}, headers=editor).status_code == 404
    asked = opened.post("/library/remove", data={"all": "8"}, headers=editor).text
    assert "Remove 3 documents" in asked
    assert "docs/closed" not in asked


def test_a_reader_sees_neither_progress_nor_models(opened: TestClient, library: Path) -> None:
    reader, editor = person(library), person(library, "editor")
    with library_lock(library):  # as another process does that indexes
        pages = [opened.get(path, headers=reader).text for path in ("/library", "/library/progress", "/library/task")]
        assert not [page for page in pages if "<progress" in page or "Indexing" in page]
        for word in ("SHA-256", "minilm", "Remove", "Index again", 'name="document"', "Doctor"):
            assert word.casefold() not in pages[0].casefold(), word
        assert "Another program is changing the library." in opened.get("/library/progress", headers=editor).text
        assert "<progress" not in opened.get("/library", headers=editor).text, "nothing is left to do"
    assert look(opened, who=reader)["models"] == []
    assert "SHA-256" in opened.get("/library", headers=OWNER).text
