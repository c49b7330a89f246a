"""`local-rag index --watch`: what changes is found soon, until Ctrl-C."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from local_rag import Library
from local_rag.cli.index import _watch
from local_rag.errors import LibraryError
from local_rag.indexing.indexer import IndexReport
from local_rag.indexing.watch import Watch
from local_rag.maintenance.moved_roots import Root
from tests.conftest import Run

CODE = (
    "from local_rag.cli.main import main\n"
    "from tests.fakes import EMBEDS_QUICKLY\n"
    "import sys; sys.argv[0] = 'local-rag'; main(EMBEDS_QUICKLY)"
)


@pytest.mark.slow
def test_changes_are_indexed_until_it_is_stopped(documents: Path, run: Run) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(root)!r})\n{CODE}"]
    arguments = ["index", "documents", "--profile", "tiny", "--context", "headings", "--watch", "--json"]
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        assert json.loads(process.stdout.readline())["added"] == 3
        while "Watching" not in process.stderr.readline():
            pass
        (documents / "zeppelin.txt").write_text("The zeppelin leaves at noon.")
        report = json.loads(process.stdout.readline())
        assert (report["added"], report["unchanged"], report["published"]) == (1, 3, True)
        (found, *_) = json.loads(run("search", "zeppelin noon", "--json").stdout)["passages"]
        assert found["path"] == "documents/zeppelin.txt"
        (documents / "boat.txt").unlink()
        assert json.loads(process.stdout.readline())["removed"] == 1
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "Traceback" not in errors


class Interrupted:
    """A library whose folders cannot be asked for after the first time; the third `index` ends the test."""

    folder = Path("lib")

    def __init__(self) -> None:
        self.asked = self.indexed = 0
        self.upkeep = self  # which knows the folders

    def roots(self) -> list[Root]:
        self.asked += 1
        if self.asked > 1:
            raise LibraryError("A repair of lib was interrupted; run `local-rag repair` to finish it.")
        return [Root(Path("/docs"), 0, True)]

    def index(self, progress: object, contexts: bool | None = None) -> IndexReport:
        assert contexts is False, "the next change does not wait for a model"
        self.indexed += 1
        if self.indexed == 3:
            raise KeyboardInterrupt
        return IndexReport()


class Changing(Watch):
    """A watch that always sees a change."""

    looked: list[tuple[Path, ...]]

    def __init__(self) -> None:
        self.looked = []

    def look(self, roots: Sequence[Path]) -> None:
        self.looked.append(tuple(roots))

    def follow(self) -> None:
        pass

    def wait(self, seconds: float) -> bool:
        return seconds > 1


def test_watching_goes_on_while_the_folders_cannot_be_asked_for() -> None:
    library, watch = Interrupted(), Changing()
    with pytest.raises(KeyboardInterrupt):
        _watch(cast(Library, library), watch, False)
    assert watch.looked == [(Path("/docs"),)] * 3
