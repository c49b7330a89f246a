"""Read and split some hundred hostile files, each within limits of time and memory, and report what became of each.

    python scripts/measure/fuzz_inputs.py                  # all, and docs/measurements/reliability-inputs.json
    python scripts/measure/fuzz_inputs.py --only deep      # those whose names hold a word, and no file

Files are found, read and split by the program's own `walk`, `IsolatedReader` and `split`; the splitting happens in
another process too, so that the time and the memory of both can be held to limits and measured.
"""

import argparse
import collections
import json
import multiprocessing
import os
import resource
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from local_rag.display import printable
from local_rag.errors import ReadError
from local_rag.models.registry import resolve
from local_rag.reading.isolate import IsolatedReader
from local_rag.reading.split import split
from local_rag.reading.walk import walk
from local_rag.records import Skipped
from tests.support.hostile_files import generate

READ_SECONDS = 180.0
SPLIT_SECONDS = 900.0  # in proportion to the length of a text, which the limit on the size of a file bounds
MEMORY = 4 * 1024**3
REPORT = Path("docs/measurements/reliability-inputs.json")


def serve(connection: Connection) -> None:
    """Split what is sent, within the limit of memory; answer with the number of chunks, or what went wrong."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(resolve("all-minilm-l6-v2", "embed").path / "tokenizer.json"))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    while True:
        document = connection.recv()
        try:
            chunks = split(document, tokenizer=tokenizer, max_tokens=145)
            assert all(chunk.text == document.text[chunk.start : chunk.end] for chunk in chunks)
            connection.send(len(chunks))
        except BaseException as error:  # noqa: BLE001  whatever it is, it is what this script looks for
            connection.send(f"{type(error).__name__}: {error}")


class Splitter:
    """A process that splits documents, started again when one has ended it."""

    def __init__(self) -> None:
        self.peak = 0
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def _start(self) -> None:
        self._connection, theirs = self._context.Pipe()
        self._process = self._context.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """Return the id of the process."""
        return self._process.pid or 0

    def split(self, document: Any) -> int | str:
        """Return the number of chunks, or what went wrong."""
        try:
            self._connection.send(document)
            if self._connection.poll(SPLIT_SECONDS):
                answer: int | str = self._connection.recv()
                self.peak = max(self.peak, peak_memory(self._process.pid or 0))
                return answer
            self._process.kill()
            answer = f"takes longer than {SPLIT_SECONDS:g} seconds to split"
        except (EOFError, OSError):
            self._process.join()
            answer = f"crashes the splitter (exit {self._process.exitcode})"
        self._start()
        return answer


def peak_memory(pid: int) -> int:
    """Return the largest memory in use by a process so far, in bytes, and begin to measure anew."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)


def computed(pid: int) -> float:
    """Return how long a process has computed, in seconds: what else the machine does meanwhile does not count."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def examine(path: Path, reader: IsolatedReader, splitter: Splitter) -> dict[str, Any]:
    """Read and split one file; return what became of it, in how many seconds, with how much memory."""
    row: dict[str, Any] = {"name": printable(path.name), "bytes": path.lstat().st_size}
    started, pid = computed(reader.pid), reader.pid
    try:
        document = reader.read(path)
        row["read_seconds"] = round(computed(reader.pid) - (started if reader.pid == pid else 0), 2)
        started = computed(splitter.pid)
        chunks = splitter.split(document)
        row["split_seconds"] = round(max(0.0, computed(splitter.pid) - started), 2)
        row["outcome"] = "indexed" if isinstance(chunks, int) else "PROBLEM"
        row["detail"] = f"{chunks} chunks" if isinstance(chunks, int) else chunks
    except ReadError as error:
        row["read_seconds"] = round(computed(reader.pid) - started, 2) if reader.pid == pid else READ_SECONDS
        row["outcome"], row["detail"] = "refused", str(error)
        if "crashes" in str(error) or "longer than" in str(error) or "memory" in str(error):
            row["outcome"] = "stopped"
    row["memory"] = max(peak_memory(reader.pid), splitter.peak)
    splitter.peak = 0
    return row


def report(rows: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Sum up in sentences and a table."""
    outcomes = collections.Counter(row["outcome"] for row in rows)
    slowest = max(rows, key=lambda row: row.get("read_seconds", 0) + row.get("split_seconds", 0))
    largest = max(rows, key=lambda row: row.get("memory", 0))
    spent = slowest.get("read_seconds", 0) + slowest.get("split_seconds", 0)
    reasons = collections.Counter(row["detail"].split(" (")[0] for row in rows if row["outcome"] != "indexed")
    return {
        "title": "Bad input",
        "lines": [
            f"{len(rows)} hostile files were tried: {outcomes['indexed']} were read and split, {outcomes['refused']} "
            f"refused with a reason, {outcomes['stopped']} stopped by a limit or with the reading process, and "
            f"{outcomes['PROBLEM']} did worse. The run completed after {seconds:.0f} seconds.",
            f"The slowest, {slowest['name']} ({slowest['bytes'] / 1e6:.1f} MB), took {spent:.1f} seconds of computing; "
            f"the largest amount of memory was {largest.get('memory', 0) / 1e6:.0f} MB, for {largest['name']}.",
        ],
        "table": {
            "header": ["why a file was not indexed", "files"],
            "rows": [[reason, str(count)] for reason, count in reasons.most_common(20)],
        },
        "figures": {"outcomes": dict(outcomes), "seconds": round(seconds), "files": rows},
    }


def main() -> None:
    """Examine the files and write the report; exit with 1 when one was neither split nor refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="try only files whose names hold this word")
    parser.add_argument("--mutations", type=int, default=32, help="of each good file")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place, IsolatedReader(seconds=READ_SECONDS, memory=MEMORY) as reader:
        folder = Path(place) / "hostile"
        written = generate(folder, mutations=arguments.mutations, seed=arguments.seed)
        splitter = Splitter()
        found = {item.path if isinstance(item, Skipped) else item: item for item in walk([folder])}
        assert {os.fsencode(path) for path in written} == {os.fsencode(path) for path in found}, "each is reported"
        for path, item in found.items():
            if arguments.only not in path.name:
                continue
            if isinstance(item, Skipped):
                size = path.lstat().st_size
                rows.append({"name": printable(path.name), "bytes": size, "outcome": "refused", "detail": item.reason})
            else:
                rows.append(examine(path, reader, splitter))
            row = rows[-1]
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


if __name__ == "__main__":
    main()
