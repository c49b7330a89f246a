"""Read the columns of a table from a file: YAML, CSV or XLSX. Another process reads it: see table_files.py."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from local_rag.errors import QuestionError, ReadError, nearest
from local_rag.extraction.columns import Column, parse_columns
from local_rag.reading.decode import decode
from local_rag.serving.table_files import Table, content_of, read_apart, rows_of_sheets, rows_of_text, run_apart

_FIELDS = ("name", "question", "type", "choices")
_HEADER_ROWS = 50  # rows that may stand above the names of the columns
_SUFFIXES = (".yaml", ".yml", ".json", ".csv", ".tsv", ".xlsx")


def read_columns(path: Path) -> tuple[Column, ...]:
    """Return the columns that a file describes; raise QuestionError if it describes none."""
    return columns_in(str(path), content_of(path, "columns"))


def columns_in(name: str, data: bytes) -> tuple[Column, ...]:
    """Return the columns in the content of a file with this name; raise QuestionError if it describes none."""
    if Path(name).suffix.lower() not in _SUFFIXES:
        raise QuestionError(f"{name} does not end in .yaml, .csv or .xlsx; name a file of columns that does.")
    remedy = "write a table, or YAML, with a name, a question and a type for each column"
    return parse_columns(read_apart("local_rag.serving.column_files", name, data, "columns", remedy))


def _read(suffix: str, data: bytes) -> list[dict[str, Any] | str]:
    if suffix == ".xlsx":
        return [field for table in rows_of_sheets(data) for field in _of_table(table)]
    if suffix in {".csv", ".tsv"}:
        return _of_table(rows_of_text(data))
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


if __name__ == "__main__":
    run_apart(_read)
