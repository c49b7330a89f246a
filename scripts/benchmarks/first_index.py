"""Measure the first `index` of a folder: how long until something can be searched, and until all documents can.

    python -m scripts.benchmarks first_index FOLDER --python old=OLD/bin/python,OLD/models --json FILE

Each program indexes the folder into a library of its own, one program after the other, `--turns` times. A program is a
Python that imports local_rag; `new` is the one that runs this script. `status` is asked every few seconds while `index`
runs, and `index` then runs again with nothing changed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

_COMMAND = "from local_rag.cli.start import main; main()"
_PAUSE = 3.0  # seconds between two looks


class Program:
    """A version of local-rag."""

    def __init__(self, name: str, python: str, models: str) -> None:
        self.name, self._python = name, python
        self._environment = {**os.environ, "LOCAL_RAG_MODELS": models} if models else dict(os.environ)

    def start(self, *arguments: object, log: Path) -> "subprocess.Popen[bytes]":
        """Start a command."""
        with log.open("ab") as file:
            return subprocess.Popen(
                [self._python, "-P", "-c", _COMMAND, *map(str, arguments)],
                stdout=subprocess.DEVNULL,
                stderr=file,
                stdin=subprocess.DEVNULL,
                env=self._environment,
            )

    def json(self, *arguments: object) -> dict[str, Any]:
        """Return what a command prints as JSON; nothing if it fails."""
        command = [self._python, "-P", "-c", _COMMAND, *map(str, arguments), "--json"]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, env=self._environment, stdin=subprocess.DEVNULL
        )
        try:
            found: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            return {}
        return found


def measure(program: Program, folder: Path, work: Path) -> dict[str, float]:
    """Index a folder for the first time, and again with nothing changed; return seconds."""
    library, log = work / "library", work / "log"
    index = "index", folder, "--library", library
    started = time.monotonic()
    process = program.start(*index, log=log)
    looks = list[tuple[float, int, bool]]()
    while process.poll() is None:
        time.sleep(_PAUSE)
        status = program.json("status", "--library", library)
        if status.get("live_generation"):
            looks.append((_since(started), status["documents"], status["vectors"] >= status["chunks"]))
    ended = _since(started)
    if process.returncode:
        sys.exit(f"{program.name}: index ended with {process.returncode}; see {log}")
    documents = program.json("status", "--library", library)["documents"]
    started = time.monotonic()
    program.start(*index, log=log).wait()
    return {
        "published": next((at for at, _, _ in looks), ended),
        "live": next((at for at, found, whole in looks if whole and found == documents), ended),
        "ended": ended,
        "unchanged": _since(started),
        "documents": documents,
    }


def _since(started: float) -> float:
    return time.monotonic() - started


def ratios(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the medians of each program, and those of the first as a share of the others'."""
    fields = ("published", "live", "ended", "unchanged", "documents")
    medians = {name: {f: median(row[name][f] for row in rows) for f in fields} for name in names}
    first = medians[names[0]]
    shares = {f"{names[0]} / {name}": {f: first[f] / medians[name][f] for f in fields[:-1]} for name in names[1:]}
    return medians | shares


def main() -> None:
    """Measure, print and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PATH[,MODELS]", help="another program")
    parser.add_argument("--about", default="a folder", help="what the report calls the folder")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    programs = [Program("new", sys.executable, "")]
    for text in arguments.python:
        name, _, rest = text.partition("=")
        python, _, models = rest.partition(",")
        programs.append(Program(name, python, models))
    rows = list[dict[str, Any]]()
    for _ in range(arguments.turns):
        rows.append({})
        for program in programs:
            with tempfile.TemporaryDirectory() as name:
                rows[-1][program.name] = measure(program, arguments.folder, Path(name).resolve())
            print(program.name, json.dumps(rows[-1][program.name]), flush=True)
    report = {"folder": arguments.about, "turns": rows, "medians": ratios(rows, [program.name for program in programs])}
    print(json.dumps(report["medians"], indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
