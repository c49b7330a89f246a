"""Write answers to many questions into a file, and find in it those that an earlier run has written."""

import csv
import errno
import io
import json
import math
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from local_rag.answer_records import Answer
from local_rag.answering.remarks import remarks, sources_of
from local_rag.asking import KeptCorrection
from local_rag.display import Name, csv_cell, csv_text, display_path, printable, printable_json, xml_text
from local_rag.errors import LocalRagError
from local_rag.files import permissions_of_regular, state_of, writable, write_whole

COLUMNS = ("question", "outcome", "answer", "quotes", "sources", "probability", "seconds", "remarks")
_WIDTHS = (40, 12, 60, 60, 40, 12, 10, 60)  # of the columns of XLSX, in characters
_MOST_CHARACTERS = 32_000  # of a cell of XLSX, which holds a few more
# What begins so is a formula to a spreadsheet program, and documents are not trusted to write formulas.
_FORMULA = re.compile("'*[=+@\t\uff0b\uff0d\uff1d\uff20-]")
_PATIENCE = 20  # a file is written again after this many times the seconds that writing it took


def answers_in_form(
    suffix: str,
    answers: Iterable[Answer],
    name: Name = display_path,
    corrections: Mapping[str, KeptCorrection] = MappingProxyType({}),
) -> bytes:
    """Return answers as a file with this suffix, with `name` for places.

    An answer with a correction has the outcome `corrected` and that text; a remark says whose it is and what stood
    there before.
    """
    form = _FORMS[suffix](b"", name)
    for answer in answers:
        form.add(answer, corrections.get(answer.question))
    return form.data()


class AnswerFile:
    """A file of answers, CSV, XLSX or JSON lines by its suffix, to which answers are added.

    What it holds already stays as it is; `outcomes` are those of all its questions. Raises LocalRagError for a file
    that another program has made.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._shown = path.resolve(), display_path(path)
        form = _FORMS.get(path.suffix.lower())
        if form is None:
            raise LocalRagError(f"{self._shown} does not end in .csv, .xlsx or .jsonl; name a file that does.")
        with writable(self._shown):
            permissions_of_regular(self.path)
            self._stamp = state_of(self.path)
            data = self.path.read_bytes() if self._stamp else b""
            if self._stamp and not os.access(self.path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        try:
            self._form = form(data, display_path)
        except _OtherFileError:
            raise LocalRagError(
                f"{self._shown} exists and does not hold answers as this command writes them (CSV with commas and this "
                "header, JSON lines, or a workbook of one sheet); save it in that form, or name another file."
            ) from None
        self.outcomes = {question: outcome for question, outcome in self._form.rows if outcome}
        self._written = self._cost = 0.0
        self._pending = False
        if not data:
            self._write()  # reports a folder that cannot be written before the first question

    def add(self, answer: Answer) -> None:
        """Add an answer; where writing takes long, it is written together with some of the next ones."""
        self._form.add(answer)
        self.outcomes[answer.question], self._pending = answer.outcome, True
        if time.monotonic() - self._written >= _PATIENCE * self._cost:
            self._write()

    def close(self) -> None:
        """Write what is not written yet."""
        if self._pending:
            self._write()

    def _write(self) -> None:
        started = time.monotonic()
        with writable(self._shown):
            if state_of(self.path) != self._stamp:
                raise LocalRagError(
                    f"Another program has changed {self._shown}, so nothing more is written to it; run the command "
                    "again to go on."
                )
            write_whole(self.path, self._form.data(), durable=True)
            self._stamp = state_of(self.path)
        self._written = time.monotonic()
        self._cost, self._pending = self._written - started, False


class _OtherFileError(Exception):
    """The file holds something else than answers."""


class _Lines:
    """Lines of text, which follow those that are there."""

    def __init__(self, data: bytes, name: Name) -> None:
        self._name = name
        self._data = data if data.endswith(b"\n") or not data else data + b"\n"

    def data(self) -> bytes:
        return self._data


class _JsonLines(_Lines):
    def __init__(self, data: bytes, name: Name) -> None:
        super().__init__(data, name)
        try:
            rows = [json.loads(line) for line in data.decode("utf-8-sig").split("\n") if line.strip()]
        except (ValueError, RecursionError):
            raise _OtherFileError from None
        if not all(isinstance(row, dict) and tuple(row)[: len(COLUMNS)] == COLUMNS for row in rows):
            raise _OtherFileError
        self.rows = [(str(row["question"]), str(row["outcome"])) for row in rows]

    def add(self, answer: Answer, corrected: KeptCorrection | None = None) -> None:
        self._data += json_line(answer, self._name, corrected).encode()


class _Csv(_Lines):
    def __init__(self, data: bytes, name: Name) -> None:
        super().__init__(data or csv_line(COLUMNS).encode(), name)
        try:
            rows = list(csv.reader(io.StringIO(self._data.decode("utf-8-sig"), newline=""), strict=True))
        except (UnicodeError, csv.Error):
            raise _OtherFileError from None
        _require_ours(rows)
        self.rows = [(csv_text(question), outcome) for question, outcome in _outcomes(rows)]

    def add(self, answer: Answer, corrected: KeptCorrection | None = None) -> None:
        self._data += csv_line(cells(answer, self._name, corrected)).encode()


class _Xlsx:
    def __init__(self, data: bytes, name: Name) -> None:
        import openpyxl  # type: ignore[import-untyped]

        self._name = name
        if not data:
            self._workbook = openpyxl.Workbook()
            sheet = self._workbook.active
            sheet.append(COLUMNS)
            sheet.freeze_panes = "A2"
            for letter, width in zip("ABCDEFGH", _WIDTHS, strict=True):
                sheet.column_dimensions[letter].width = width
        else:
            try:
                self._workbook = openpyxl.load_workbook(io.BytesIO(data))
            except Exception:  # noqa: BLE001  openpyxl raises errors of many types for a damaged file
                raise _OtherFileError from None
        self._sheet = self._workbook.worksheets[0]
        rows = [["" if cell is None else str(cell) for cell in row] for row in self._sheet.iter_rows(values_only=True)]
        _require_ours(rows)
        self._last = len(rows)
        self.rows = _outcomes(rows)
        if len(self._workbook.worksheets) > 1:
            raise _OtherFileError

    def add(self, answer: Answer, corrected: KeptCorrection | None = None) -> None:
        self._last += 1
        write_row(self._sheet, self._last, _values(answer, self._name, corrected))

    def data(self) -> bytes:
        content = io.BytesIO()
        self._workbook.save(content)
        return content.getvalue()


_FORMS: Mapping[str, type[_JsonLines | _Csv | _Xlsx]] = {".csv": _Csv, ".xlsx": _Xlsx, ".jsonl": _JsonLines}


def write_row(sheet: Any, row: int, values: Sequence[Any], *, bold: bool = False) -> None:
    """Write a row of a sheet of openpyxl, which would look at all its cells to find the last one."""
    from openpyxl.styles import Alignment, Font  # type: ignore[import-untyped]

    for at, value in enumerate(values, start=1):
        cell = sheet.cell(row, at)
        write_cell(cell, value)
        cell.alignment = Alignment(vertical="top", wrap_text=True)
        if bold:
            cell.font = Font(bold=True)


def write_cell(cell: Any, value: Any) -> None:
    """Write a value; text stays text also where it looks like a formula, and what is no number for a sheet is text."""
    if isinstance(value, float) and not math.isfinite(value):
        value = str(value)
    cell.value = xml_text(value[:_MOST_CHARACTERS]) if isinstance(value, str) else value
    if isinstance(value, str):
        cell.data_type, cell.quotePrefix = "s", bool(_FORMULA.match(value))


def _require_ours(rows: Sequence[Sequence[str]]) -> None:
    """Raise _OtherFileError for a table without our columns, which others may follow."""
    width = len(COLUMNS)
    if not rows or tuple(rows[0][:width]) != COLUMNS or any(row and len(row) < width for row in rows):
        raise _OtherFileError


def _outcomes(rows: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in rows[1:] if row]


def json_line(answer: Answer, name: Name = display_path, corrected: KeptCorrection | None = None) -> str:
    """Return an answer as a line of JSON."""
    quotes = [{"text": quote.text, "citation": quote.citation} for quote in answer.quotes]
    sources = [
        {"number": cited.number, "location": name(cited.passage.location), "title": cited.passage.title}
        for cited in answer.citations
    ]
    values = (*_said(answer, corrected), quotes, sources, *_numbers(answer), _remarks(answer, name, corrected))
    more = {"corrected": {"by": corrected.writer, "at": corrected.written, "was": answer.text}} if corrected else {}
    return f"{printable_json(dict(zip(COLUMNS, values, strict=True)) | more)}\n"


def csv_line(row: Sequence[object]) -> str:
    """Return a row as a line of CSV."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(row)
    return text.getvalue()


def cells(answer: Answer, name: Name = display_path, corrected: KeptCorrection | None = None) -> list[object]:
    """Return the cells of CSV, none of which can act as a formula."""
    return [csv_cell(value) if isinstance(value, str) else value for value in _values(answer, name, corrected)]


def _said(answer: Answer, corrected: KeptCorrection | None) -> tuple[str, str, str]:
    """Return the question, the outcome and the answer, or what a person has written in its place."""
    return (answer.question, *(("corrected", corrected.answer) if corrected else (answer.outcome, answer.text)))


def _remarks(answer: Answer, name: Name, corrected: KeptCorrection | None) -> list[str]:
    if corrected is None:
        return remarks(answer, name)
    writer = corrected.writer or "who serves the library"
    return [f"Corrected by {writer} on {corrected.written}; the program had written: {answer.text}"]


def _values(answer: Answer, name: Name, corrected: KeptCorrection | None) -> list[str | float | None]:
    quotes = "\n".join(f"[{quote.citation}] {quote.text}" for quote in answer.quotes)
    cited = sources_of(answer, name) if answer.citations else ()
    sources = "\n".join(f"[{source.number}] {source.place}" for source in cited)
    texts = (*_said(answer, corrected), quotes, sources)
    return [*map(printable, texts), *_numbers(answer), printable("\n".join(_remarks(answer, name, corrected)))]


def _numbers(answer: Answer) -> tuple[float | None, float]:
    return None if answer.probability is None else round(answer.probability, 3), round(answer.seconds, 2)
