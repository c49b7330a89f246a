"""Read a table that a user gives in a process of its own, within limits: it may be made to fill the memory.

The process is `python -m MODULE SUFFIX`: it gets the file on standard input and writes what it reads as JSON.
"""

import csv
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from local_rag.display import one_line
from local_rag.errors import QuestionError, ReadError
from local_rag.reading.converters.sheets import rows_of_csv
from local_rag.reading.decode import decode
from local_rag.reading.isolate import bare_environment, confine

_MOST_BYTES, _MOST_UNPACKED = 20_000_000, 100_000_000
_MOST_COLUMNS = 100
_MOST_SECONDS, _MOST_MEMORY = 30, 2 * 1024**3
Table = Sequence[Sequence[str]]


def content_of(path: Path, what: str) -> bytes:
    """Return the content of a file, as far as it can be read; raise QuestionError if it cannot be opened."""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise QuestionError(f"{path} cannot be read ({error.strerror}); name a file with {what}.") from None


def read_apart(module: str, name: str, data: bytes, what: str, remedy: str) -> Any:
    """Return what a module reads of a file; raise QuestionError if it cannot."""
    if len(data) > _MOST_BYTES:
        raise QuestionError(f"{name} has more than {_MOST_BYTES // 10**6} MB; divide it into several files.")
    command = [sys.executable, "-P", "-m", module, Path(name).suffix.lower()]
    try:
        done = subprocess.run(
            command, input=data, capture_output=True, check=False, timeout=3 * _MOST_SECONDS, env=bare_environment()
        )
        reason = "" if done.returncode == 0 else done.stderr.decode(errors="replace").strip()
        if done.returncode not in {0, 1}:
            reason = "it takes too much time or memory"
    except subprocess.TimeoutExpired:
        reason = "it takes too much time"
    if reason:
        raise QuestionError(f"The {what} in {name} cannot be read: {one_line(reason.splitlines()[-1])}; {remedy}.")
    return json.loads(done.stdout)


def run_apart(read: Callable[[str, bytes], Any]) -> None:
    """Be the process that reads."""
    confine(_MOST_SECONDS, _MOST_MEMORY)
    try:
        sys.stdout.write(json.dumps(read(sys.argv[1], sys.stdin.buffer.read())))
    except ReadError as error:
        sys.exit(str(error))
    except MemoryError:
        sys.exit("it takes too much memory")


def rows_of_text(data: bytes) -> Table:
    """Return the rows of separated values."""
    text = decode(data)
    return list(rows_of_csv(text) or csv.reader(io.StringIO(text, newline="")))


def rows_of_sheets(data: bytes) -> list[Table]:
    """Return the cells of the sheets of an XLSX file; what it unpacks to is limited."""
    import openpyxl  # type: ignore[import-untyped]

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MOST_UNPACKED:
                raise ReadError("it is too large")
        workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        tables = list[Table]()
        for sheet in workbook.worksheets:
            sheet.reset_dimensions()  # a sheet may claim all of Excel's million rows
            rows = (row for row in sheet.iter_rows(values_only=True, max_col=_MOST_COLUMNS) if any(row))
            tables.append([["" if cell is None else str(cell) for cell in row] for row in rows])
    except ReadError:
        raise
    except Exception:  # noqa: BLE001  openpyxl raises errors of many types for a damaged file
        raise ReadError("it is no XLSX file") from None
    return tables
