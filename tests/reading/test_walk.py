"""Which files are found, in which order, and why the others are left out."""

import os
import socket
from importlib import import_module
from pathlib import Path

import pytest

from local_rag.document_records import Skipped
from local_rag.errors import LocalRagError
from local_rag.reading import formats
from local_rag.reading.walk import Found, Walk


def write(folder: Path, *names: str) -> None:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("text", "utf-8")


def found(folder: Path, *, exclude: tuple[Path, ...] = ()) -> list[str]:
    return [
        Path(item.path).relative_to(folder.resolve()).as_posix()
        for item in Walk(exclude=exclude).files([folder])
        if isinstance(item, Found)
    ]


def skipped(folder: Path, *, max_bytes: int = 1000) -> dict[str, str]:
    items = Walk(max_bytes=max_bytes).files([folder])
    return {item.path.name: item.reason for item in items if isinstance(item, Skipped)}


def test_files_come_in_order_and_hidden_ones_not_at_all(tmp_path: Path) -> None:
    write(
        tmp_path,
        "b.md",
        "a/z.txt",
        "a/b/c.md",
        "c.py",
        ".env",
        ".cache/x.md",
        "node_modules/m/x.js",
        "__pycache__/x.py",
    )
    assert found(tmp_path) == ["a/b/c.md", "a/z.txt", "b.md", "c.py"]
    assert skipped(tmp_path) == {}


def test_paths_are_absolute_and_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "docs/a.md")
    monkeypatch.chdir(tmp_path)
    items = Walk().files([Path("docs"), Path("docs/a.md"), Path("docs/../docs")])
    assert [item.path for item in items] == [str(tmp_path.resolve() / "docs" / "a.md")]


def test_gitignore_files_nest_and_negate(tmp_path: Path) -> None:
    write(
        tmp_path,
        "keep.log",
        "drop.log",
        "build/x.md",
        "sub/drop.log",
        "sub/important.log",
        "sub/only/here.md",
        "only/y.md",
    )
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\nbuild/\n/only\n!\n", "utf-8")
    (tmp_path / "sub/.gitignore").write_text("# innermost wins\n!important.log\n", "utf-8")
    assert found(tmp_path) == ["keep.log", "sub/important.log", "sub/only/here.md"]


def test_files_in_an_ignored_folder_cannot_be_included_again(tmp_path: Path) -> None:
    write(tmp_path, "build/x.md", "a.md")
    (tmp_path / ".gitignore").write_text("build/\n!build/x.md\n", "utf-8")
    assert found(tmp_path) == ["a.md"]


def test_gitignore_of_the_enclosing_repository_applies(tmp_path: Path) -> None:
    write(tmp_path, "docs/a.md", "docs/a.tmp", "docs/out/b.md")
    (tmp_path / ".gitignore").write_text("*.tmp\ndocs/out\n", "utf-8")
    assert found(tmp_path / "docs") == ["a.md", "a.tmp", "out/b.md"]
    (tmp_path / ".git").mkdir()
    assert found(tmp_path / "docs") == ["a.md"]
    assert found(tmp_path / "docs" / "out") == ["b.md"], "a folder that is ignored itself was named on purpose"
    write(tmp_path, "docs/out/deep/c.md", "docs/out/deep/c.tmp")
    assert found(tmp_path / "docs" / "out" / "deep") == ["c.md", "c.tmp"], "and so was what lies in it"


def test_a_gitignore_that_is_a_link_or_a_folder_is_ignored(tmp_path: Path) -> None:
    write(tmp_path, "linked/a.md", "folder/a.md", "short/a.md")
    (tmp_path / "rules").write_text("*.md\n", "utf-8")
    (tmp_path / "linked/.gitignore").symlink_to(tmp_path / "rules")
    (tmp_path / "folder/.gitignore").mkdir()
    (tmp_path / "short/.gitignore").write_bytes(b"\xef\xbb\xbf*.md\r\n\xff\r\n")
    assert found(tmp_path) == ["folder/a.md", "linked/a.md", "rules"]


def test_a_named_file_is_always_taken(tmp_path: Path) -> None:
    write(tmp_path, ".hidden.md", "ignored.md", "link-target.md")
    (tmp_path / ".gitignore").write_text("*.md", "utf-8")
    (tmp_path / "link.md").symlink_to("link-target.md")
    names = [".hidden.md", "ignored.md", "link.md"]
    items = Walk().files([tmp_path / name for name in names])
    assert [item.path for item in items] == [
        str(tmp_path.resolve() / name) for name in (".hidden.md", "ignored.md", "link-target.md")
    ]


def test_excluded_paths_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "library/x.md", "a.md", "b.md")
    assert found(tmp_path, exclude=(tmp_path / "library", tmp_path / "b.md")) == ["a.md"]


def test_a_missing_path_is_named_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(LocalRagError, match=r"File or folder .*nowhere does not exist"):
        next(Walk().files([tmp_path, tmp_path / "nowhere"]))


def test_no_suffix_is_both_read_and_unsupported() -> None:
    listed = [formats._MARKDOWN, *formats._CONVERTERS, *formats._ARCHIVES, *formats._LANGUAGES.values()]
    read = " ".join(listed).split()
    assert len(set(read)) == len(read), "a suffix has one format"
    unsupported = {suffix for suffix, known in formats.FORMATS.items() if known.unsupported}
    assert unsupported == formats.FORMATS.keys() - set(read)


def test_a_folder_whose_rules_are_too_long_is_not_looked_into(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "sub/secret.md")
    (tmp_path / "sub/.gitignore").write_text("secret*\n" + "# padding\n" * 20_000)
    assert found(tmp_path) == ["a.md"]
    assert skipped(tmp_path) == {"sub": "cannot be opened (its .gitignore is larger than 128 KiB)"}


def test_every_format_names_a_converter_that_exists() -> None:
    named = {known.converter for known in formats.FORMATS.values() if known.converter}
    assert len(named) == len(formats._CONVERTERS) + len(formats._ARCHIVES)
    for name in named:
        module, function = name.split(".")
        assert callable(getattr(import_module(f"local_rag.reading.converters.{module}"), function))


def test_unsupported_and_oversized_files_are_listed_with_the_reason(tmp_path: Path) -> None:
    write(tmp_path, "rows.jsonl", "old.doc", "~$fine.docx", "fine.md")
    (tmp_path / "big.md").write_bytes(b"x" * 1001)
    (tmp_path / "limit.md").write_bytes(b"x" * 1000)
    assert skipped(tmp_path) == {
        "rows.jsonl": "data file, not a document",
        "~$fine.docx": "the lock of an office program on a document that is open",
        "old.doc": "unsupported document format; save it as .docx, .xlsx, .pptx or .pdf",
        "big.md": "0.0 MiB, larger than the limit of 0.0 MiB",
    }
    assert found(tmp_path) == ["big.md", "fine.md", "limit.md"]


def test_symbolic_links_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path, "outside/secret.md", "docs/a.md", "docs/sub/b.md")
    docs = tmp_path / "docs"
    (docs / "out").symlink_to(tmp_path / "outside")
    (docs / "secret").symlink_to(tmp_path / "outside/secret.md")
    (docs / "sub/up").symlink_to(docs)
    (docs / "self").symlink_to("self")
    (docs / "gone").symlink_to("nowhere")
    (docs / "twin").symlink_to("a.md")
    assert found(docs) == ["a.md", "sub/b.md"]
    assert skipped(docs) == {
        "out": "symbolic link out of the folder",
        "secret": "symbolic link out of the folder",
        "up": "symbolic link loop",
        "self": "symbolic link loop",
        "gone": "broken symbolic link",
        "twin": "symbolic link to another path in the same folder",
    }


def test_pipes_and_sockets_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert skipped(tmp_path) == {"pipe.md": "not a regular file", "socket": "not a regular file"}


def test_a_name_that_is_not_utf8_is_reported(tmp_path: Path) -> None:
    try:
        (tmp_path / os.fsdecode(b"caf\xe9.md")).write_text("x", "utf-8")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert list(skipped(tmp_path).values()) == ["name is not UTF-8"]


def test_very_deep_folders_do_not_exhaust_the_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(1200):
        Path("d").mkdir()
        os.chdir("d")
    Path("a.md").write_text("x", "utf-8")
    try:
        assert found(tmp_path) == ["d/" * 1200 + "a.md"]
    finally:  # too deep for pytest to clear away
        Path("a.md").unlink()
        for _ in range(1200):
            os.chdir("..")
            Path("d").rmdir()
