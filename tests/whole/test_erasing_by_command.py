"""What the commands keep beside the text of a document goes with it: the bytes of all files are read."""

from dataclasses import replace
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.asking import Filters
from local_rag.extraction.cells import Cell
from local_rag.extraction.columns import parse_columns
from local_rag.library import Parts
from tests.conftest import Run
from tests.fakes import QUICK, FakeGenerator, generating
from tests.whole.test_erasing import held

TEXTS = {
    "kept.md": "# Harbour\n\nThe customer is Acme Ltd. The boat leaves at eight.\n",
    "kept.csv": "City,Fee EUR\nOslo,100\nBergen,250\n",
    "quartzfile.md": "# Agreement\n\nThe customer is Quartzword GmbH. The keeper is Obsidian Jones.\n",
    "quartzfile 2.md": "# Agreement\n\nThe customer is Quartzword AG. The keeper is Obsidian Jones.\n",
    "quartzsheet.csv": "Quartzcolumn,Salary EUR\nObsidian,91274185\nBasaltica,81286347\n",
}
WORDS = ("quartz", "obsidian", "basaltica", "91274185", "172560532", "172,560,532", "feldspar", "zanzibarkeeper")
QUESTIONS = (
    "Who is the customer in the quartz agreement?",
    "What is the total salary in EUR?",
    "Who is the Zanzibarkeeper of Quartzword?",
)


def _reply(prompt: str) -> str:
    asked = prompt.rpartition("Question: ")[2]
    return "Obsidian Jones is the keeper." if "eeper" in asked else "The customer is Quartzword GmbH."


PARTS: Parts = replace(QUICK, open_engine=generating(FakeGenerator(_reply, context_tokens=100_000)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """A library in which every command has kept what it keeps of the documents that are to be erased."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    Path("temporary").mkdir()
    Path("documents").mkdir()
    for name, text in TEXTS.items():
        Path("documents", name).write_text(text)

    def done(*arguments: str) -> None:
        result = run(*arguments, parts=PARTS)
        assert result.exit_code == 0, (arguments, result.output)

    done("index", "documents", "--profile", "tiny", "--context", "headings")
    done(
        "extract", "--column", "Customer: Who is the customer? (name)", "--column", "Keeper: Who is the keeper? (text)"
    )
    for question in QUESTIONS:
        done("ask", question)
    for question, verdict in zip(QUESTIONS, ("right", "wrong", "wrong"), strict=True):
        done("mark", verdict, question)
    Path("questions.csv").write_text("question\n" + "\n".join(QUESTIONS) + "\n")
    done("ask", "--questions", "questions.csv", "--output", "answers.csv")
    done("query", "SELECT sum([Salary EUR]) FROM quartzsheet")
    done("tables")
    done("gaps")
    done("diff", "quartzfile.md", "quartzfile 2.md")
    done("brief", "documents/quartzfile.md")
    with Library(parts=PARTS) as library:
        for name, question in (("Kept", "Customer: Who is the customer?"), ("A", "Keeper: Where is Basaltica's?")):
            library.tables.saved().add(name, parse_columns([f"{question} (text)"]), Filters(), newest=False)
        table = library.extract(["Customer: Who is the customer? (name)"])
        for row in table.rows:
            if "quartz" in row.path:
                cell = Cell("stated", "Feldspar", "Feldspar", by="person")
                library.tables.correct_cell(row.document, table.columns[0], cell)
    return tmp_path / ".local-rag"


def test_nothing_of_erased_documents_is_left_in_any_file(folder: Path, run: Run) -> None:
    assert "library.sqlite3" in held(folder, *WORDS)
    assert {"history.sqlite3", "questions/questions.jsonl"} <= {*held(folder, "customer in the quartz agreement")}
    gone = [str(Path("documents", name)) for name in TEXTS if name.startswith("quartz")]
    result = run("remove", *gone, "--erase", parts=PARTS)
    assert result.exit_code == 0, result.output
    assert held(folder, *WORDS) == []
    assert [*held(folder.parent / "temporary", *WORDS), *held(folder.parent / "cache", *WORDS)] == []
    assert "library.sqlite3" in held(folder, "acme"), "the others are still there"
    assert run("query", "SELECT sum([Fee EUR]) FROM kept", "--csv", parts=PARTS).output.split() == [
        "sum([Fee",
        "EUR])",
        "350",
    ]
    with Library(parts=PARTS) as library:
        assert [one.name for one in library.tables.saved().all()] == ["Kept"], (
            "the other one has a word of what is erased"
        )
    for command in ("tables", "gaps", "status", "documents"):
        assert "quartz" not in run(command, parts=PARTS).output.lower()
