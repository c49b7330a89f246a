"""Files: written whole or not at all, and read only where they are files."""

import fcntl
import hashlib
import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import local_rag
from local_rag.errors import LocalRagError
from local_rag.files import (
    FileStamp,
    as_listed,
    document_sha256,
    extra_command,
    file_sha256,
    flush,
    folder_bytes,
    is_locked,
    open_regular,
    read_stamped,
    require_place,
    stamp_of,
    write_whole,
)
from tests.fakes import IgnoresCase


@pytest.mark.parametrize("kind", ["pipe", "link", "dangling link"])
def test_a_pipe_or_a_link_is_never_replaced(tmp_path: Path, kind: str) -> None:
    path, target = tmp_path / "out.csv", tmp_path / "target"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(target)
        if kind == "link":
            target.write_text("kept")
    before = path.lstat()
    with pytest.raises(OSError, match="it is "):
        write_whole(path, "new")
    assert path.lstat() == before
    assert not target.exists() or target.read_text() == "kept"


def test_a_place_where_nothing_can_be_written_is_refused_in_a_sentence(tmp_path: Path) -> None:
    require_place(tmp_path / "new.csv")
    (tmp_path / "file").touch()
    require_place(tmp_path / "file")
    for place in (tmp_path, tmp_path / "none" / "new.csv", tmp_path / "file" / "new.csv"):
        with pytest.raises(LocalRagError, match=f"{place} cannot be written "):
            require_place(place)


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_is_replaced_whole(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "settings.toml"
    for content in ("old", b"n\xc3\xa9w", "né"):
        write_whole(path, content, durable=durable)
        assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
        assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("old")
    path.chmod(mode)
    write_whole(path, "new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", mode)


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


def test_a_size_is_told_while_another_program_makes_and_removes_folders(tmp_path: Path) -> None:
    script = "import os, sys\nwhile True:\n    os.makedirs(sys.argv[1] + '/b'); os.removedirs(sys.argv[1] + '/b')"
    (tmp_path / "kept").write_bytes(b"x")
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "a")]) as other:
        try:
            assert {folder_bytes(tmp_path) for _ in range(3000)} == {1}
        finally:
            other.kill()


SECOND = 1_000_000_000
OLD = FileStamp(size=4, modified_ns=100 * SECOND, changed_ns=200 * SECOND, inode=7)


def test_a_stamp_matches_only_the_same_file() -> None:
    assert OLD.matches(OLD)
    for other in ({"size": 5}, {"modified_ns": 1}, {"changed_ns": 1}, {"inode": 8}):
        assert not OLD.matches(OLD._replace(**other)), other
    assert OLD.matches(OLD._replace(inode=0)), "the file system does not keep its numbers"
    young = OLD._replace(changed_ns=0)
    assert not young.matches(young), "another change could bear the same time"


@pytest.mark.parametrize(("modified_ns", "tick"), [(1_000 * SECOND + 5, 0.02), (1_000 * SECOND, 2.0)])
@pytest.mark.parametrize(("ticks", "is_young"), [(0, True), (0.9, True), (-0.9, True), (1.1, False), (-1.1, False)])
def test_a_file_is_young_for_a_tick_of_its_clock(
    tmp_path: Path, modified_ns: int, tick: float, ticks: float, is_young: bool
) -> None:
    path = tmp_path / "a"
    path.write_text("text")
    os.utime(path, ns=(modified_ns, modified_ns))
    status = path.stat()
    stamp = stamp_of(status, modified_ns + int(ticks * tick * SECOND))
    assert (stamp.changed_ns == 0) == is_young
    assert (stamp.size, stamp.modified_ns, stamp.inode) == (4, modified_ns, status.st_ino)


def test_a_file_is_young_after_any_change(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("text")
    os.utime(path, ns=(5, 5))
    assert stamp_of(path.stat(), path.stat().st_ctime_ns).changed_ns == 0


def test_a_file_is_looked_at_once_for_its_content_and_its_stamp(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("a text")
    status = path.stat()
    content, stamp = read_stamped(path, 4)
    assert (content, stamp[:2], stamp.changed_ns) == (b"a te", (6, status.st_mtime_ns), 0)


def test_a_flush_empties_the_cache_of_the_disk_where_the_system_has_a_command_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = list[str]()
    known = {51}

    def command(_descriptor: int, number: int) -> None:
        if number not in known:
            raise OSError
        done.append("full")

    monkeypatch.setattr(fcntl, "fcntl", command)
    monkeypatch.setattr(os, "fsync", lambda _descriptor: done.append("plain"))
    flush(tmp_path, 51)
    known.clear()
    flush(tmp_path, 51)
    flush(tmp_path, None)
    assert done == ["full", "plain", "plain"]


def test_a_path_has_the_names_that_its_folders_list(tmp_path: Path) -> None:
    (tmp_path / "Docs" / "STRASSE").mkdir(parents=True)
    (tmp_path / "docs 2").mkdir()
    disk = IgnoresCase()
    assert as_listed(tmp_path / "dOCS" / "straße", disk) == tmp_path / "Docs" / "STRASSE"
    assert as_listed(tmp_path / "docs 2", disk) == tmp_path / "docs 2"
    assert as_listed(tmp_path / "missing" / "x", disk) == tmp_path / "missing" / "x"
    (tmp_path / "docs").mkdir()
    assert as_listed(tmp_path / "docs") == tmp_path / "docs", "another folder where case matters"
    assert as_listed(tmp_path / "DOCS") == tmp_path / "DOCS", "there is none"


def test_the_command_that_installs_an_extra_can_be_pasted_where_paths_have_spaces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/home/ann lee/.venv/bin/python")
    program, *arguments = shlex.split(extra_command("cluster"))
    assert program == "/home/ann lee/.venv/bin/python"
    assert arguments[:3] == ["-m", "pip", "install"]
    assert arguments[-1] == f"{Path(local_rag.__file__).parents[1]}[cluster]"


def test_what_is_no_regular_file_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "pipe", "x")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists locks")
def test_a_lock_on_a_file_of_another_disk_with_the_same_number_is_not_its_own(tmp_path: Path) -> None:
    path, locks = tmp_path / "lock", tmp_path / "locks"
    with path.open("w") as file:
        assert not is_locked(path)
        fcntl.flock(file, fcntl.LOCK_EX)
        assert is_locked(path)
    line = f"1: FLOCK ADVISORY WRITE 7 ff:ff:{path.stat().st_ino} 0 EOF\n"
    locks.write_text(line)
    assert not is_locked(path, locks)
