"""Read the questions of a file: CSV, XLSX, JSON lines, or one per line.

Another process reads it: see table_files.py.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from local_rag.asking import MAX_QUESTION
from local_rag.display import one_line
from local_rag.errors import ReadError
from local_rag.reading.decode import decode
from local_rag.serving.table_files import (
    Table,
    content_of,
    read_apart,
    rows_of_sheets,
    rows_of_text,
    run_apart,
)

_COLUMN = frozenset({"question", "questions"})
_HEADER_ROWS = 50  # rows that may stand above the names of the columns
_MOST_QUESTIONS = 10_000


def read_questions(path: Path) -> list[str]:
    """Return the questions of a file in their order, each once; raise QuestionError if it has none."""
    return questions_in(str(path), content_of(path, "questions"))


def questions_in(name: str, data: bytes) -> list[str]:
    """Return the questions in the content of a file with this name; raise QuestionError if it has none.

    A table has a column `question`, or a single column. A line of JSON is a question, or has the field `question`.
    """
    remedy = "write one per line, or a table with a column `question`"
    questions: list[str] = read_apart("local_rag.serving.question_files", name, data, "questions", remedy)
    return questions


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
        yield from _column(rows_of_sheets(data))
    elif suffix in {".jsonl", ".ndjson"}:
        for number, line in enumerate(decode(data).split("\n"), start=1):
            if line.strip():
                yield _of_json(number, line)
    elif suffix in {".csv", ".tsv"}:
        yield from _column([rows_of_text(data)])
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
    run_apart(_questions)
