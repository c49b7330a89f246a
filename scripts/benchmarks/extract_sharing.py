"""Measure what it saves that `extract` asks all columns of a document together: its text is read once for all of them.

    python -m scripts.benchmarks extract_sharing LIBRARY COLUMNS [--documents 3] [--columns 10] [--profile starter]

The columns of each document are asked together, and each by itself, in turns. Every run opens a fresh copy of the
library and loads the models before it is measured, so runs share nothing. It prints the seconds of both ways, on the
clock and of the processor, which other programs change less; the tokens of their prompts, and how many of these were
evaluated; and the cells that differ.
"""

import argparse
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local_rag import Library
from local_rag.extraction.cells import Cell
from local_rag.extraction.columns import Column
from local_rag.library import Parts
from local_rag.llama.generator import Generator
from local_rag.llama.models_in_use import open_engine
from local_rag.serving.table_files import read_columns


def ask(folder: Path, path: str, columns: Sequence[Column], profile: str) -> tuple[list[Cell], dict[str, float]]:
    """Return the cells of a document in a fresh run, and the seconds and tokens that they cost."""
    engines = list[Generator]()

    @contextmanager
    def watched(*given: Any, **named: Any) -> Iterator[Generator]:
        with open_engine(*given, **named) as engine:
            engines.append(engine)
            yield engine

    with tempfile.TemporaryDirectory() as scratch:
        copy = shutil.copytree(folder, Path(scratch) / "library")
        with Library(copy, parts=Parts(open_engine=watched), profile=profile) as library:
            library.load(answering=True)
            clock, processor = time.monotonic(), time.process_time()
            table = library.extract(columns, filters={"within": [path]})
            cost = {"s": time.monotonic() - clock, "s of the processor": time.process_time() - processor}
    if table.asked != len(columns):
        raise SystemExit(f"{folder} holds cells of {path} already; index the documents into a new library.")
    cost["tokens"] = sum(one.counts.prompt for one in engines)
    cost["tokens evaluated"] = sum(one.counts.evaluated for one in engines)
    return [cell for cell in table.rows[0].cells if cell], cost


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("columns", type=Path)
    parser.add_argument("--within", action="append", default=[], help="a path of documents; repeat for several")
    parser.add_argument("--documents", type=int, default=3)
    parser.add_argument("--only", type=int, default=10, help="how many columns")
    parser.add_argument("--profile", default="starter")
    given = parser.parse_args()
    columns = read_columns(given.columns)[: given.only]
    with Library(given.library, profile=given.profile) as library:
        paths = [one.path for one in library.documents(filters={"within": given.within})][: given.documents]
    if not paths:
        parser.exit(1, f"{given.library} has no such document.\n")
    groups: dict[str, list[Sequence[Column]]] = {"together": [columns], "one by one": [[column] for column in columns]}
    costs, differing = {way: Counter[str]() for way in groups}, 0
    for number, path in enumerate(paths):
        cells = dict[str, list[Cell]]()
        for way in sorted(groups, reverse=number % 2 == 0):
            runs = [ask(given.library, path, group, given.profile) for group in groups[way]]
            cells[way] = [cell for found, _ in runs for cell in found]
            for _, cost in runs:
                costs[way].update(cost)
            print(f"{Path(path).name}, {way}: {_shown(costs[way])} until now", flush=True)
        for column, one, other in zip(columns, cells["together"], cells["one by one"], strict=True):
            if (one.state, one.value, one.quotation) != (other.state, other.value, other.quotation):
                differing += 1
                print(f"{Path(path).name}, {column.name}: {one.state} {one.text!r}, alone {other.state} {other.text!r}")
    for name in ("s", "s of the processor"):
        ratio = costs["one by one"][name] / costs["together"][name]
        print(f"{ratio:.1f} times as many questions a minute together, by {name}")
    print(f"{differing} of {len(paths) * len(columns)} cells differ")


def _shown(cost: Counter[str]) -> str:
    return ", ".join(f"{number:,.0f} {name}" for name, number in cost.items())


if __name__ == "__main__":
    main()
