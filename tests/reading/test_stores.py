"""Mail of a Maildir and of Thunderbird, literature of Zotero: recognised by their folders, and read."""

import sqlite3
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.errors import ReadError
from local_rag.reading.converters.zotero import convert_zotero
from local_rag.reading.mailbox import names_to_read, thunderbird_profiles, zotero_folders
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY

MAIL = "From: Ada Byron <ada@example.org>\nDate: Mon, 3 Mar 2025 10:00:00 +0000\nSubject: {subject}\n{more}\n{text}\n"
SCHEMA = """
CREATE TABLE items (itemID INTEGER PRIMARY KEY, itemTypeID INT);
CREATE TABLE itemTypes (itemTypeID INTEGER PRIMARY KEY, typeName TEXT);
CREATE TABLE deletedItems (itemID INTEGER PRIMARY KEY);
CREATE TABLE fields (fieldID INTEGER PRIMARY KEY, fieldName TEXT);
CREATE TABLE itemData (itemID INT, fieldID INT, valueID INT);
CREATE TABLE itemDataValues (valueID INTEGER PRIMARY KEY, value);
CREATE TABLE creators (creatorID INTEGER PRIMARY KEY, firstName TEXT, lastName TEXT);
CREATE TABLE itemCreators (itemID INT, creatorID INT, orderIndex INT);
CREATE TABLE collections (collectionID INTEGER PRIMARY KEY, collectionName TEXT);
CREATE TABLE collectionItems (collectionID INT, itemID INT);
CREATE TABLE tags (tagID INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE itemTags (itemID INT, tagID INT);
CREATE TABLE itemNotes (itemID INTEGER PRIMARY KEY, parentItemID INT, note TEXT);
CREATE TABLE itemAttachments (itemID INTEGER PRIMARY KEY, parentItemID INT);
CREATE TABLE itemAnnotations (itemID INTEGER PRIMARY KEY, parentItemID INT, text TEXT, comment TEXT, pageLabel TEXT);
INSERT INTO itemTypes VALUES (1, 'journalArticle'), (2, 'attachment'), (3, 'annotation');
INSERT INTO items VALUES (1, 1), (2, 2), (3, 3), (4, 1);
INSERT INTO deletedItems VALUES (4);
INSERT INTO fields VALUES (1, 'title'), (2, 'date'), (3, 'abstractNote');
INSERT INTO itemDataValues VALUES (1, 'Lamps of the North'), (2, '1987'), (3, 'How lamps are kept.'), (4, 'Old');
INSERT INTO itemData VALUES (1, 1, 1), (1, 2, 2), (1, 3, 3), (4, 1, 4);
INSERT INTO creators VALUES (1, 'Ines', 'Moen'), (2, 'Otto', 'Dahl');
INSERT INTO itemCreators VALUES (1, 2, 1), (1, 1, 0);
INSERT INTO collections VALUES (1, 'Harbours');
INSERT INTO collectionItems VALUES (1, 1);
INSERT INTO tags VALUES (1, 'light');
INSERT INTO itemTags VALUES (1, 1);
INSERT INTO itemNotes VALUES (9, 1, '<p>Ask <b>Moen</b> about chapter 2.</p>');
INSERT INTO itemAttachments VALUES (2, 1);
INSERT INTO itemAnnotations VALUES (3, 2, 'The wick is trimmed daily.', 'really?', '14');
"""


def mail(subject: str, text: str, more: str = "") -> str:
    return MAIL.format(subject=subject, text=text, more=more)


def indexed(library: Path, *paths: Path) -> dict[str, str]:
    """Return the title of each document below the folder that was indexed."""
    with Library(library, parts=EMBEDS_QUICKLY, profile="tiny", context="headings") as opened:
        report = opened.index(paths)
        assert not report.to_look_at, report.skipped
        return {str(Path(one.path).relative_to(paths[0].parent)): one.title for one in opened.documents.listed()}


def maildir(folder: Path) -> None:
    for name in ("cur", "new", "tmp"):
        (folder / name).mkdir(parents=True)


def test_a_maildir_is_read_with_its_folders_and_without_unfinished_mail(tmp_path: Path) -> None:
    box = tmp_path / "Maildir"
    maildir(box)
    maildir(box / ".Sent")
    (box / "cur" / "1741000000.M1P2.host.example.zip:2,S").write_text(mail("Boat", "The boat leaves at nine."))
    (box / "new" / "1741000001.M2P3.host").write_text(mail("Crane", "The crane is broken."))
    (box / "tmp" / "1741000002.M2P3.host").write_text(mail("Half", "Half of it"))
    (box / ".Sent" / "cur" / "1741000003.M3P3.host:2,").write_text(mail("Sent", "I sent this."))
    (box / "dovecot.index").write_text("not mail")
    assert indexed(tmp_path / "lib", box) == {
        "Maildir/.Sent/cur/1741000003.M3P3.host:2,": "Sent",
        "Maildir/cur/1741000000.M1P2.host.example.zip:2,S": "Boat",
        "Maildir/new/1741000001.M2P3.host": "Crane",
    }


def profile(home: Path) -> Path:
    made = home / ".thunderbird" / "ab12.default-release"
    (made / "Mail" / "Local Folders" / "Inbox.sbd").mkdir(parents=True)
    (made / "prefs.js").write_text("secret")
    (made / "logins.json").write_text("{}")
    messages = [mail("Boat", "The boat leaves at nine."), mail("Gone", "Deleted.", "X-Mozilla-Status: 0009\n")]
    inbox = "".join(f"From - Mon Mar  3 10:00:00 2025\n{one}\n" for one in messages)
    (made / "Mail" / "Local Folders" / "Inbox").write_text(inbox)
    (made / "Mail" / "Local Folders" / "Inbox.msf").write_text("index")
    (made / "Mail" / "Local Folders" / "Inbox.sbd" / "Old").write_text(inbox.replace("Boat", "Ferry"))
    (made / "Mail" / "Local Folders" / "Inbox.sbd" / "Old.msf").write_text("index")
    return made


def test_the_mail_of_thunderbird_is_read_and_nothing_else_of_the_profile(tmp_path: Path) -> None:
    made = profile(tmp_path)
    assert thunderbird_profiles(tmp_path) == [made]
    titles = indexed(tmp_path / "lib", made)
    assert sorted(titles.values()) == ["Boat", "Ferry"], "deleted mail is not read"
    assert all("/Mail/Local Folders/Inbox" in path for path in titles)
    with Library(tmp_path / "lib", parts=EMBEDS_QUICKLY) as library:
        again = library.index()
    assert (again.added, again.removed, again.unchanged) == (0, 0, 2)


def zotero(folder: Path) -> None:
    (folder / "storage" / "ABCD").mkdir(parents=True)
    (folder / "storage" / "ABCD" / "lamps.txt").write_text("The text of the article on lamps.")
    (folder / "styles").mkdir()
    (folder / "styles" / "apa.csl").write_text("a style")
    with sqlite3.connect(folder / "zotero.sqlite") as database:
        database.executescript(SCHEMA)
    database.close()


def test_the_items_of_zotero_are_read_with_what_is_known_of_them(tmp_path: Path) -> None:
    zotero(tmp_path / "Zotero")
    assert zotero_folders(tmp_path) == [tmp_path / "Zotero"]
    text = convert_zotero((tmp_path / "Zotero" / "zotero.sqlite").read_bytes()).text
    assert text.split("\n\n") == [
        "Lamps of the North",
        "Type: journalArticle",
        "By: Ines Moen, Otto Dahl",
        "Collections: Harbours",
        "Tags: light",
        "Date: 1987",
        "Abstract: How lamps are kept.",
        "Note: Ask **Moen** about chapter 2.",
        "Annotation: The wick is trimmed daily.; really? (page 14)",
    ]
    assert set(indexed(tmp_path / "lib", tmp_path / "Zotero")) == {
        "Zotero/storage/ABCD/lamps.txt",
        "Zotero/zotero.sqlite",
    }


@pytest.mark.parametrize("data", [b"", b"SQLite format 3\x00" + b"\x00" * 2000, b"no database" * 100])
def test_what_is_no_database_of_zotero_is_said(data: bytes) -> None:
    with pytest.raises(ReadError, match="not a database of Zotero"):
        convert_zotero(data)


def test_other_folders_are_read_whole_but_for_what_is_hidden() -> None:
    assert names_to_read(["a.md", ".git", "cur", "new"]) == ["a.md", "cur", "new"]


def test_a_program_that_is_not_there_is_said(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for flag, program in (("--thunderbird", "Thunderbird"), ("--zotero", "Zotero")):
        result = run("index", flag, "--profile", "tiny")
        assert (result.exit_code, f"No folder of {program} was found" in result.output) == (1, True)
    profile(tmp_path)
    result = run("index", "--thunderbird", "--profile", "tiny", "--context", "headings")
    assert (result.exit_code, "2 documents" in result.output) == (0, True), result.output
