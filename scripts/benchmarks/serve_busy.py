"""Measure how long a client waits for a file of the page while everything else about a server is slow.

    python -m scripts.benchmarks serve_busy --seconds 600 --json docs/measurements/serve-busy.json

Eight clients ask, search and read; `index` publishes again and again; each look at a document's file takes two seconds,
as on a disk that sleeps; and another process locks the history half of the time. Meanwhile another process fetches the
page's script twenty times a second and notes how long it waits. The goal is 200 ms at most, and memory that stays flat.
The library is made of `corpus/` in a temporary folder. Run it on an idle machine.
"""

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

from scripts.benchmarks.serve_load import MAIN, QUESTIONS, resident, wait_until_loaded

CHECKOUT = Path(__file__).parents[2]
CLIENTS, ASLEEP, LOCKED = 8, 2.0, 3.0  # seconds that a look at a file takes, and that the history is locked
_PROBES_PER_SECOND = 20
_MOST_MILLISECONDS = 200
START = "from scripts.benchmarks.serve_busy import serve_asleep; serve_asleep()"


def serve_asleep() -> None:
    """Run the command line with files on a disk that sleeps."""
    from local_rag.cli.main import main as run
    from local_rag.library import Parts

    def asleep(_document: object) -> Literal["same"]:
        time.sleep(ASLEEP)
        return "same"

    run(parts=Parts(file_state=asleep))


def probe(address: str, seconds: float) -> None:
    """Fetch the page's script again and again; print how long each fetch took, in milliseconds."""
    waits, ends = list[float](), time.monotonic() + seconds
    while time.monotonic() < ends:
        began = time.monotonic()
        with urllib.request.urlopen(f"{address}static/page.js", timeout=60) as answer:  # noqa: S310
            answer.read()
        waits.append(round(1000 * (time.monotonic() - began), 1))
        time.sleep(1 / _PROBES_PER_SECOND)
    print(json.dumps(waits))


class Load:
    """Eight clients, a writer that publishes, and another process's lock on the history, until `over`."""

    def __init__(self, address: str, documents: Path, library: Path) -> None:
        self._address, self._documents, self._library = address, documents, library
        self.over, self.statuses, self.published = threading.Event(), Counter[int](), 0
        jobs = [self._publish, self._lock, *(lambda number=number: self._ask(number) for number in range(CLIENTS))]
        self._threads = [threading.Thread(target=job) for job in jobs]

    def run(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """End, once each has done what it was doing."""
        self.over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, number: int) -> None:
        turn = number
        while not self.over.is_set():
            question = f"{QUESTIONS[turn % len(QUESTIONS)]} ({turn})"
            asked, searched = urlencode({"question": question}), urlencode({"q": question})
            for target, body in (
                (f"search?{searched}", None),
                ("ask", asked.encode()),
                ("history", None),
                (f"document/{turn % 20 + 1}", None),
                ("library", None),
            ):
                self.statuses[self._status(target, body)] += 1
                if self.over.wait(0.1):
                    return
            turn += CLIENTS

    def _status(self, target: str, body: bytes | None) -> int:
        try:
            request = urllib.request.Request(f"{self._address}{target}", body)  # noqa: S310
            with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
                answer.read()
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def _publish(self) -> None:
        command = [sys.executable, "-P", "-c", MAIN, "index", "--library", str(self._library)]
        while not self.over.is_set():
            (self._documents / "changing.md").write_text(
                f"# Change {self.published}\n\nThis is new.\n", encoding="utf-8"
            )
            self.published += subprocess.run(command, capture_output=True, check=False).returncode == 0
            self.over.wait(1)

    def _lock(self) -> None:
        while not self.over.wait(LOCKED):
            with closing(sqlite3.connect(self._library / "history.sqlite3", isolation_level=None, timeout=10)) as file:
                try:
                    file.execute("BEGIN EXCLUSIVE")
                except sqlite3.OperationalError:
                    continue
                self.over.wait(LOCKED)
                file.execute("COMMIT")


def measure(seconds: float, profile: str) -> dict[str, Any]:
    """Make a library, serve it, and measure under load."""
    with tempfile.TemporaryDirectory() as made:
        documents, library = Path(made) / "documents", Path(made) / "library"
        shutil.copytree(CHECKOUT / "corpus", documents)
        runtime = Path(made) / "run"
        runtime.mkdir(mode=0o700)
        environment = os.environ | {"PYTHONPATH": str(CHECKOUT), "XDG_RUNTIME_DIR": str(runtime)}
        index = [sys.executable, "-P", "-c", MAIN, "index", str(documents), "--library", str(library)]
        subprocess.run([*index, "--profile", profile, "--context", "headings"], check=True, capture_output=True)
        command = [sys.executable, "-P", "-c", START, "serve", "--no-token", "--port", "0", "--library", str(library)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
            try:
                assert server.stdout is not None
                return _under_load(server.stdout.readline().split()[-1], server.pid, documents, library, seconds)
            finally:
                server.terminate()


def _under_load(address: str, process: int, documents: Path, library: Path, seconds: float) -> dict[str, Any]:
    wait_until_loaded(address)
    load, sizes = Load(address, documents, library), list[float]()
    load.run()
    code = f"from scripts.benchmarks.serve_busy import probe; probe({address!r}, {seconds})"
    watch = [sys.executable, "-P", "-c", code]
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    with subprocess.Popen(watch, stdout=subprocess.PIPE, text=True, env=environment) as probing:
        assert probing.stdout is not None
        while probing.poll() is None:
            sizes.append(resident(process))
            time.sleep(max(0.5, seconds / 60))
        waits = sorted(json.loads(probing.stdout.read()))
    load.end()
    third = max(1, len(sizes) // 3)
    return {
        "seconds": seconds,
        "clients": CLIENTS,
        "requests_by_status": dict(sorted(load.statuses.items())),
        "published": load.published,
        "fetches": len(waits),
        "median_milliseconds": statistics.median(waits),
        "percentile_99_milliseconds": waits[int(0.99 * (len(waits) - 1))],
        "longest_milliseconds": waits[-1],
        "longer_than_200_ms": sum(wait > _MOST_MILLISECONDS for wait in waits),
        "megabytes": sizes,
        "megabytes_grown": round(statistics.median(sizes[-third:]) - statistics.median(sizes[third : 2 * third]), 1),
        "cores": os.cpu_count(),
    }


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--profile", default="tiny")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    report = measure(arguments.seconds, arguments.profile)
    print(json.dumps(report))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
