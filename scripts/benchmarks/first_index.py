"""Measure the first `index` of a folder, by turns with an earlier version: until something can be searched, and all.

    python -m scripts.benchmarks first_index FOLDER --against CHECKOUT [--rounds 1] [--json FILE]

Each run begins with an empty library. `status` is asked every few seconds while `index` runs, and `index` then runs
again with nothing changed. Run it on an idle machine.
"""

import argparse
import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from scripts.benchmarks.ask import ROOT, Program

_PAUSE = 3.0  # seconds between two looks


def measure(program: Program, folder: Path, library: Path) -> dict[str, float]:
    """Index a folder for the first time, and again with nothing changed; return seconds."""
    looks = list[tuple[float, int, bool]]()
    with ThreadPoolExecutor(1) as pool:
        started = time.perf_counter()
        running = pool.submit(program.run, "index", str(folder))
        while not running.done():
            time.sleep(_PAUSE)
            if (library / "CURRENT").exists():  # something is published
                status = _status(program)
                at = time.perf_counter() - started
                looks.append((at, status["documents"], status["vectors"] >= status["chunks"]))
        ended = running.result()["seconds"]
    documents = _status(program)["documents"]
    return {
        "published": min([ended, *(at for at, _, _ in looks)]),
        "live": min([ended, *(at for at, found, whole in looks if whole and found == documents)]),
        "ended": ended,
        "unchanged": program.run("index", str(folder))["seconds"],
        "documents": documents,
    }


def _status(program: Program) -> dict[str, Any]:
    return dict(json.loads(program.run("status", "--json")["output"]))


def main() -> None:
    """Index with both versions by turns; print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--against", type=Path, required=True, help="a checkout of an earlier version")
    parser.add_argument("--about", default="a folder.", help="what the docs say was indexed, and how")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    rows: dict[str, list[dict[str, float]]] = {"this": [], "earlier": []}
    with tempfile.TemporaryDirectory() as place:
        for number in range(arguments.rounds):
            for name, checkout in (("this", ROOT), ("earlier", arguments.against.resolve())):
                library = Path(place) / f"{name}-{number}"
                rows[name].append(measure(Program(checkout, library), folder, library))
                print(name, json.dumps(rows[name][-1]), flush=True)
    medians = {name: {one: median(row[one] for row in found) for one in found[0]} for name, found in rows.items()}
    print(json.dumps(medians, indent=1))
    if arguments.json:
        report = {"about": arguments.about, "medians": medians}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
