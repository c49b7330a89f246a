"""Read the questions or the columns in a file that a user gives: CSV, XLSX, JSON lines, YAML, or one per line.

A process of its own reads it, within limits, because the file may be made to fill the memory: `python -m
local_rag.serving.table_files WHAT SUFFIX` gets the file on standard input and writes what it reads as JSON.
"""

import csv
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from local_rag.asking import MAX_QUESTION
from local_rag.display import one_line
from local_rag.errors import QuestionError, ReadError, nearest
from local_rag.extraction.columns import Column, parse_columns
from local_rag.reading.converters.sheets import rows_of_csv
from local_rag.reading.decode import decode
from local_rag.reading.isolate import bare_environment, confine

_MOST_BYTES, _MOST_UNPACKED = 20_000_000, 100_000_000
_MOST_COLUMNS = 100
_MOST_SECONDS, _MOST_MEMORY = 30, 2 * 1024**3
_QUESTION = frozenset({"question", "questions"})  # what a column of questions is named
_MOST_QUESTIONS = 10_000
_FIELDS = ("name", "question", "type", "choices")
_HEADER_ROWS = 50  # rows that may stand above the names of the columns
_SUFFIXES = (".yaml", ".yml", ".json", ".csv", ".tsv", ".xlsx")  # of files of columns
_REMEDIES = {
    "questions": "write one per line, or a table with a column `question`",
    "columns": "write a table, or YAML, with a name, a question and a type for each column",
}
What = Literal["questions", "columns"]
Table = Sequence[Sequence[str]]


def read_questions(path: Path) -> list[str]:
    """Return the questions of a file in their order, each once; raise QuestionError if it has none."""
    return questions_in(str(path), _content_of(path, "questions"))


def questions_in(name: str, data: bytes) -> list[str]:
    """Return the questions in the content of a file with this name; raise QuestionError if it has none.

    A table has a column `question`, or a single column. A line of JSON is a question, or has the field `question`.
    """
    questions: list[str] = _read_apart("questions", name, data)
    return questions


def read_columns(path: Path) -> tuple[Column, ...]:
    """Return the columns that a file describes; raise QuestionError if it describes none."""
    return columns_in(str(path), _content_of(path, "columns"))


def columns_in(name: str, data: bytes) -> tuple[Column, ...]:
    """Return the columns in the content of a file with this name; raise QuestionError if it describes none."""
    if Path(name).suffix.lower() not in _SUFFIXES:
        raise QuestionError(f"{name} does not end in .yaml, .csv or .xlsx; name a file of columns that does.")
    return parse_columns(_read_apart("columns", name, data))


def _content_of(path: Path, what: What) -> bytes:
    """Return the content of a file, as far as it can be read; raise QuestionError if it cannot be opened."""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise QuestionError(f"{path} cannot be read ({error.strerror}); name a file with {what}.") from None


def _read_apart(what: What, name: str, data: bytes) -> Any:
    """Return what another process reads of a file; raise QuestionError if it cannot."""
    if len(data) > _MOST_BYTES:
        raise QuestionError(f"{name} has more than {_MOST_BYTES // 10**6} MB; divide it into several files.")
    command = [sys.executable, "-P", "-m", "local_rag.serving.table_files", what, Path(name).suffix.lower()]
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
            f"The {what} in {name} cannot be read: {one_line(reason.splitlines()[-1])}; {_REMEDIES[what]}."
        )
    return json.loads(done.stdout)


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
        yield from _column(_rows_of_sheets(data))
    elif suffix in {".jsonl", ".ndjson"}:
        for number, line in enumerate(decode(data).split("\n"), start=1):
            if line.strip():
                yield _of_json(number, line)
    elif suffix in {".csv", ".tsv"}:
        yield from _column([_rows_of_text(data)])
    else:
        yield from decode(data).split("\n")


def _of_json(number: int, line: str) -> str:
    try:
        question = json.loads(line)
    except (ValueError, RecursionError):
        raise ReadError(f"line {number} is no JSON") from None
    if isinstance(question, dict):
        question = next((value for name, value in question.items() if name.strip().casefold() in _QUESTION), None)
    if not isinstance(question, str):
        raise ReadError(f"line {number} is neither a question nor an object with a text `question`")
    return question


def _column(tables: Sequence[Table]) -> Iterator[str]:
    """Yield the cells of each column `question`, or those of a single column without a name."""
    headed = list[tuple[Table, int, int]]()
    for table in tables:
        for number, row in enumerate(table[:_HEADER_ROWS]):
            columns = [column for column, cell in enumerate(row) if cell.strip().casefold() in _QUESTION]
            if columns:
                headed.append((table, number + 1, columns[0]))
                break
    if not headed and any(sum(bool(cell.strip()) for cell in row) > 1 for table in tables for row in table):
        raise ReadError("none of its columns is named `question`")
    for table, first, column in headed:
        yield from (row[column] for row in table[first:] if column < len(row))
    if not headed:
        yield from (cell for table in tables for row in table for cell in row)


def _columns(suffix: str, data: bytes) -> list[dict[str, Any] | str]:
    if suffix == ".xlsx":
        return [field for table in _rows_of_sheets(data) for field in _of_table(table)]
    if suffix in {".csv", ".tsv"}:
        return _of_table(_rows_of_text(data))
    import yaml

    try:
        return _of_yaml(yaml.safe_load(decode(data)))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ReadError(f"it is no YAML ({' '.join(str(error).split())[:120]})") from None


def _of_yaml(found: Any) -> list[dict[str, Any] | str]:
    """Return the columns of a list of them, under `columns` or by themselves, or of a mapping by their names."""
    if isinstance(found, Mapping):
        inner = found.get("columns")
        if isinstance(inner, Mapping | list):
            return _of_yaml(inner)
        return [
            _plain({"name": str(name), **one}) if isinstance(one, Mapping) else f"{name}: {_scalar(name, one)}"
            for name, one in found.items()
        ]
    if not isinstance(found, list) or not found:
        raise ReadError("it is no list of columns")
    if not all(isinstance(one, Mapping | str) for one in found):
        raise ReadError("a column is neither a text nor has a name, a question and a type")
    return [one if isinstance(one, str) else _plain(one) for one in found]


def _plain(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the fields of a column as texts, and its choices as a list of them."""
    plain = dict[str, Any]()
    for name, value in fields.items():
        if isinstance(value, list) and str(name).strip().casefold() == "choices":
            plain[str(name)] = [_scalar(name, one) for one in value]
        elif value is not None:
            plain[str(name)] = _scalar(name, value)
    return plain


def _scalar(name: object, value: object) -> str:
    if isinstance(value, Mapping | list):
        raise ReadError(f"the {str(name)[:40]!r} of a column is no text")
    # YAML reads a bare yes or no as true or false.
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _of_table(table: Table) -> list[dict[str, Any] | str]:
    for number, row in enumerate(table[:_HEADER_ROWS]):
        head = [cell.strip().casefold() for cell in row]
        if "question" in head:
            known = [(at, name) for at, name in enumerate(head) if name in _FIELDS]
            for unknown in set(head) - {*_FIELDS, ""}:
                if hint := nearest(unknown, set(_FIELDS) - set(head)):
                    raise ReadError(f"it has a column {unknown[:40]!r}; {hint}")
            rows = [{name: _cell(one, at) for at, name in known if _cell(one, at)} for one in table[number + 1 :]]
            return [one for one in rows if one]
    raise ReadError("none of its columns is named `question`")


def _cell(row: Sequence[str], at: int) -> str:
    return row[at].strip() if at < len(row) else ""


def _rows_of_text(data: bytes) -> Table:
    """Return the rows of separated values."""
    text = decode(data)
    return list(rows_of_csv(text) or csv.reader(io.StringIO(text, newline="")))


def _rows_of_sheets(data: bytes) -> list[Table]:
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


def _main(what: str, suffix: str) -> None:
    """Be the process that reads."""
    confine(_MOST_SECONDS, _MOST_MEMORY)
    read: Callable[[str, bytes], Any] = _questions if what == "questions" else _columns
    try:
        sys.stdout.write(json.dumps(read(suffix, sys.stdin.buffer.read())))
    except ReadError as error:
        sys.exit(str(error))
    except MemoryError:
        sys.exit("it takes too much memory")


if __name__ == "__main__":
    _main(*sys.argv[1:])
