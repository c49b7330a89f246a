"""Measure `index --watch`: how soon a saved file is found, how copied files are batched, what idling costs.

    python -m scripts.benchmarks watch --json docs/measurements/watch.json

The command indexes and watches a folder. This program saves files and searches the library until they are found.
`beyond_own` is the time from saving to finding without the time of the run itself. Then files are copied in, nothing
happens for a minute, and the folder is moved away and back. Linux only, because it reads /proc.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

from local_rag import Library

_PATIENCE = 600.0
_COMMAND = "from local_rag.cli.main import main; main()"
_TICKS = os.sysconf("SC_CLK_TCK")


class Watched:
    """A library whose folder the command watches; `reports` has its unread reports."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process, self.folder = process, folder
        self.reports: Queue[dict[str, Any]] = Queue()
        Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in self.process.stdout or ():
            if line.startswith("{"):
                self.reports.put(json.loads(line))

    def next(self, wanted: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Return the next wanted report; reports before it are dropped."""
        ends = time.monotonic() + _PATIENCE
        while time.monotonic() < ends:
            report = self.reports.get(timeout=_PATIENCE)
            if wanted(report):
                return report
        raise TimeoutError("the command did not print the expected report")

    def seconds_until_found(self, library: Library, words: str, path: Path) -> float:
        """Search for words until a passage of a file is found; return the seconds."""
        started = time.monotonic()
        while time.monotonic() < started + _PATIENCE:
            if any(passage.path == str(path) for passage in library.search(words, top=5, rerank=False)):
                return time.monotonic() - started
            time.sleep(0.05)
        raise TimeoutError(f"{path} was not found")

    def processor_seconds(self) -> float:
        """Return the processor time of the command and of its finished children."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return sum(map(int, fields[11:15])) / _TICKS


@contextmanager
def watching(work: Path, profile: str) -> Iterator[Watched]:
    """Index and watch a folder with one document."""
    folder, library = work / "documents", work / "library"
    folder.mkdir()
    (folder / "first.md").write_text("# First\n\nA document that is there from the beginning.\n")
    arguments = ["index", folder, "--library", library, "--profile", profile, "--context", "headings", "--watch"]
    command = [sys.executable, "-P", "-c", _COMMAND, *map(str, arguments), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        watched = Watched(process, folder)
        watched.next(lambda report: report["published"])
        time.sleep(2)  # until it watches the folder
        yield watched
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)


def save_files(watched: Watched, library: Library, count: int) -> list[dict[str, float]]:
    """Save files one after another; return the seconds until each is found."""
    rows = []
    for number in range(count):
        path = watched.folder / f"saved-{number}.md"
        path.write_text(f"# Saved {number}\n\nThe heron{number}xq stands in the reeds and waits.\n")
        found = watched.seconds_until_found(library, f"heron{number}xq", path)
        own = watched.next(lambda report: report["added"])["seconds"]
        rows.append({"found": found, "own": own, "beyond_own": found - own})
    return rows


def copy_files(watched: Watched, count: int) -> dict[str, Any]:
    """Copy files into the folder; return the number of batches."""
    into = watched.folder / "copied"
    into.mkdir()
    started = time.monotonic()
    for number in range(count):
        (into / f"{number}.md").write_text(f"# Copied {number}\n\nA note on the tide of day {number}.\n")
    copied = time.monotonic() - started
    batches, added = 0, 0
    while added < count:
        added += watched.next(lambda report: report["added"])["added"]
        batches += 1
    return {"files": count, "copied_seconds": copied, "batches": batches, "seconds": time.monotonic() - started}


def idle(watched: Watched, seconds: float) -> dict[str, float]:
    """Do nothing; return the processor time used meanwhile."""
    time.sleep(5)
    before = watched.processor_seconds()
    time.sleep(seconds)
    used = watched.processor_seconds() - before
    return {"seconds": seconds, "processor_seconds": used, "a_day": used * 86_400 / seconds}


def go_away(watched: Watched, library: Library) -> dict[str, Any]:
    """Move the folder away and back; return what happened to its documents."""
    away = watched.folder.with_name("away")
    watched.folder.rename(away)
    gone = watched.next(lambda report: report["unreachable"])
    path = watched.folder / "first.md"
    kept = any(one.path == str(path) for one in library.search("from the beginning", top=50, rerank=False))
    away.rename(watched.folder)
    time.sleep(5)
    (watched.folder / "back.md").write_text("# Back\n\nThe kingfisherxq has returned.\n")
    back = watched.seconds_until_found(library, "kingfisherxq", watched.folder / "back.md")
    return {"removed": gone["removed"], "found_while_away": kept, "saved_when_back_found": back}


def main() -> None:
    """Measure, print and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="tiny")
    parser.add_argument("--saved", type=int, default=10)
    parser.add_argument("--copied", type=int, default=1000)
    parser.add_argument("--idle", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    report: dict[str, Any] = {"profile": arguments.profile}
    with (
        tempfile.TemporaryDirectory() as name,
        watching(Path(name).resolve(), arguments.profile) as watched,
        Library(Path(name).resolve() / "library") as library,
    ):
        for what, measure in (
            ("saved", lambda: save_files(watched, library, arguments.saved)),
            ("copied", lambda: copy_files(watched, arguments.copied)),
            ("idle", lambda: idle(watched, arguments.idle)),
            ("away", lambda: go_away(watched, library)),
        ):
            report[what] = measure()
            print(json.dumps({what: report[what]}), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
