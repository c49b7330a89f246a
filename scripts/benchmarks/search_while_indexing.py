"""Measure searches at rest and while `index` publishes changes: times, errors and mixed results.

    python -m scripts.benchmarks search_while_indexing --json docs/measurements/search-while-indexing.json

Each chunk of a document says which revision it belongs to. The command indexes one revision after another, each with
changed, new and removed files, while this program searches like a server, with a pause between two questions. Nothing
is reranked. A search is `mixed` if its results do not belong to a single revision of the library.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from local_rag import Library
from local_rag.errors import LocalRagError

_COMMAND = "from local_rag.cli.main import main; main()"
_SUBJECTS = ("tide", "harbour", "lantern", "crane", "radar", "ballast", "mooring", "gauge")
_WORDS = ("north", "brass", "winter", "signal", "rope", "keeper", "island", "boat", "storm", "pier", "watch", "bell")
_SECTIONS = 8  # per document; each section is a chunk
_AWAY = 7  # one of this many documents is missing in each revision


def exists(number: int, revision: int) -> bool:
    """Return whether a document exists in a revision."""
    return (number + revision) % _AWAY != 0


def write_revision(folder: Path, documents: int, revision: int) -> None:
    """Write all documents of a revision, and remove those that are missing in it."""
    for number in range(documents):
        path = folder / f"{number:05}.md"
        if not exists(number, revision):
            path.unlink(missing_ok=True)
            continue
        random_ = random.Random(number)  # noqa: S311  repeatable on purpose
        parts = [f"# Page {number}\n"]
        for section in range(_SECTIONS):
            words = " ".join(random_.choice(_WORDS) for _ in range(70))
            parts.append(f"## The {random_.choice(_SUBJECTS)} {section}\n\nRevision {revision}. {words}.\n")
        path.write_text("\n".join(parts))


def index(folder: Path, library: Path) -> "subprocess.Popen[bytes]":
    """Start `local-rag index`."""
    arguments = ["index", folder, "--library", library, "--profile", "tiny", "--context", "headings"]
    command = [sys.executable, "-P", "-c", _COMMAND, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Asking:
    """Search a library and count what comes back."""

    def __init__(self, library: Library, pause: float) -> None:
        self._library, self._pause = library, pause
        self._questions = self._make()
        self.milliseconds: list[float] = []
        self.errors: list[str] = []
        self.mixed = 0
        self.revisions = set[int]()

    @staticmethod
    def _make() -> Iterator[str]:
        random_ = random.Random(2)  # noqa: S311
        for subject in cycle(_SUBJECTS):
            yield f"{subject} {' '.join(random_.sample(_WORDS, 3))}"

    def ask(self) -> None:
        """Ask one question."""
        question, started = next(self._questions), time.perf_counter()
        try:
            found = self._library.search(question, top=20, rerank=False)
        except LocalRagError as error:
            self.errors.append(str(error))
            return
        self.milliseconds.append(1000 * (time.perf_counter() - started))
        said = [(int(Path(one.path).stem), int(one.text.partition("Revision ")[2].partition(".")[0])) for one in found]
        revisions = {revision for _, revision in said}
        whole = len(revisions) == 1 and all(exists(number, revision) for number, revision in said)
        self.mixed += not whole
        self.revisions |= revisions
        time.sleep(self._pause)

    def figures(self) -> dict[str, Any]:
        """Return the figures of the questions so far, and reset them."""
        hundredths = quantiles(self.milliseconds, n=100)
        figures = {
            "searches": len(self.milliseconds),
            "median_ms": median(self.milliseconds),
            "p95_ms": hundredths[94],
            "longest_ms": max(self.milliseconds),
            "errors": len(self.errors),
            "mixed": self.mixed,
            "revisions": len(self.revisions),
        }
        self.milliseconds, self.errors, self.mixed, self.revisions = [], [], 0, set()
        return figures


def main() -> None:
    """Measure, print and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--revisions", type=int, default=3)
    parser.add_argument("--pause", type=float, default=0.2, metavar="SECONDS")
    parser.add_argument("--rest", type=int, default=100, metavar="SEARCHES")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name).resolve()
        documents, folder = work / "documents", work / "library"
        documents.mkdir()
        write_revision(documents, arguments.documents, 0)
        index(documents, folder).wait()
        with Library(folder) as library:
            asking = Asking(library, arguments.pause)
            for _ in range(10):
                asking.ask()
            asking.figures()
            for _ in range(arguments.rest):
                asking.ask()
            report = {"documents": arguments.documents, "chunks": arguments.documents * _SECTIONS}
            report["rest"] = asking.figures()
            started = time.monotonic()
            for revision in range(1, arguments.revisions + 1):
                write_revision(documents, arguments.documents, revision)
                process = index(documents, folder)
                while process.poll() is None:
                    asking.ask()
                if process.returncode:
                    sys.exit(f"index ended with {process.returncode}")
            report["indexing_seconds"] = time.monotonic() - started
            asking.ask()
            report["while_indexing"] = asking.figures()
    report["times_as_long"] = report["while_indexing"]["median_ms"] / report["rest"]["median_ms"]
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
