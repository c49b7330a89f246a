"""Read the questions of a file: CSV, XLSX, JSON lines, or one per line.

A table may be made to fill the memory, so another process reads it, within limits: `python -m
local_rag.serving.question_files SUFFIX` gets the file on standard input and writes the questions as JSON.
"""

import csv
import io
import json
import resource
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from local_rag import offline
from local_rag.asking import MAX_QUESTION
from local_rag.display import one_line
from local_rag.errors import QuestionError, ReadError
from local_rag.reading.converters.sheets import rows_of_csv
from local_rag.reading.decode import decode
from local_rag.reading.isolate import bare_environment

_COLUMN = frozenset({"question", "questions"})
_HEADER_ROWS = 50  # rows that may stand above the names of the columns
_MOST_BYTES, _MOST_UNPACKED = 20_000_000, 100_000_000
_MOST_QUESTIONS, _MOST_COLUMNS = 10_000, 100
_MOST_SECONDS, _MOST_MEMORY = 30, 2 * 1024**3
Table = Sequence[Sequence[str]]


def read_questions(path: Path) -> list[str]:
    """Return the questions of a file in their order, each once; raise QuestionError if it has none."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise QuestionError(f"{path} cannot be read ({error.strerror}); name a file with questions.") from None
    return questions_in(str(path), data)


def questions_in(name: str, data: bytes) -> list[str]:
    """Return the questions in the content of a file with this name; raise QuestionError if it has none.

    A table has a column `question`, or a single column. A line of JSON is a question, or has the field `question`.
    """
    if len(data) > _MOST_BYTES:
        raise QuestionError(f"{name} has more than {_MOST_BYTES // 10**6} MB; divide it into several files.")
    command = [sys.executable, "-P", "-m", "local_rag.serving.question_files", Path(name).suffix.lower()]
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
        raise QuestionError(
            f"The questions in {name} cannot be read: {one_line(reason.splitlines()[-1])}; write one per line, or a "
            "table with a column `question`."
        )
    questions: list[str] = json.loads(done.stdout)
    return questions


def _main() -> None:
    offline.close()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS, _MOST_SECONDS))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    try:
        sys.stdout.write(json.dumps(_questions(sys.argv[1], sys.stdin.buffer.read())))
    except ReadError as error:
        sys.exit(str(error))
    except MemoryError:
        sys.exit("it takes too much memory")


def _questions(suffix: str, data: bytes) -> list[str]:
    questions = dict[str, None]()
    for text in _texts(suffix, data):
        question = one_line(" ".join(text.split()))
        if len(question) > MAX_QUESTION:
            raise ReadError(f"a question has more than {MAX_QUESTION:,} characters: {question[:60]}...")
        questions |= {question: None} if question else {}
        if len(questions) > _MOST_QUESTIONS:
            raise ReadError(f"it has more than {_MOST_QUESTIONS:,} questions")
    if not questions:
        raise ReadError("it has no questions")
    return list(questions)


def _texts(suffix: str, data: bytes) -> Iterator[str]:
    """Yield the questions of a file, perhaps empty ones; raise ReadError if it is malformed."""
    if suffix == ".xlsx":
        yield from _column(_sheets(data))
    elif suffix in {".jsonl", ".ndjson"}:
        for number, line in enumerate(decode(data).split("\n"), start=1):
            if line.strip():
                yield _of_json(number, line)
    elif suffix in {".csv", ".tsv"}:
        text = decode(data)
        yield from _column([list(rows_of_csv(text) or csv.reader(io.StringIO(text, newline="")))])
    else:
        yield from decode(data).split("\n")


def _of_json(number: int, line: str) -> str:
    try:
        question = json.loads(line)
    except (ValueError, RecursionError):
        raise ReadError(f"line {number} is no JSON") from None
    if isinstance(question, dict):
        question = next((value for name, value in question.items() if name.strip().casefold() in _COLUMN), None)
    if not isinstance(question, str):
        raise ReadError(f"line {number} is neither a question nor an object with a text `question`")
    return question


def _sheets(data: bytes) -> list[Table]:
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


def _column(tables: Sequence[Table]) -> Iterator[str]:
    """Yield the cells of each column `question`, or those of a single column without a name."""
    headed = list[tuple[Table, int, int]]()
    for table in tables:
        for number, row in enumerate(table[:_HEADER_ROWS]):
            columns = [column for column, cell in enumerate(row) if cell.strip().casefold() in _COLUMN]
            if columns:
                headed.append((table, number + 1, columns[0]))
                break
    if not headed and any(sum(bool(cell.strip()) for cell in row) > 1 for table in tables for row in table):
        raise ReadError("none of its columns is named `question`")
    for table, first, column in headed:
        yield from (row[column] for row in table[first:] if column < len(row))
    if not headed:
        yield from (cell for table in tables for row in table for cell in row)


if __name__ == "__main__":
    _main()
