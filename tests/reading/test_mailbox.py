"""A mailbox is a folder of messages: each is a document, named by where it begins, and read by itself."""

import hashlib
from pathlib import Path

import pytest

from local_rag.document_records import Skipped
from local_rag.errors import ReadError
from local_rag.library import Library
from local_rag.reading.mailbox import content_sha256, mailbox_of, messages, read_content
from local_rag.reading.read import parse, read, read_file
from local_rag.reading.walk import Found, Walk
from tests.fakes import QUICK


def message(subject: str, text: str, *, separator: str = "From ada@x.org Mon Jan  1 10:00:00 2024") -> str:
    return f"{separator}\nFrom: Ada <ada@x.org>\nSubject: {subject}\n\n{text}\n\n"


BOX = message("One", "The first.\n\n>From here on it is quoted.\n\nFrom the year 2024 on.") + message(
    "Two", "The second.", separator="From - Tue, 2 Jan 2024 10:00:00 +0000 2024"
)


def mailbox(folder: Path, text: str = BOX) -> Path:
    path = folder / "all.mbox"
    path.write_text(text)
    return path


def test_each_message_is_a_file_below_the_mailbox(tmp_path: Path) -> None:
    path = mailbox(tmp_path)
    second = BOX.index("From - Tue")
    found = list(Walk().files([tmp_path]))
    assert [one.path for one in found] == [f"{path}/0.eml", f"{path}/{second}.eml"]
    assert [one.path for one in Walk().files([path])] == [one.path for one in found]
    assert all(isinstance(one, Found) for one in found)
    first = read(Path(found[0].path))
    assert first.title == "One"
    assert first.text.endswith("The first.\n\nFrom here on it is quoted.\n\nFrom the year 2024 on.")
    assert read(Path(found[1].path)).text == "From: Ada <ada@x.org>\nSubject: Two\n\nThe second."
    for one in found:
        assert isinstance(one, Found)
        content, stamp = read_file(Path(one.path))
        assert stamp.size == one.stamp.size
        assert content_sha256(one.path) == hashlib.sha256(content).hexdigest()


def test_a_message_that_is_appended_renames_none_and_one_that_is_gone_is_missing(tmp_path: Path) -> None:
    path = mailbox(tmp_path)
    before = list(messages(path))
    path.write_text(BOX + message("Three", "The third."))
    assert list(messages(path))[:2] == before
    path.write_text(BOX[10:])
    with pytest.raises(ReadError, match="no message begins there"):
        read(Path(before[1][0]))


def test_a_real_folder_with_the_name_of_a_mailbox_is_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "old.mbox"
    folder.mkdir()
    (folder / "12.eml").write_text("Subject: Real\n\nA file.\n")
    [found] = Walk().files([tmp_path])
    assert isinstance(found, Found)
    assert read(Path(found.path)).title == "Real"
    assert mailbox_of(found.path) == str(folder)
    with pytest.raises(NotADirectoryError):
        read_content(folder / "12.eml" / "3", 9)


@pytest.mark.parametrize("text", ["", "no message\n", "From the year 2024\n\ntext\n"])
def test_a_file_without_messages_is_skipped(tmp_path: Path, text: str) -> None:
    [found] = Walk().files([mailbox(tmp_path, text)])
    assert isinstance(found, Skipped)
    assert found.reason == "a mailbox without messages"


def test_a_message_beyond_the_limit_is_skipped_alone(tmp_path: Path) -> None:
    path = mailbox(tmp_path, message("Large", "word " * 5000) + message("Small", "few"))
    large, small = Walk(max_bytes=9000).files([path])
    assert isinstance(large, Skipped)
    assert isinstance(small, Found)
    content, _ = read_content(Path(large.path), 9000)
    assert 9000 < len(content) + 60 < 9000 + 2 * 64 * 1024


def test_an_attached_mailbox_is_read_with_its_document() -> None:
    document = parse(Path("a.mbox"), BOX.encode())
    assert [heading.title for heading in document.headings] == ["One", "Two"]
    assert "The second." in document.text


def test_messages_are_documents_of_the_library_and_only_new_ones_are_read(tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    path = mailbox(documents)
    with Library(tmp_path / "lib", parts=QUICK, profile="tiny", context="headings") as library:
        assert library.index([documents]).added == 2
        path.write_text(BOX + message("Three", "The third is about lamps."))
        report = library.index()
        assert (report.added, report.changed, report.unchanged) == (1, 0, 2)
        [found] = [one for one in library.search("lamps") if "lamps" in one.text]
        assert Path(found.path).parent == path
        assert {one.state for one in library.documents.browse().documents} == {"same"}
        library.remove([Path(found.path)])
        assert library.index().unchanged == 2
        path.write_text(BOX[BOX.index("From - Tue") :])
        report = library.index()
        assert (report.changed, report.removed) == (1, 1)
        path.unlink()
        (documents / "b.md").write_text("# B\n\nText.\n")
        assert library.index().removed == 1


def test_the_state_of_a_message_is_that_of_its_mailbox(tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    path = mailbox(documents)
    with Library(tmp_path / "lib", parts=QUICK, profile="tiny", context="headings") as library:
        library.index([documents])
        first, second = library.documents.browse().documents
        path.write_text(BOX.replace("second", "2nd"))
        states = {one.path: one.state for one in library.documents.browse().documents}
        assert states == {first.path: "same", second.path: "changed"}
        path.unlink()
        assert {one.state for one in library.documents.browse().documents} == {"missing"}
