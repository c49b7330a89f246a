"""Watching folders: told at once of what changes, in batches, and not of what does not matter."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from local_rag.indexing.watch import Watch, batches

needs_inotify = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells")
SOON = 10.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    (tmp_path / "docs" / "a.md").write_text("one")
    (tmp_path / "docs" / "library").mkdir()
    return tmp_path / "docs"


@pytest.fixture
def watch(root: Path) -> Iterator[Watch]:
    with closing(Watch(root / "library", poll_seconds=1e9)) as watch:
        watch.look([root])
        yield watch


@pytest.fixture
def polling(root: Path) -> Iterator[Watch]:
    """A watch that is told nothing, as on a network drive."""
    with closing(Watch(root / "library", poll_seconds=0.05)) as watch:
        if watch._inotify:
            watch._inotify.close()
        watch._inotify = None
        watch.look([root])
        yield watch


def write(path: Path) -> None:
    path.write_text("new")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a new file": lambda root: write(root / "deep" / "b.md"),
    "a file written again": lambda root: write(root / "a.md"),
    "a file that is gone": lambda root: (root / "a.md").unlink(),
    "a file moved": lambda root: (root / "a.md").rename(root / "deep" / "a.md"),
    "a new folder": lambda root: (root / "new").mkdir(),
    "rules of what is ignored": lambda root: (root / ".gitignore").write_text("*.log\n"),
    "the root moved away": lambda root: root.rename(root.with_name("elsewhere")),
}


@needs_inotify
@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_told_at_once(change: str, watch: Watch, root: Path) -> None:
    assert not watch.wait(0)
    CHANGES[change](root)
    assert watch.wait(SOON)


@pytest.mark.parametrize("change", [change for change in CHANGES if change != "a new folder"])
def test_changes_are_seen_by_looking(change: str, polling: Watch, root: Path) -> None:
    assert not polling.wait(0.1)
    CHANGES[change](root)
    assert polling.wait(0.1)
    assert not polling.wait(0.1), "told once"


def test_what_is_hidden_or_in_the_library_is_no_change(watch: Watch, polling: Watch, root: Path) -> None:
    (root / ".git").mkdir()
    write(root / ".git" / "index")
    write(root / "library" / "CURRENT")
    assert not watch.wait(0.2)
    (root / "a.md").read_text()
    assert not watch.wait(0.2), "nor is reading"


def test_what_is_never_read_is_not_watched_and_hidden_folders_of_mail_are(root: Path) -> None:
    mail = root / "mail" / ".Archive"
    for folder in (root / "mail", mail):
        for part in ("cur", "new", "tmp"):
            (folder / part).mkdir(parents=True)
    (root / "node_modules" / "deep").mkdir(parents=True)
    with closing(Watch(root / "library", poll_seconds=1e9)) as watch:
        watch.look([root])
        assert not watch.wait(0)
        write(root / "node_modules" / "deep" / "a.md")
        assert not watch.wait(0.2)
        write(mail / "new" / "1700000000.one.host")
        assert watch.wait(SOON)


def test_a_root_that_comes_back_is_watched_again(root: Path) -> None:
    away = root.with_name("away")
    root.rename(away)
    with closing(Watch(root / "library", poll_seconds=0.05)) as watch:
        watch.look([root])
        assert not watch.wait(0.1)
        away.rename(root)
        assert watch.wait(0.1), "seen"
        watch.look([root])
        write(root / "b.md")
        assert watch.wait(SOON), "and told of from then on"


def test_what_changes_together_is_one_batch(root: Path) -> None:
    stop, seen = threading.Event(), list[int]()

    def copy() -> None:
        for number in range(300):
            folder = root / f"new {number // 100}"
            folder.mkdir(exist_ok=True)
            write(folder / f"{number}.md")

    with closing(Watch(root / "library", poll_seconds=0.2)) as watch:
        copier = threading.Thread(target=copy)
        for _ in batches(watch, lambda: [root], stop, quiet_seconds=0.5):
            seen.append(len(list(root.rglob("*.md"))))
            if len(seen) == 1:
                copier.start()
            else:
                stop.set()
    copier.join()
    assert seen == [1, 301], "what was there at the beginning, then all at once"


@needs_inotify
def test_only_a_new_folder_lets_all_folders_be_walked_again(watch: Watch, root: Path) -> None:
    write(root / "a.md")
    assert watch.wait(SOON)
    watch.follow()
    (root / "unwatched").mkdir()
    while watch.wait(0.2):
        pass
    write(root / "unwatched" / "b.md")
    assert not watch.wait(0.2), "nobody has looked at the new folder"
    watch.follow()
    write(root / "unwatched" / "b.md")
    assert watch.wait(SOON)
