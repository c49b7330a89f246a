"""Read sheets as large as sheets can be, keep their tables, and ask them: seconds and memory of each step.

    python -m scripts.benchmarks large_sheets [--cases rows-200000.csv,...] [--json FILE]

Each sheet is read as `index` reads it, in the process that is limited, and cut into chunks; nothing is embedded. Then
another process asks its tables by code, first without and then with the rows in memory. What is beyond a limit is said.
"""

import argparse
import csv
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from local_rag.errors import ReadError
from local_rag.indexing.vectors import default_chunk_tokens
from local_rag.models.own_models import TOKENIZER_FILE
from local_rag.models.registry import resolve
from local_rag.reading.isolate import IsolatedReader
from local_rag.reading.split import Splitting
from local_rag.store.database import Store
from local_rag.store.relation_rows import put_relations
from local_rag.tables.answer import answer_from_rows
from local_rag.tables.relation_set import relation_set

Rows = Iterator[Sequence[object]]
_ROWS, _COLUMNS, _DISTINCT = 1_048_576, 16_384, 1_000_000
_MEGABYTE = 1024  # of what the system counts in KiB


def orders(count: int) -> Rows:
    """Yield a list of orders: six columns, 500 customers."""
    rng = random.Random(2)  # noqa: S311
    yield "Order no.", "Date", "Customer", "Country", "Quantity", "Net EUR"
    for number in range(count - 1):
        day = date(2020, 1, 1) + timedelta(days=number % 1800)
        country, net = rng.choice(("Norway", "Germany", "France")), round(rng.random() * 900, 2)
        yield f"O-{number}", day.isoformat(), f"Customer {rng.randrange(500)}", country, rng.randint(1, 9), net


def narrow(count: int) -> Rows:
    """Yield a list of two columns."""
    yield "Site", "Reading kWh"
    for number in range(count - 1):
        yield f"Site {number % 40}", number % 1000


def wide(rows: int) -> Rows:
    """Yield rows with as many columns as a sheet can have."""
    yield ["Name", *(f"Measure {number}" for number in range(_COLUMNS - 1))]
    for row in range(rows):
        yield [f"Probe {row}", *(row + number % 7 for number in range(_COLUMNS - 1))]


def distinct(count: int) -> Rows:
    """Yield a column of texts of which no two are the same, and numbers."""
    yield "Article", "Stock"
    for number in range(count):
        yield f"Article {number:x}-{number * 7919 % 99991}", number % 90


CASES: dict[str, tuple[Callable[[], Rows], tuple[str, ...]]] = {
    "rows-200000.csv": (
        lambda: orders(200_000),
        (
            "What is the total net of Customer 17 in 2023?",
            "Which customer spent the most?",
            "How many orders came from Norway in 2022?",
            "What is the net of order O-123456?",
        ),
    ),
    f"rows-{_ROWS}.csv": (
        lambda: narrow(_ROWS),
        ("What is the total reading of Site 7?", "Which site has the highest reading?", "How many rows are there?"),
    ),
    f"rows-{_ROWS}.xlsx": (
        lambda: narrow(_ROWS),
        ("What is the total reading of Site 7?", "Which site has the highest reading?", "How many rows are there?"),
    ),
    f"columns-{_COLUMNS}.csv": (lambda: wide(100), ("What is the total of Measure 5?", "Measure 7 of Probe 3?")),
    f"columns-{_COLUMNS}.xlsx": (lambda: wide(20), ("What is the total of Measure 5?", "Measure 7 of Probe 3?")),
    f"distinct-{_DISTINCT}.csv": (
        lambda: distinct(_DISTINCT),
        ("What is the total stock?", "What is the stock of Article 3e8-19910?", "How many articles are out of stock?"),
    ),
}


def write(path: Path, rows: Rows) -> None:
    """Write a sheet."""
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
        return
    from openpyxl import Workbook  # type: ignore[import-untyped]

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Data")
    for row in rows:
        sheet.append(row)
    book.save(path)


def read_and_keep(path: Path, library: Path, splitting: Splitting) -> dict[str, Any]:
    """Read a sheet as `index` does, and store its tables."""
    started = time.perf_counter()
    try:
        with IsolatedReader(splitting) as reader:
            found = reader.read(path)
    except ReadError as error:
        return {"refused": str(error), "seconds": round(time.perf_counter() - started, 1), **_peaks("read")}
    read = time.perf_counter() - started
    store = Store(library, create=True)
    started = time.perf_counter()
    key = store.put_document(found.document, found.chunks, size=0, modified_ns=0, sha256=path.name, split_key="")
    put_relations(store, [(key, found.relations)])
    store.close()
    tables = [{"rows": one.rows, "columns": len(one.columns)} for one in found.relations]
    notes = list(found.document.notes)
    times = {"read seconds": round(read, 1), "store seconds": round(time.perf_counter() - started, 1)}
    return {"tables": tables, "chunks": len(found.chunks), "notes": notes, **times, **_peaks("read")}


def ask(library: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Ask the tables of a library, each question once."""
    store = Store(library)

    @contextmanager
    def open_store() -> Iterator[Store]:
        yield store

    asked = list[dict[str, Any]]()
    held = relation_set(store, None, open_store)
    for question in questions:
        started = time.perf_counter()
        found = answer_from_rows(question, held)
        seconds = round(time.perf_counter() - started, 2)
        value = found.table.value if found else "left to the passages"
        asked.append({"question": question, "answer": value, "seconds": seconds})
    held.close()
    store.close()
    return {"asked": asked, **_peaks("ask")}


def _peaks(name: str) -> dict[str, int]:
    own, child = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {f"{name} MB": own // _MEGABYTE} | ({"reading process MB": child // _MEGABYTE} if name == "read" else {})


def measure(name: str, folder: Path) -> dict[str, Any]:
    """Measure one sheet: each step in a process of its own, so that each has its own peak of memory."""
    rows, questions = CASES[name]
    path, library = folder / name, folder / f"{name}.library"
    library.mkdir()
    write(path, rows())
    steps = [("read", str(path), str(library)), ("ask", str(library), *questions)]
    found: dict[str, Any] = {"megabytes": round(path.stat().st_size / 2**20, 1)}
    for step in steps:
        command = [sys.executable, "-m", "scripts.benchmarks", "large_sheets", "--step", json.dumps(step)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found |= json.loads(done.stdout) if done.returncode == 0 else {step[0]: done.stderr.splitlines()[-1:]}
        if "refused" in found:
            break
    path.unlink()
    return found


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--step", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        name, *given = options.step
        if name == "read":
            model = resolve("all-minilm-l6-v2", "embed")
            splitting = Splitting(model.path / TOKENIZER_FILE, default_chunk_tokens(model))
            print(json.dumps(read_and_keep(Path(given[0]), Path(given[1]), splitting)))
        else:
            print(json.dumps(ask(Path(given[0]), given[1:])))
        return
    report = dict[str, Any]()
    for name in options.cases.split(","):
        with tempfile.TemporaryDirectory() as folder:
            report[name] = measure(name, Path(folder))
        print(name, json.dumps(report[name], indent=1), flush=True)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
