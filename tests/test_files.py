"""Files: written whole or not at all, and read only where they are files."""

import hashlib
import os
from pathlib import Path

import pytest

from local_rag.files import document_sha256, file_sha256, folder_bytes, open_regular, write_whole


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_is_replaced_whole(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "settings.toml"
    for content in ("old", b"n\xc3\xa9w", "né"):
        write_whole(path, content, durable=durable)
        assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
        assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_and_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "in the way"
    (path / "old").mkdir(parents=True)
    with pytest.raises(OSError, match="in the way"):
        write_whole(path, "new")
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "other", "no UTF-8: \udcff")
    assert list(tmp_path.rglob("*")) == [path, path / "old"]


def test_a_reader_keeps_what_it_opened(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_whole(path, "old")
    with path.open() as reader:
        write_whole(path, "a newer one")
        assert reader.read() == "old"
    assert path.read_text() == "a newer one"


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"text")
    with open_regular(file) as opened:
        assert opened.read() == b"text"
    os.mkfifo(tmp_path / "pipe")  # opening it as usual would wait for a writer for ever
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "folder").mkdir()
    for name, error in (
        ("pipe", "not a regular file"),
        ("link", "link"),
        ("folder", "not a regular file"),
        ("missing", "missing"),
    ):
        with pytest.raises(OSError, match=error), open_regular(tmp_path / name):
            pass
        with pytest.raises(OSError, match=error):
            document_sha256(tmp_path / name)


def test_hashes_are_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    wanted = hashlib.sha256(b"text").hexdigest()
    assert file_sha256(tmp_path / "file") == document_sha256(tmp_path / "file") == wanted


def test_a_folder_is_as_large_as_its_files(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "one").write_bytes(b"12345")
    (tmp_path / "below" / "two").write_bytes(b"123")
    assert folder_bytes(tmp_path) == 8
    assert folder_bytes(tmp_path / "one") == 5
    assert folder_bytes(tmp_path / "missing") == 0
