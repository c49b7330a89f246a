"""The example on the page of marks: the questions that it asks give what it shows."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.fakes import QUICK, FakeGenerator, generating

PAGE = Path(__file__).parents[2] / "docs" / "marks.md"
_FILE = re.compile(r"<!-- file: (\S+) -->\n```markdown\n(.*?)```", re.DOTALL)
_ASKED = re.compile(r"<!-- asked -->\n```sh\n(.*?)```", re.DOTALL)
_RUN = re.compile(r"<!-- run -->\n```console\n\$ local-rag ([^\n]*)\n(.*?)```", re.DOTALL)
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")


def _reply(prompt: str) -> str:
    return "Parents get 26 weeks of leave."


def _holds(prompt: str) -> bool:
    return "sabbatical" not in prompt


def test_the_example_gives_what_the_page_shows(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    generator = FakeGenerator(_reply, _holds, context_tokens=100_000)
    parts = replace(QUICK, open_engine=generating(generator))
    ((name, text),) = _FILE.findall(page)
    Path(name).write_text(text)
    (asked,) = _ASKED.findall(page)
    for command in asked.splitlines():
        result = run(*shlex.split(command)[1:], "--profile", "tiny", parts=parts)
        assert result.exit_code == 0, result.output
    commands = _RUN.findall(page)
    assert len(commands) == 3
    for command, shown in commands:
        result = run(*shlex.split(command), "--profile", "tiny", parts=parts)
        assert result.exit_code == 0, result.output
        assert _TIME.sub("TIME", result.stdout) == _TIME.sub("TIME", shown)
