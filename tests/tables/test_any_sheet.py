"""Whatever a sheet holds and however it is called: it is read, held, asked, queried and exported, or left out alone."""

import csv
import io
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path

import openpyxl  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local_rag.display import rows_as_csv, table_lines
from local_rag.serving.answer_files import write_row
from local_rag.store.relation_query import quoted
from local_rag.tables.answer import answer_from_rows
from scripts.benchmarks.sheets import open_tables

OTHER = "Client,Price\nDora,10\nEmil,20\nFritz,30\n"
NAMES = [
    "sqlite_stat1",
    "SQLITE_",
    "select",
    "rowid",
    "table",
    "pragma_table_info",
    "1",
    "📈",
    "a'b",
    '"',
    "ß",
]
HEADINGS = [
    *NAMES, "Load", "load", "LOAD (2)", "Load (unit)", "Load (unit) (2)", "rowid_", "oid", "_rowid_", "Section",
    "Column A", "Total", "Net EUR", "", " ", "Date", "ﬁ", "FI", "İ", "\ufffe",
]  # fmt: skip
NUMBERS = [
    "1E+20", "1e308", "1e400", "-1e999", "0e999", "9" * 18, "9" * 19, "-" + "9" * 19, "9" * 70, "1e-400", "5 EUR",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "²", "٣", "1.5bn", "12 %", "99e300bn", "inf",
    "7 kg", "nan", "-0", "1,234.5", "2024-02-30", "2024-02-01", "03/14/2024",
]  # fmt: skip
SIGNS = st.characters(exclude_categories=["Cs", "Cc"])
cells = st.one_of(st.sampled_from(NUMBERS), st.sampled_from(HEADINGS), st.text(SIGNS, max_size=8), st.just("x" * 2000))
names = st.one_of(st.sampled_from(NAMES), st.text(SIGNS, min_size=1, max_size=6)).map(
    lambda name: name.replace("/", "_").replace("\0", "_").strip(". ") or "_"
)
names = names.filter(lambda name: name.casefold() != "other")  # a table of its own, beside all others
headings = st.lists(st.one_of(st.sampled_from(HEADINGS), st.text(SIGNS, max_size=5)), min_size=2, max_size=6)


@st.composite
def sheets(draw: st.DrawFn) -> list[list[str]]:
    """Return a heading and rows; a column is often of one kind, so that it is read as that."""
    heading, columns = draw(headings), list[list[str]]()
    for _ in heading:
        kind = draw(st.sampled_from([cells, st.sampled_from(NUMBERS)]))
        columns.append(draw(st.lists(kind, min_size=1, max_size=6)))
    return [heading, *([one[at % len(one)] for one in columns] for at in range(draw(st.integers(2, 6))))]


def holds(files: dict[str, list[list[str]]]) -> None:
    """Index files beside another one, then ask, query and export all of them."""
    with tempfile.TemporaryDirectory() as folder:
        documents, library = Path(folder, "documents"), Path(folder, "library")
        documents.mkdir()
        library.mkdir()
        (documents / "other.csv").write_text(OTHER)
        for name, rows in files.items():
            with (documents / f"{name}.csv").open("w", newline="") as file:
                csv.writer(file).writerows(rows)
        with closing(open_tables(documents, library)) as tables:
            headings = [name for rows in files.values() for name in rows[0][:2]]
            for question in [*map("What is the highest {}?".format, headings), "What is the Price of Dora?"]:
                found = tables.answered(partial(answer_from_rows, question, tables))
                if found and found.table:
                    table_lines(found.table)
            assert not tables.left_out
            assert len({one.table for one in tables.named}) == len(tables.named)
            sheet = openpyxl.Workbook()
            for one in tables.named:
                result = tables.query(f"SELECT * FROM {quoted(one.table)}")
                assert result.columns == one.columns
                assert len(result.rows) == one.stored.rows
                for number, row in enumerate([result.columns, *result.rows], start=1):
                    write_row(sheet.active, number, row)
                exported = io.StringIO(rows_as_csv(result.columns, result.rows), newline="")
                assert len(list(csv.reader(exported))) == 1 + len(result.rows)
            sheet.save(io.BytesIO())
            assert tables.query("SELECT Price FROM other WHERE Client = 'Dora'").rows == [(10,)]


FEW = settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))


@FEW
@given(st.dictionaries(names, sheets(), min_size=1, max_size=3))
def test_any_sheet_can_be_asked_and_keeps_nobody_from_asking_others(files: dict[str, list[list[str]]]) -> None:
    holds(files)


@pytest.mark.rest
@settings(FEW, max_examples=1500)
@given(st.dictionaries(names, sheets(), min_size=2, max_size=3))
def test_3000_sheets_can_be_asked(files: dict[str, list[list[str]]]) -> None:
    holds(files)


@pytest.mark.parametrize(
    "text",
    [
        "Name,Load\na,1E+20\nb,2\nc,3\nd,4\n",
        "Load,Load (2),Load\n1,2,3\n3,4,5\n5,6,7\n",
        "rowid,rowid_,Name\n1,2,a\n3,4,b\n5,6,c\n",
        "Load,Load (unit),Load (unit) (unit)\n1 kg,5 EUR,a\n2 t,6 USD,b\n3 kg,7 EUR,c\n",
    ],
)
def test_headings_and_numbers_that_once_broke_all_tables(text: str) -> None:
    holds({"sqlite_stat1": list(csv.reader(io.StringIO(text)))})
