"""Read and split several hundred hostile files within limits of time and memory, and report the outcome of each.

    python -m scripts.benchmarks fuzz_inputs                  # all; writes docs/measurements/reliability-inputs.json
    python -m scripts.benchmarks fuzz_inputs --only deep      # files whose names contain a word; writes no file

Our own `walk` finds the files, and our own `IsolatedReader` reads and splits them in another process, whose time and
memory are limited and measured. Each document is split a second time in this process, to tell the time of splitting
from that of reading.
"""

import argparse
import collections
import itertools
import json
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from local_rag.display import printable
from local_rag.document_records import Skipped
from local_rag.errors import ReadError
from local_rag.indexing.vectors import default_chunk_tokens
from local_rag.models.own_models import TOKENIZER_FILE
from local_rag.models.registry import resolve
from local_rag.reading.isolate import IsolatedReader, ReadFile
from local_rag.reading.read import read
from local_rag.reading.split import Splitting
from local_rag.reading.walk import Walk
from tests.support.hostile_files import generate

READ_SECONDS = 180.0
MEMORY = 4 * 1024**3
_WORST_FIRST = ("PROBLEM", "stopped", "refused", "indexed")
REPORT = Path("docs/measurements/reliability-inputs.json")


def peak_memory(pid: int) -> int:
    """Return the peak memory of a process in bytes, and reset it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)


def computed(pid: int) -> float:
    """Return the processor time of a process in seconds."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def clock(reader: IsolatedReader) -> float:
    """Return the processor time of all reading processes until now in seconds, also of those that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime + computed(reader.pid)


def file_of(path: Path) -> Path:
    """Return the file at a path, or the mailbox that contains a message."""
    return path if os.path.lexists(path) else path.parent


def outcome_of(path: Path, item: Any, reader: IsolatedReader, splitting: Splitting) -> dict[str, Any]:
    """Return the outcome of what the walk found: it is examined unless it was skipped."""
    if not isinstance(item, Skipped):
        return examine(path, reader, splitting)
    file = file_of(path)
    row = {"name": printable(file.name), "bytes": file.lstat().st_size}
    return row | {"outcome": "refused", "detail": item.reason}


def examine(path: Path, reader: IsolatedReader, splitting: Splitting) -> dict[str, Any]:
    """Read and split one file; return the outcome, the seconds and the peak memory."""
    file = file_of(path)
    row: dict[str, Any] = {"name": printable(file.name), "bytes": file.lstat().st_size}
    started = clock(reader)
    try:
        found = reader.read(path)
        spent = clock(reader) - started
        seconds, problem = split_again(found, splitting)
        row["read_seconds"] = round(max(0.0, spent - seconds), 2)
        row["split_seconds"] = round(seconds, 2)
        row["outcome"] = "PROBLEM" if problem else "indexed"
        row["detail"] = problem or f"{len(found.chunks)} chunks"
    except ReadError as error:
        row["read_seconds"] = round(clock(reader) - started, 2)
        row["outcome"], row["detail"] = "refused", str(error)
        if "crashes" in str(error) or "longer than" in str(error) or "memory" in str(error):
            row["outcome"] = "stopped"
        elif str(error).startswith("cannot be read (") and is_readable(path):
            row["outcome"] = "PROBLEM"
    row["memory"] = peak_memory(reader.pid)
    return row


def whole(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one row for a file: of a mailbox, the worst outcome of its messages and the time of all."""
    row = min(rows, key=lambda row: _WORST_FIRST.index(row["outcome"]))
    if len(rows) == 1:
        return row
    row = row | {"memory": max(one.get("memory", 0) for one in rows), "messages": len(rows)}
    for name in ("read_seconds", "split_seconds"):
        row[name] = round(sum(one.get(name, 0) for one in rows), 2)
    return row


def split_again(found: ReadFile, splitting: Splitting) -> tuple[float, str]:
    """Return the processor time of splitting in seconds, and what is wrong with the chunks, if anything."""
    started = time.process_time()
    chunks = splitting.split(found.document)
    seconds = time.process_time() - started
    wrong = any(chunk.text != found.document.text[chunk.start : chunk.end] for chunk in chunks)
    # The document comes without its headings and tables, at which chunks are cut: those of sheets show in no chunk.
    shaped = not found.document.is_source or any(chunk.headings or chunk.table_header for chunk in found.chunks)
    places = [[(chunk.start, chunk.end) for chunk in some] for some in (chunks, found.chunks)]
    differs = not shaped and places[0] != places[1]
    return seconds, "wrong chunks" if wrong else "different chunks the second time" if differs else ""


def is_readable(path: Path) -> bool:
    """Return whether a refused file can be read after all, which means that splitting failed."""
    try:
        read(path)
    except Exception:  # noqa: BLE001  a parser may raise anything
        return False
    return True


def report(rows: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Summarize the outcomes in sentences and a table."""
    outcomes = collections.Counter(row["outcome"] for row in rows)
    slowest = max(rows, key=lambda row: row.get("read_seconds", 0) + row.get("split_seconds", 0))
    largest = max(rows, key=lambda row: row.get("memory", 0))
    spent = slowest.get("read_seconds", 0) + slowest.get("split_seconds", 0)
    reasons = collections.Counter(row["detail"].split(" (")[0] for row in rows if row["outcome"] != "indexed")
    return {
        "title": "Bad input",
        "lines": [
            f"{len(rows)} hostile files were tried: {outcomes['indexed']} were read and split, "
            f"{outcomes['refused']} were refused with a reason, {outcomes['stopped']} were stopped by a limit or ended "
            f"the reading process, {outcomes['PROBLEM']} caused another problem. The run took {seconds:.0f} seconds.",
            f"The slowest, {slowest['name']} ({slowest['bytes'] / 1e6:.1f} MB), took {spent:.1f} seconds of processor "
            f"time; the peak memory was {largest.get('memory', 0) / 1e6:.0f} MB, for {largest['name']}.",
        ],
        "table": {
            "header": ["why a file was not indexed", "files"],
            "rows": [[reason, str(count)] for reason, count in reasons.most_common(20)],
        },
        "figures": {"outcomes": dict(outcomes), "seconds": round(seconds), "files": rows},
    }


def main() -> None:
    """Examine the files and write the report; exit with 1 if a file was neither split nor refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="try only files whose names contain this word")
    parser.add_argument("--mutations", type=int, default=32, help="mutated copies of each valid file")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    began = time.monotonic()
    model = resolve("all-minilm-l6-v2", "embed")
    splitting = Splitting(model.path / TOKENIZER_FILE, default_chunk_tokens(model))
    with (
        tempfile.TemporaryDirectory() as place,
        IsolatedReader(splitting, seconds=READ_SECONDS, memory=MEMORY) as reader,
    ):
        folder = Path(place) / "hostile"
        written = generate(folder, mutations=arguments.mutations, seed=arguments.seed)
        found = {Path(item.path): item for item in Walk().files([folder])}
        reported = {os.fsencode(file_of(path)) for path in found}
        assert {os.fsencode(path) for path in written} == reported, "the walk must report every file"
        for file, paths in itertools.groupby(found, file_of):
            if arguments.only not in str(file.relative_to(folder)):
                continue
            row = whole([outcome_of(path, found[path], reader, splitting) for path in paths])
            rows.append(row)
            spent = row.get("read_seconds", 0) + row.get("split_seconds", 0)
            if spent > 5 or row["outcome"] in ("PROBLEM", "stopped") or arguments.only:  # noqa: PLR2004
                print(json.dumps(row), flush=True)
    summary = report(rows, time.monotonic() - began)
    print(*summary["lines"], sep="\n")
    if not arguments.only:
        REPORT.parent.mkdir(parents=True, exist_ok=True)
        REPORT.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    if any(row["outcome"] == "PROBLEM" for row in rows):
        raise SystemExit(1)
