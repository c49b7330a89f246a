"""The example of docs/extract.md works as it stands there."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import openpyxl  # type: ignore[import-untyped]
import pytest

from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY, FakeGenerator, generating
from tests.support.indexed import index_texts

PAGE = Path(__file__).parents[2] / "docs" / "extract.md"
CONTRACT = (
    "# Contract\n\nThe customer is Acme Ltd. The notice period is three months. The annual fee is EUR 12,500.\n\n"
    "This contract is governed by the law of England.\n"
)
SAID = {"customer": "Acme Ltd", "notice": "three months", "fee": "EUR 12,500", "law": "England"}


def test_the_example_makes_a_workbook(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    (columns,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "columns.yaml").write_text(columns)
    index_texts(tmp_path, {"contracts/acme.md": CONTRACT, "other.md": "# Menu\n\nSoup is served at noon.\n"}, run)

    def reply(prompt: str) -> str:
        question = prompt.rpartition("Question: ")[2].lower()
        return next(value for word, value in SAID.items() if word in question)

    (line,) = re.findall(r"```sh\nlocal-rag (.*?)\n```", page)
    result = run(*shlex.split(line), parts=replace(EMBEDS_QUICKLY, open_engine=generating(FakeGenerator(reply))))
    assert result.exit_code == 0, result.output
    names, values = openpyxl.load_workbook(tmp_path / "contracts.xlsx").worksheets[0].iter_rows(values_only=True)
    assert dict(zip(names[2:], values[2:], strict=True)) == {
        "Customer": "Acme Ltd",
        "Notice period": "3 months",
        "Annual fee": 12500,
        "Law": "England",
    }
