"""The example on the page of changes and briefs: the files that it shows give what it shows."""

import re
from pathlib import Path

import pytest

from tests.conftest import Run

PAGE = Path(__file__).parents[2] / "docs" / "changes.md"
_FILE = re.compile(r"<!-- file: (\S+) -->\n```markdown\n(.*?)```", re.DOTALL)
_RUN = re.compile(r"<!-- run -->\n```console\n\$ local-rag ([^\n]*)\n(.*?)```", re.DOTALL)


def test_the_example_gives_what_the_page_shows(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    files, commands = _FILE.findall(page), _RUN.findall(page)
    assert (len(files), len(commands)) == (2, 2)
    for name, text in files:
        (tmp_path / name).write_text(text)
    for command, shown in commands:
        result = run(*command.split())
        assert result.exit_code == 0, result.output
        assert result.stdout == shown
