"""The place of work shows what somebody did last with each form, and keeps no text that was checked."""

import html
import re
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from local_rag.answer_records import Answer
from local_rag.asking import KeptWork, Suggested
from local_rag.library import Library
from local_rag.store.history import History
from local_rag.store.history_file import HISTORY_FILE
from local_rag.store.people_file import add_person
from tests.support import served

TEXT = "The boat leaves Quixotically at nine, 4 days a week."
COMPARED = {"before": "norway/leave.md", "after": "ireland.md"}
WORK = KeptWork("/verify", "/verify?in=a", "a", "1 statement: 1 no claim.")


def last(opened: TestClient, who: dict[str, str] | None = None) -> dict[str, str]:
    """Return the names and addresses of what was done last."""
    shown = opened.get("/work", headers=who).text.partition("<h2>Last</h2>")[2]
    return {
        name: html.unescape(address) for address, name in re.findall(r'<a href="([^"]+)">([^<]+)</a> <small>', shown)
    }


def work(opened: TestClient, who: dict[str, str] | None = None) -> None:
    """Use every form."""
    assert opened.post("/tables", data={"columns": "Leaves: When?", "name": "Boats"}, headers=who).status_code == 303
    sent = {"file": ("tender.txt", served.QUESTION.encode())}
    assert opened.post("/questions", files=sent, headers=who).status_code == 303
    assert opened.get("/diff", params=COMPARED, headers=who).status_code == 200
    assert opened.get("/brief", params={"document": "ireland.md"}, headers=who).status_code == 200
    assert opened.post("/verify", data={"text": TEXT, "in": "norway"}, headers=who).status_code == 200


def test_what_was_done_last_is_done_again_by_a_link(folder: Path) -> None:
    with served.client(folder) as opened:
        assert last(opened) == {}
        work(opened)
        found = last(opened)
        compared = "documents/norway/leave.md \u2192 documents/ireland.md"
        assert list(found) == ["norway", "ireland.md", compared, "tender.txt", "Boats"]
        assert re.search("Check a text: 1 statement: 1 [a-z ]+[.]<", opened.get("/work").text)
        assert "49 weeks" in opened.get(found[compared]).text
        assert "26 weeks" in opened.get(found["ireland.md"]).text
        assert 'name="in" value="norway"' in opened.get(found["norway"]).text
        opened.post("/verify", data={"text": TEXT})
        assert "All documents" in last(opened)
        assert "norway" not in last(opened), "it is the last one of each form"
    assert b"Quixotically" not in (folder / HISTORY_FILE).read_bytes()


def test_it_is_nobody_else_s_and_goes_with_what_it_names(folder: Path, documents: Path) -> None:
    anna, ben = ({"authorization": f"Bearer {add_person(folder, name, 'owner')}"} for name in ("Anna", "Ben"))
    with served.client(folder, token="a-token-of-the-owner") as opened:
        work(opened, anna)
        assert len(last(opened, anna)) == 5
        assert last(opened, ben) == {}
        with Library(folder, parts=served.parts()) as library:
            library.remove([documents / "ireland.md"])
        assert set(last(opened, anna)) == {"norway", "tender.txt", "Boats"}
        with Library(folder, parts=served.parts()) as library:
            library.remove([documents / "ireland.md"], erase=True)
    assert b"ireland.md" not in (folder / HISTORY_FILE).read_bytes()


def test_with_history_off_nothing_is_remembered(folder: Path) -> None:
    with served.client(folder, history=False) as opened:
        opened.get("/diff", params=COMPARED)
        opened.post("/verify", data={"text": TEXT, "in": "**/Zanzibar/**"})
        assert last(opened) == {}
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert not any(b"Quixotically" in content or b"Zanzibar" in content for content in files)


def test_what_another_version_has_kept_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    answer, suggested = Answer("When?", "At seven.", "answered"), Suggested(quoted=(("hash", "/a.md"),))
    with closing(History(tmp_path)) as history:
        epoch = history.epoch()
        history.put_answer("key", "index", answer, epoch=epoch, conversation=None)
        history.put_suggested("key", "index", suggested, epoch=epoch)
        history.put_work(WORK, epoch=epoch)
        assert (history.answer("key"), history.suggested("key", "index")) == (answer, suggested)
        assert history.suggested("key", "another index") == Suggested()
        with closing(sqlite3.connect(tmp_path / HISTORY_FILE)) as connection, connection:
            connection.execute("UPDATE cached SET value = '[]'")
        assert (history.answer("key"), history.suggested("key", "index")) == (None, Suggested())
        assert history.last_work() == []
        history.forget_documents(lambda *_document: False)


@pytest.mark.parametrize("forgets", ["everything", "a person", "what was erased", "what has moved"])
def test_what_is_forgotten_while_a_text_is_checked_does_not_come_back(tmp_path: Path, forgets: str) -> None:
    with closing(History(tmp_path)) as history:
        epoch = history.epoch()
        history.put_work(WORK, epoch=epoch)
        assert history.last_work() == [WORK]
        ways: Mapping[str, Callable[[], object]] = {
            "everything": history.forget_all,
            "a person": history.forget_person,
            "what was erased": lambda: history.forget_documents(lambda *_document: False, erased=lambda _name: False),
            "what has moved": lambda: history.move_documents({"/a": "/b"}),
        }
        ways[forgets]()
        assert history.last_work() == []
        history.put_work(WORK, epoch=epoch)
        assert history.last_work() == ([WORK] if forgets == "what has moved" else [])


def test_what_others_did_last_stays_when_a_person_forgets(tmp_path: Path) -> None:
    with closing(History(tmp_path)) as history:
        answer, others = Answer("When?", "At seven.", "answered"), history.of("b")
        for one in (history, others):
            one.put_work(WORK, epoch=one.epoch())
        kept = history.add(None, answer, epoch=history.epoch(), opens=True)
        history.forget(str(kept))
        assert (history.last_work(), others.last_work()) == ([], [WORK])
        history.put_work(WORK, epoch=history.epoch())
        history.forget_person()
        assert (history.last_work(), others.last_work()) == ([], [WORK])


def test_what_a_text_was_found_to_say_goes_with_the_documents_that_say_so(folder: Path, documents: Path) -> None:
    with served.client(folder) as opened:
        opened.post("/verify", data={"text": "Parental leave is 27 weeks.", "in": "ireland.md"})
        assert "ireland.md" in last(opened)
        with Library(folder, parts=served.parts()) as library:
            library.remove([documents / "ireland.md"])
        assert "ireland.md" not in last(opened)
