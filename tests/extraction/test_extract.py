"""`extract`: every cell is asked once, stands in its quotation, and goes with its document."""

import csv
import io
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path

import openpyxl  # type: ignore[import-untyped]
import pytest

from local_rag import Library
from local_rag.asking import Filters, Person
from local_rag.display import csv_text
from local_rag.errors import LocalRagError
from local_rag.extraction import extraction as extraction_module
from local_rag.extraction.cells import Cell
from local_rag.extraction.columns import parse_columns
from local_rag.extraction.document_asker import DocumentAsker
from local_rag.extraction.extraction import Extraction, Table, UnwrittenCells
from local_rag.extraction.values import longest_run
from local_rag.library import Parts
from local_rag.model_records import PLAIN_FORM
from local_rag.passage_records import Passage
from local_rag.serving.extracted_files import write_table
from local_rag.serving.table_files import columns_in
from local_rag.store.database import Store
from local_rag.view import View
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY, FakeGenerator, generating

COLUMNS = [
    "Customer: Who is the customer? (name)",
    "Notice: How long is the notice period? (duration)",
    "Fee: What is the annual fee? (amount)",
    "Ends: When does it end? (date)",
    "Interest: What is the interest? (percentage)",
    "Renews: Does it renew automatically? (yes/no)",
]
CONTRACTS = {
    "a": "The customer is Acme Ltd. The notice period is three months. The annual fee is EUR 12,500. It ends on 31 May "
    "2027. The interest is 8.5 %. It does not renew automatically.",
    "b": "The customer is Borel AG. The notice period is 60 days. The annual fee is $1,000. It renews automatically."
    "\n\n## Annex\n\nThe notice period is 90 days.",
}
ANSWERS = {
    "customer": r"customer is ([\w ]+?)\.",
    "notice": r"notice period is ([\w ]+?)\.",
    "fee": r"annual fee is (\S+ ?\S+)\.",
    "end": r"ends on ([\w ]+?)\.",
    "interest": r"interest is ([\d.]+ %)",
    "renew": r"(does not renew|renews) automatically",
}


def answer(prompt: str) -> str:
    """Say what the document in a prompt says, as a model would."""
    document, _, question = prompt.rpartition("Question: ")
    pattern = next(pattern for word, pattern in ANSWERS.items() if word in question.lower())
    found = re.search(pattern, document)
    if found is None:
        return "Unanswerable."
    return {"does not renew": "No", "renews": "Yes"}.get(found[1], found[1])


@pytest.fixture
def generator() -> FakeGenerator:
    return FakeGenerator(answer)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generator: FakeGenerator) -> Iterator[Library]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    for name, text in CONTRACTS.items():
        (tmp_path / "docs" / f"{name}.md").write_text(f"# Contract {name}\n\n{text}\n")
    with opened(tmp_path, generator) as library:
        library.index([tmp_path / "docs"])
        yield library


def opened(folder: Path, generator: FakeGenerator) -> Library:
    parts: Parts = replace(EMBEDS_QUICKLY, open_engine=generating(generator))
    return Library(folder / "lib", parts=parts, profile="tiny", context="headings")


def texts(table: Table) -> list[list[str | None]]:
    return [[(cell.text or cell.state) if cell else None for cell in row.cells] for row in table.rows]


def test_each_document_is_asked_and_each_cell_stands_in_its_quotation(library: Library, tmp_path: Path) -> None:
    table = library.extract(COLUMNS)
    assert texts(table) == [
        ["Acme Ltd", "3 months", "12,500 EUR", "2027-05-31", "8.5 %", "no"],
        ["Borel AG", "60 days", "1,000 USD", "not stated", "not stated", "yes"],
    ]
    for row in table.rows:
        written = Path(row.path).read_text()
        for cell in filter(None, row.cells):
            assert cell.quotation in written
    contradicted = table.rows[1].cells[1]
    assert contradicted is not None
    assert (contradicted.state, contradicted.note) == ("unsure", "the document also says 90 days")


def test_a_place_in_a_word_file_is_its_heading(library: Library, tmp_path: Path) -> None:
    import docx

    document = docx.Document()
    document.add_heading("Agreement", 0)
    document.add_heading("Term", 1)
    document.add_heading("Ending it", 2)
    document.add_paragraph("The notice period is 45 days.")
    document.save(str(tmp_path / "docs" / "c.docx"))
    library.index()
    table = library.extract(COLUMNS[1:2], filters={"within": [str(tmp_path / "docs" / "c.docx")]})
    [cell] = filter(None, table.rows[0].cells)
    assert (cell.page, cell.line, cell.heading) == (None, None, "Ending it")
    write_table(tmp_path / "out.csv", table)
    [_, line] = csv.reader(io.StringIO((tmp_path / "out.csv").read_text(encoding="utf-8-sig")))
    assert line[-1].endswith("c.docx, Ending it")


def test_what_is_stored_is_not_asked_again_and_a_new_column_alone_is(
    library: Library, generator: FakeGenerator
) -> None:
    assert library.extract(COLUMNS[:2]).asked == 4
    before = len(generator.prompts)
    assert library.extract(COLUMNS[:2]).asked == 0
    assert library.extract(["Other name: Who is the customer? (name)"]).asked == 0, "a name is not asked"
    assert len(generator.prompts) == before
    assert library.extract(COLUMNS[:3]).asked == 2


def test_a_changed_document_alone_is_asked_again(library: Library, tmp_path: Path) -> None:
    library.extract(COLUMNS)
    (tmp_path / "docs" / "a.md").rename(tmp_path / "docs" / "z.md")
    (tmp_path / "docs" / "b.md").write_text("# Contract b\n\nThe customer is Cobalt BV. It renews automatically.\n")
    library.index()
    table = library.extract(COLUMNS)
    assert table.asked == len(COLUMNS)
    assert texts(table)[0][0] == "Cobalt BV"


def test_stopped_within_any_answer_no_other_is_lost_or_asked_twice(library: Library, generator: FakeGenerator) -> None:
    stopped, prompts = 0, generator.prompts

    def missing() -> int:
        before = len(prompts)
        return library.extract(COLUMNS, stop=lambda: len(prompts) > before + 1).missing

    while missing():
        stopped += 1
        assert len(prompts) - len(set(prompts)) == stopped - 1, "only the answer within which it was stopped"
    assert stopped > len(COLUMNS)


def test_each_answer_moves_the_progress_and_none_takes_it_back(library: Library) -> None:
    steps = list[tuple[int, int]]()
    library.extract(COLUMNS, progress=lambda step: steps.append((step.done, step.total)))
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert {done for done, _ in steps} == set(range(13))
    assert {total for _, total in steps} == {12}


def test_the_store_is_opened_as_often_for_many_columns_as_for_one(library: Library, generator: FakeGenerator) -> None:
    def times_opened(columns: list[str]) -> int:
        opened = 0

        @contextmanager
        def reading() -> Iterator[Store]:
            nonlocal opened
            opened += 1
            with library.documents.reading() as store:
                yield store

        @contextmanager
        def open_asker(_document: object) -> Iterator[tuple[DocumentAsker, Callable[[str], Sequence[Passage]]]]:
            yield DocumentAsker(generator, PLAIN_FORM, None), lambda _question: ()

        extraction = Extraction(library.folder, ["a model"], reading, open_asker)
        assert extraction.run(parse_columns(columns), Filters()).asked == 2 * len(columns)
        return opened

    assert times_opened(COLUMNS[:1]) == times_opened(COLUMNS[1:])


def test_what_is_read_of_a_long_document_does_not_depend_on_others(tmp_path: Path) -> None:
    words = ["lantern", "customer", "anchor", "ladder", "whistle", "signal", "tide"]
    parts = [" ".join(words[number * step % 7] for step in range(1, 3 + number % 5)) for number in range(60)]

    def read(name: str, others: int) -> list[str]:
        docs = tmp_path / "docs"
        docs.mkdir(exist_ok=True)
        text = "\n\n".join(f"## Part {number}\n\nThe {part} is kept." for number, part in enumerate(parts))
        (docs / "long.md").write_text(f"# Log\n\n{text}\n")
        for number in range(others):
            (docs / f"other{number}.md").write_text(f"# Other {number}\n\nA lantern and a customer, at any tide.\n")
        generator = FakeGenerator(answer)
        with opened(tmp_path / name, generator) as library:
            library.index([docs])
            library.extract(["Customer: Who is the customer of the lantern, the anchor and the tide? (name)"],
                            filters={"within": "long.md"})  # fmt: skip
        return generator.prompts

    assert read("alone", 0) == read("beside others", 20)


def test_a_persons_cell_counts_until_it_is_taken_back(library: Library) -> None:
    row = library.extract(COLUMNS[:1]).rows[0]
    column = library.extract(COLUMNS[:1]).columns[0]
    library.tables.correct_cell(row.document, column, Cell("stated", "Acme Limited", "Acme Limited", by="person"))
    corrected = library.extract(COLUMNS[:1]).rows[0].cells[0]
    assert corrected is not None
    assert (corrected.text, corrected.by) == ("Acme Limited", "person")
    library.tables.correct_cell(row.document, column, None)
    assert texts(library.extract(COLUMNS[:1]))[0] == ["Acme Ltd"]


def test_cells_go_with_their_document(library: Library, tmp_path: Path) -> None:
    library.extract(COLUMNS)
    row = library.extract(COLUMNS).rows[0]
    library.tables.correct_cell(
        row.document, library.extract(COLUMNS).columns[0], Cell("stated", "Xanadu", "Xanadu", by="person")
    )
    library.remove([tmp_path / "docs" / "a.md"], erase=True)
    library.close()
    for path in (tmp_path / "lib").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"Acme" not in content, path
            assert b"Xanadu" not in content, path
    with closing(Store(tmp_path / "lib")) as store:
        assert store.value("SELECT count(*) FROM cells") == len(COLUMNS)


def test_who_sees_a_part_sees_the_cells_of_no_other_document(library: Library) -> None:
    library.extract(COLUMNS)
    view = library.seen_by(Filters(within=("b.md",)))
    table = view.extract(COLUMNS)
    assert [Path(row.path).name for row in table.rows] == ["b.md"]
    assert (table.asked, texts(table)[0][0]) == (0, "Borel AG")
    with view.documents.reading() as store:
        assert "Acme" not in str(store.connection.execute("SELECT * FROM cells").fetchall())
    hidden = library.extract(COLUMNS[:1]).rows[0].document
    with pytest.raises(LocalRagError, match="no longer in the library"):
        view.tables.correct_cell(hidden, table.columns[0], Cell("stated", "x", "x", by="person"))


def person(limits: Filters) -> Person:
    return Person("anna", "anna", "editor", limits)


def typed(table: Table, column: int = 0) -> dict[str, str]:
    """Return what people typed into a column of a table, by the name of the document."""
    cells = ((Path(row.path).name, row.cells[column]) for row in table.rows)
    return {name: cell.text for name, cell in cells if cell and cell.by == "person"}


def test_what_is_typed_belongs_to_a_document_and_to_those_who_see_the_same(library: Library, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    for folder in ("here", "there"):
        (docs / folder).mkdir()
        (docs / folder / f"{folder}.md").write_text((docs / "a.md").read_text())
    library.index()
    column = parse_columns(COLUMNS[:1])
    limits = Filters(within=("here/**", "b.md"))
    anna, other = (library.seen_by(limits, person(limits)), library.seen_by(Filters(within=("here/**",))))

    def correct(view: View, name: str, text: str | None) -> None:
        row = next(one for one in view.extract(column, ask=False).rows if one.path.endswith(name))
        view.tables.correct_cell(row.document, column[0], Cell("stated", text, text, by="person") if text else None)

    def all_typed() -> list[dict[str, str]]:
        return [typed(view.extract(column, ask=False)) for view in (library, anna, other)]

    correct(library, "there.md", "a secret")
    assert all_typed() == [{"there.md": "a secret"}, {}, {}], "of a copy that others do not see"
    correct(library, "here.md", "what the host thinks")
    assert all_typed()[1:] == [{}, {}], "the host may know more than they see"
    correct(anna, "here.md", "by anna")
    assert all_typed() == [{"there.md": "a secret", "here.md": "what the host thinks"}, {"here.md": "by anna"}, {}]
    correct(anna, "b.md", "too")
    assert all_typed()[0]["b.md"] == "too", "who sees everything may see it"
    (docs / "here" / "here.md").rename(docs / "here" / "moved.md")
    library.index()
    assert all_typed()[1] == {"moved.md": "by anna", "b.md": "too"}
    correct(anna, "moved.md", None)
    assert all_typed()[:2] == [
        {"there.md": "a secret", "moved.md": "what the host thinks", "b.md": "too"},
        {"b.md": "too"},
    ]
    with other.documents.reading() as store:
        assert not store.connection.execute("SELECT 1 FROM corrections WHERE cell LIKE '%secret%'").fetchall()
    library.remove([docs / "there"], erase=True)
    library.close()
    assert not [path for path in (tmp_path / "lib").rglob("*") if path.is_file() and b"a secret" in path.read_bytes()]


def test_cells_of_a_copy_that_is_not_seen_are_not_told(library: Library, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    for folder in ("here", "there"):
        (docs / folder).mkdir()
        (docs / folder / f"{folder}.md").write_text((docs / "a.md").read_text())
    limits = Filters(within=("here/**",))
    library.index()
    library.extract(COLUMNS[:1], filters=Filters(within=("there/**",)))
    anna = library.seen_by(limits, person(limits))
    assert texts(anna.extract(COLUMNS[:1], ask=False)) == [[None]]
    library.extract(COLUMNS[:1], filters=Filters(within=("here/**",)))
    assert texts(anna.extract(COLUMNS[:1], ask=False)) == [["Acme Ltd"]], "of a document that she sees"


def test_without_history_cells_are_in_memory_alone(library: Library, tmp_path: Path) -> None:
    library.close()
    with Library(tmp_path / "lib", history=False, parts=library._parts) as quiet:
        asked = quiet.extract(COLUMNS)
        assert asked.asked > 0
        assert quiet.extract(COLUMNS, ask=False).rows == asked.rows
        assert quiet.extract(COLUMNS).asked == 0
        with pytest.raises(LocalRagError, match="history is off"):
            quiet.tables.correct_cell(asked.rows[0].document, asked.columns[0], Cell("stated", "x", "x", by="person"))
        with quiet.documents.reading() as store:
            assert store.value("SELECT count(*) FROM cells") == 0


def test_of_cells_in_memory_the_last_ones_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction_module, "_MOST_UNWRITTEN", 2)
    kept = UnwrittenCells()
    for key in "abc":
        kept.put(("a.md", "1"), {key: key}, ())
    assert kept.get(("a.md", "1"), ["a", "b", "c"]) == {"b": "b", "c": "c"}
    kept.put(("a.md", "1"), {"d": "d"}, ["c"])
    assert kept.get(("a.md", "1"), ["b", "c", "d"]) == {"b": "b", "d": "d"}
    assert kept.get(("b.md", "1"), ["b"]) == {}


def test_only_the_newest_version_where_that_is_wished(library: Library, tmp_path: Path) -> None:
    for year in (2023, 2024):
        text = "The customer is Acme Ltd and it is a customer of many years whom we have always known well. " * 5
        (tmp_path / "docs" / f"terms {year}.md").write_text(f"# Terms {year}\n\n{text}")
    library.index()
    names = [Path(row.path).name for row in library.extract(COLUMNS[:1], newest=True).rows]
    assert names == ["a.md", "b.md", "terms 2024.md"]
    newest = {Path(row.path).name: Path(row.newest).name for row in library.extract(COLUMNS[:1]).rows}
    assert newest["terms 2023.md"] == "terms 2024.md"


@pytest.mark.parametrize("suffix", [".xlsx", ".csv", ".jsonl"])
def test_a_table_is_written(library: Library, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"
    write_table(path, library.extract(COLUMNS))
    if suffix == ".jsonl":
        first = json.loads(path.read_text().splitlines()[0])
        assert first["document"] == "docs/a.md"
        assert first["cells"]["Fee"]["value"] == "12500 EUR"
        assert first["cells"]["Renews"]["value"] is False
        return
    if suffix == ".csv":
        rows = list(csv.DictReader(io.StringIO(path.read_text(), newline="")))
        assert rows[0]["Notice"] == "3 months"
        assert rows[1]["Notice"] == "60 days (unsure)"
        assert rows[0]["Notice: quotation"] == "The notice period is three months."
        return
    workbook = openpyxl.load_workbook(path)
    table, quotations = workbook.worksheets
    assert (table.freeze_panes, quotations.freeze_panes) == ("B2", "A2")
    cells = [cell.value for cell in table[2]]
    assert cells[2:] == ["Acme Ltd", "3 months", 12500, table["F2"].value, 0.085, False]
    assert table["F2"].value.date() == date(2027, 5, 31)
    assert "EUR" in table["E2"].number_format
    link = table["C2"].hyperlink.location or table["C2"].hyperlink.target
    assert link.lstrip("#").startswith("Quotations!")
    assert quotations["E2"].value == "The customer is Acme Ltd."


def test_nothing_in_a_table_is_a_formula(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# =1+1;=2\n\nThe customer is =HYPERLINK;=cmd.\n")
    generator = FakeGenerator(lambda _prompt: "=HYPERLINK;=cmd")
    with opened(tmp_path, generator) as library:
        library.index([tmp_path / "docs"])
        table = library.extract(["=Customer;=x: Who is the customer?"])
    write_table(tmp_path / "t.csv", table)
    for separator in ",;\t":
        for row in csv.reader(io.StringIO((tmp_path / "t.csv").read_text(), newline=""), delimiter=separator):
            assert not [cell for cell in row if cell.lstrip(' "').startswith(("=", "+", "-", "@"))]
    assert "=HYPERLINK" in csv_text((tmp_path / "t.csv").read_text())
    write_table(tmp_path / "t.xlsx", table)
    for sheet in openpyxl.load_workbook(tmp_path / "t.xlsx").worksheets:
        assert all(cell.data_type != "f" for row in sheet for cell in row)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("c.yaml", ["- name: Notice", "  question: How long?", "  type: duration", "- 'End: When? (date)'"]),
        ("c.yml", ["columns:", "  Notice:", "    question: How long?", "    type: duration", "  End: When? (date)"]),
        ("c.csv", ["Type;Name;Question", "duration;Notice;How long?", "date;End;When?"]),
    ],
)
def test_columns_are_read_from_files(name: str, lines: list[str]) -> None:
    columns = columns_in(name, "\n".join(lines).encode())
    assert [(one.name, one.question, one.type) for one in columns] == [
        ("Notice", "How long?", "duration"),
        ("End", "When?", "date"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("c.yaml", "a: [", "is no YAML"),
        ("c.yaml", "5", "no list of columns"),
        ("c.csv", "a,b\n1,2\n", "none of its columns is named `question`"),
        ("c.csv", "name,question,tpye\nEnd,When?,date\n", "did you mean 'type'?"),
        ("c.xlsx", "no workbook", "no XLSX file"),
        ("c.txt", "a", "does not end in"),
        ("c.yaml", "a: &a [" + ",".join(["x"] * 9) + "]\nb: &b [" + ",".join(["*a"] * 9) + "]\n", "column"),
    ],
)
def test_files_without_columns_are_refused(name: str, content: str, said: str) -> None:
    with pytest.raises(LocalRagError, match=said):
        columns_in(name, content.encode())


def test_the_command_writes_the_table_and_reports(library: Library, tmp_path: Path, run: Run) -> None:
    library.close()
    (tmp_path / "columns.yaml").write_text("\n".join(f"- '{column}'" for column in COLUMNS))

    def parts() -> Parts:
        return replace(EMBEDS_QUICKLY, open_engine=generating(FakeGenerator(answer)))

    (tmp_path / "columns.csv").write_text("name,question\nCustomer,Who?\n")
    common = ("--library", str(tmp_path / "lib"))
    result = run("extract", "columns.yaml", "--output", "t.csv", *common, parts=parts())
    assert result.exit_code == 0, result.output
    assert "2 documents, 6 columns: 9 stated, 1 unsure, 2 not stated. The table is in t.csv." in result.stdout
    assert "next `index`" not in result.stderr
    beside = run("extract", "columns.yaml", "--output", "docs/t.csv", *common, parts=parts())
    assert "docs/t.csv lies in docs, so the next `index` reads it as a document" in beside.stderr
    printed = run("extract", "--column", COLUMNS[0], "--in", "docs/a.md", *common, parts=parts())
    assert json.loads(printed.stdout)["cells"]["Customer"]["quotation"] == "The customer is Acme Ltd."
    wrong = {
        ("extract",): 2,
        ("extract", "columns.yaml", "--output", "t.txt"): 1,
        ("extract", "none.yaml"): 1,
        ("extract", "columns.csv", "--output", "columns.csv"): 1,
        ("extract", "columns.yaml", "--in", "nowhere"): 1,
    }
    for arguments, code in wrong.items():
        failed = run(*arguments, *common, parts=parts())
        assert failed.exit_code == code, arguments
        assert "Traceback" not in failed.output
    assert (tmp_path / "columns.csv").read_text().startswith("name,question")


def test_tables_of_a_person_are_forgotten_with_the_person_and_leave_nothing(library: Library) -> None:
    for person in ("ada", "bea", ""):
        columns = library.extract(["Zanzibar: Who is the customer? (name)"], ask=False).columns
        library.tables.saved(person).add(f"table of {person}", columns, Filters(), newest=False)
    library.history.forget("ada")
    assert [len(library.tables.saved(person).all()) for person in ("ada", "bea", "")] == [0, 1, 1]
    library.history.forget()
    assert [len(library.tables.saved(person).all()) for person in ("bea", "")] == [0, 0]
    with closing(Store(library.folder, write=True)):
        pass
    assert not [path for path in library.folder.glob("library.sqlite3*") if b"Zanzibar" in path.read_bytes()]


def test_a_workbook_for_others_does_not_tell_where_the_files_lie(library: Library, tmp_path: Path) -> None:
    table = library.extract(COLUMNS[:2])
    write_table(tmp_path / "own.xlsx", table)
    write_table(tmp_path / "sent.xlsx", table, library.documents.place_names())
    links = [_files_linked(tmp_path / name) for name in ("own.xlsx", "sent.xlsx")]
    assert links[0] == [f"file://{tmp_path}/docs/{name}.md" for name in ("a", "a", "b", "b")]
    assert links[1] == []


def _files_linked(path: Path) -> list[str]:
    cells = (cell for row in openpyxl.load_workbook(path)["Quotations"] for cell in row if cell.hyperlink)
    return [target for cell in cells if (target := cell.hyperlink.target or "").startswith("file:")]


def test_the_time_to_write_a_workbook_grows_with_its_rows(library: Library, tmp_path: Path) -> None:
    table = library.extract(COLUMNS[:2])
    began = time.process_time()
    write_table(tmp_path / "large.xlsx", replace(table, rows=table.rows * 1000))
    assert time.process_time() - began < 20, "looking for the last row at each row took minutes"


def test_a_long_answer_is_looked_for_in_time() -> None:
    began = time.process_time()
    assert longest_run("b " * 1000, " ".join(f"a{number}" for number in range(1000))) is None
    assert longest_run("The fee is EUR 5 a year.", "it says the fee is EUR 5") == (0, 16)
    assert time.process_time() - began < 1


def test_too_many_columns_are_not_read_one_by_one() -> None:
    began = time.process_time()
    with pytest.raises(LocalRagError, match="at most 100"):
        parse_columns(f"a{number}?" for number in range(10**9))
    assert time.process_time() - began < 1
