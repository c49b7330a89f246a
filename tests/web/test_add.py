"""Documents from the page: files and folders that are added, what is refused, and what is removed again."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from local_rag.files import AUDIT_FILE
from local_rag.store.people_file import add_person
from local_rag.web.changes.additions import MOST_FILES, file_name
from local_rag.web.changes.document_changes import DocumentChanges
from tests.support import served

SECRET = "a-token-of-the-owner"
COMMAND = [sys.executable, "-m", "tests.support.maintain_with_fakes"]
HOST = {"authorization": f"Bearer {SECRET}"}
JSON = {"accept": "application/json"}


@pytest.fixture
def opened(folder: Path, tmp_path: Path) -> Iterator[TestClient]:
    """A server with a folder from which may be added, and one beside it from which may not."""
    for name in ("allowed/more", "forbidden"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "kite.md").write_text(f"# Kite\n\nThe kite of {name} flies over the harbour.")
    with served.client(
        folder, token=SECRET, may_add=[tmp_path / "allowed"], maintain=COMMAND, audit_log=True
    ) as client:
        client.headers.update(HOST)
        yield client


def upload(opened: TestClient, *files: tuple[str, bytes], **headers: str) -> Any:
    sent = [("files", (name, content)) for name, content in files]
    return opened.post("/library/add", files=sent, headers=JSON | headers)


def paths(opened: TestClient, **headers: str) -> set[str]:
    return {Path(one["path"]).name for one in opened.get("/library?format=json", headers=headers).json()["documents"]}


def wait_until_done(opened: TestClient) -> str:
    """Wait until nothing is done any more; return the page that says how it ended."""
    served.wait_until(lambda: opened.get("/library/task").headers["x-local-rag-running"] == "no", 120)
    return opened.get("/library/task").text


def test_files_are_copied_indexed_and_found(opened: TestClient, folder: Path) -> None:
    added = upload(opened, ("kite.txt", b"A kite needs wind."), ("kite.txt", b"A kite needs a line."))
    assert added.status_code == 200
    written = [Path(path) for path in added.json()["added"]]
    assert [path.name for path in written] == ["kite.txt", "kite-2.txt"]
    assert {path.parent for path in written} == {folder.parent / f"{folder.name}-uploads"}
    assert written[0].stat().st_mode & 0o077 == 0
    assert "Indexed." in wait_until_done(opened)
    assert {"kite.txt", "kite-2.txt"} <= paths(opened)
    found = opened.get("/search?q=kite&format=json").json()["passages"]
    assert "A kite needs wind." in [one["text"] for one in found]
    again = upload(opened, ("kite.txt", b"A kite needs wind."))
    assert again.json()["added"] == [str(written[0])], "the same file is there already"
    assert sorted(path.name for path in written[0].parent.iterdir()) == ["kite-2.txt", "kite.txt"]
    wait_until_done(opened)


def test_a_folder_of_the_server_is_added_if_it_lies_below_one_that_was_named(
    opened: TestClient, tmp_path: Path
) -> None:
    (tmp_path / "allowed" / "way-out").symlink_to(tmp_path / "forbidden")
    for named in ("forbidden", "allowed/../forbidden", "allowed/way-out", "allowed/way-out/kite.md", ""):
        refused = opened.post("/library/add", json={"path": str(tmp_path / named)}, headers=JSON)
        assert refused.status_code == 403, named
    assert opened.post("/library/add", json={"path": "allowed"}, headers=JSON).status_code == 403
    assert opened.post("/library/add", json={"path": "/\0"}, headers=JSON).status_code == 403
    assert opened.post("/library/add", json={}, headers=JSON).status_code == 400
    assert opened.post("/library/add", json={"path": str(tmp_path / "allowed/none")}, headers=JSON).status_code == 404
    assert opened.get(f"/library/add?below={tmp_path / 'forbidden'}").status_code == 403
    listed = opened.get(f"/library/add?below={tmp_path / 'allowed'}").text
    assert "more/" in listed
    assert "way-out" not in listed
    added = opened.post("/library/add", data={"path": str(tmp_path / "allowed" / "more")})
    assert (added.status_code, added.headers["location"]) == (303, "/library/add")
    wait_until_done(opened)
    assert "kite.md" in paths(opened)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        (".gitignore", "gitignore"),
        ("...", "document"),
        ("", "document"),
        ("a\x00b\x1b[31m\n.txt", "a_b_[31m_.txt"),
        ("\u202etxt.exe", "_txt.exe"),
        ("con:aux|.md", "con_aux_.md"),
        ("x" * 5000 + ".md", "x" * 150 + ".md"),
        ("\u00fc" * 200 + ".pdf", "\u00fc" * 75 + ".pdf"),
        ("<img src=x onerror=alert(1)>.md", "_img src=x onerror=alert(1)_.md"),
        ("u\u0308ber.md", "\u00fcber.md"),
    ],
)
def test_no_name_leads_out_hides_or_harms(given: str, name: str) -> None:
    assert file_name(given) == name


def test_what_is_not_read_is_refused_with_its_reason(opened: TestClient, folder: Path) -> None:
    refused = upload(
        opened, ("program.exe", b"MZ"), ("id_rsa", b"key"), ("empty.txt", b""), ("big.txt", b"x" * (50 * 2**20 + 1))
    )
    assert refused.status_code == 400
    assert [(one["name"], one["reason"].partition(",")[0]) for one in refused.json()["refused"]] == [
        ("program.exe", "program"),
        ("id_rsa", "a file of keys or passwords"),
        ("empty.txt", "the file is empty"),
        ("big.txt", "larger than the limit of 50 MiB"),
    ]
    uploads = folder.parent / f"{folder.name}-uploads"
    assert not uploads.exists() or list(uploads.iterdir()) == []
    page = opened.post("/library/add", files=[("files", ("<b>.exe", b"MZ")), ("files", ("a.txt", b"Wind."))]).text
    assert "&lt;b&gt;.exe" in page
    assert "program, not a document" in page
    assert "Added 1 file" in page
    wait_until_done(opened)


def test_too_many_files_or_bytes_are_refused(opened: TestClient) -> None:
    many = upload(opened, *[(f"{number}.txt", b"x") for number in range(MOST_FILES + 1)])
    assert many.status_code == 400
    declared = {"content-type": "multipart/form-data; boundary=x", "content-length": str(2**40)}
    assert opened.post("/library/add", content=b"--x", headers=declared).status_code == 413
    long = opened.post("/library/add", content=b"x" * 70_000, headers={"content-type": "application/json"})
    assert long.status_code == 413, "only files may be long"
    assert upload(opened).status_code == 400


def test_files_of_one_link_replace_nothing(opened: TestClient, folder: Path, tmp_path: Path) -> None:
    uploads = folder.parent / f"{folder.name}-uploads"
    uploads.mkdir()
    target = tmp_path / "precious.txt"
    target.write_text("Precious.")
    (uploads / "kite.txt").symlink_to(target)
    added = upload(opened, ("kite.txt", b"A kite needs wind.")).json()["added"]
    assert [Path(path).name for path in added] == ["kite-2.txt"]
    assert target.read_text() == "Precious."
    wait_until_done(opened)


def test_readers_add_nothing_and_limited_editors_only_files_which_they_then_see(
    opened: TestClient, folder: Path, tmp_path: Path
) -> None:
    reader = {"authorization": f"Bearer {add_person(folder, 'Anna', 'reader')}"}
    editor = {"authorization": f"Bearer {add_person(folder, 'Ed', 'editor', within=['boat.txt'])}"}
    for route in ("add", "index", "watch", "stop", "remove"):
        assert opened.post(f"/library/{route}", data={"path": "x"}, headers=reader).status_code == 403
    assert opened.get("/library/add", headers=reader).status_code == 403
    assert "/library/add" not in opened.get("/library", headers=reader).text
    path = str(tmp_path / "allowed")
    assert opened.post("/library/add", json={"path": path}, headers=editor).status_code == 403
    assert path not in opened.get("/library/add", headers=editor).text
    added = upload(opened, ("kite.txt", b"A kite needs wind."), **editor)
    assert added.status_code == 200
    wait_until_done(opened)
    assert paths(opened, **editor) == {"boat.txt", "kite.txt"}
    assert "kite.txt" in paths(opened)
    task = opened.get("/library/task", headers=editor).text
    assert "Indexed" not in task, "how it ended may name what is outside"


def test_removing_is_confirmed_and_erasing_is_for_owners(opened: TestClient, folder: Path) -> None:
    editor = {"authorization": f"Bearer {add_person(folder, 'Ed', 'editor')}"}
    number = next(
        one["id"] for one in opened.get("/library?format=json").json()["documents"] if one["path"].endswith("boat.txt")
    )
    asked = opened.post("/library/remove", data={"document": str(number)}, headers=editor)
    assert "Remove from the library?" in asked.text
    assert 'value="erase"' not in asked.text
    confirmed = {"document": str(number), "confirmed": "1"}
    assert opened.post("/library/remove", data=confirmed | {"how": "erase"}, headers=editor).status_code == 403
    assert "boat.txt" in paths(opened)
    assert opened.post("/library/remove", data=confirmed | {"how": "erase"}).status_code == 303
    assert "Erased." in wait_until_done(opened)
    assert "boat.txt" not in paths(opened)
    assert opened.post("/library/remove", data={"root": "/etc", "confirmed": "1"}).status_code == 404
    lines = [json.loads(line) for line in (folder / AUDIT_FILE).read_text().splitlines()]
    assert [(line["change"], [Path(path).name for path in line["paths"]]) for line in lines] == [
        ("erase", ["boat.txt"])
    ]


def test_without_a_token_documents_are_changed_only_where_the_flag_says_so(folder: Path, tmp_path: Path) -> None:
    with served.client(folder, maintain=COMMAND) as opened:
        assert upload(opened, ("kite.txt", b"x")).status_code == 403
        assert opened.post("/library/index").status_code == 403
    with served.client(folder, maintain=COMMAND, may_add=[tmp_path]) as opened:
        assert upload(opened, ("kite.txt", b"A kite.")).status_code == 200
        wait_until_done(opened)


def test_stop_ends_what_runs_and_drops_what_waits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_WAITS_BEFORE", "600")
    changes = DocumentChanges(folder, COMMAND)
    try:
        changes.submit("index")
        assert changes.view().running, "whoever looks at once goes on looking"
        changes.submit("remove", ["/nowhere"])
        served.wait_until(lambda: changes.view().waiting == 1)
        changes.stop()
        served.wait_until(lambda: not changes.view().running)
        assert "Stopped" in changes.view().message
        assert changes.view().waiting == 0
    finally:
        changes.close()


def test_watching_indexes_changes_and_gives_way_to_orders(folder: Path, documents: Path) -> None:
    changes = DocumentChanges(folder, COMMAND)
    try:
        changes.watch(on=True)
        served.wait_until(lambda: changes.view().watching and changes.view().running, 60)
        changes.submit("remove", ["/nowhere"])
        served.wait_until(lambda: "/nowhere" in changes.view().message, 60)
        assert changes.view().watching
        changes.stop()
        served.wait_until(lambda: not changes.view().running)
        assert not changes.view().watching
    finally:
        changes.close()
    assert not changes.view().running
