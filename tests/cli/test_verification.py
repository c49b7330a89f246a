"""`local-rag verify` checks a text, a file or standard input, and fails where the documents say otherwise."""

import json
from pathlib import Path

import docx
import pytest
from click.testing import CliRunner

from local_rag.cli.main import cli
from local_rag.cli.options import Invocation
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY
from tests.support.indexed import index_texts

TEXTS = {
    "fees.md": "# Annual fees\n\nThe harbour fee of Port Lorcan is EUR 1,200 a year. Anna Berg collects it.\n",
    "rota.md": "# Boat rota\n\nThe boat to Torvneset leaves on Fridays. Whoever is late stays ashore.\n",
    "board/secret.md": "# Board\n\nThe crane will be sold to a museum in Bergen.\n",
}
TRUE, FALSE = "The boat to Torvneset leaves on Fridays.", "The harbour fee of Port Lorcan is EUR 1,300 a year."
MISSING = "Cheese from the moon needs an import licence."


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    monkeypatch.chdir(tmp_path)
    index_texts(tmp_path, TEXTS, run)
    return tmp_path


def test_the_exit_code_tells_whether_the_documents_say_so(here: Path, run: Run) -> None:
    right, wrong, missing = (run("verify", text, "--no-model") for text in (TRUE, FALSE, MISSING))
    assert (right.exit_code, wrong.exit_code, missing.exit_code) == (0, 1, 1)
    assert "1. supported" in right.stdout
    assert "fee of Port Lorcan is [EUR 1,300] a year." in wrong.stdout
    assert "documents/fees.md:3" in wrong.stdout
    assert run("verify", MISSING, "--no-model", "--allow-missing").exit_code == 0
    assert run("verify", FALSE, "--no-model", "--allow-missing").exit_code == 1


def test_files_and_standard_input_are_read(here: Path, run: Run) -> None:
    (here / "draft.txt").write_text(TRUE)
    written = docx.Document()
    written.add_paragraph(TRUE)
    written.add_paragraph(FALSE)
    written.save(str(here / "draft.docx"))
    told = json.loads(run("verify", "draft.docx", "--no-model", "--json").stdout)
    assert [one["verdict"] for one in told["statements"]] == ["supported", "contradicted"]
    assert run("verify", "draft.txt", "--no-model").exit_code == 0
    arguments = ["verify", "-", "--no-model", "--json"]
    typed = CliRunner().invoke(cli, arguments, input=FALSE, obj=Invocation(parts=EMBEDS_QUICKLY))
    assert json.loads(typed.stdout)["counts"]["contradicted"] == 1


@pytest.mark.parametrize("suffix", ["docx", "md", "json", "txt"])
def test_the_report_is_written_in_the_form_of_the_file(here: Path, run: Run, suffix: str) -> None:
    result = run("verify", f"{TRUE} {FALSE}", "--no-model", "--output", f"checked.{suffix}")
    assert result.stdout == "2 statements: 1 supported, 1 contradicted.\n"
    data = (here / f"checked.{suffix}").read_bytes()
    if suffix == "docx":
        (comment,) = docx.Document(str(here / "checked.docx")).comments
        assert "[EUR 1,200]" in comment.text
    else:
        assert b"EUR 1,200" in data


def test_mistakes_are_told_in_a_sentence(here: Path, run: Run) -> None:
    assert "There is no file drat.md" in run("verify", "drat.md").output
    assert "does not end in .md, .docx, .json, .txt" in run("verify", TRUE, "--output", "checked.pdf").output
    assert "The text is empty" in run("verify", " ").output


def test_filters_limit_what_counts(here: Path, run: Run) -> None:
    said = "The crane will be sold to a museum in Bergen."
    assert run("verify", said, "--no-model").exit_code == 0
    limited = run("verify", said, "--no-model", "--in", "fees.md", "--json")
    assert json.loads(limited.stdout)["statements"][0]["verdict"] == "not in these documents"
