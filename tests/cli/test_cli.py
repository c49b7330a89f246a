"""The command line as a user types it; `search` and `index` with a fake embedder, `ask` with the tiny model."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

import local_rag
from local_rag.answering.answerer import REFUSAL
from local_rag.cli.ask import remarks
from local_rag.cli.main import COMMANDS, cli
from local_rag.records import Answer, SentenceSupport
from tests.conftest import Run


@pytest.fixture
def indexed(documents: Path, run: Run) -> Path:
    result = run("index", "documents", "--profile", "tiny", "--context", "headings")
    assert result.exit_code == 0, result.output
    return documents


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from local_rag.cli.main import cli\n"
        "try: cli(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numpy', 'faiss', 'llama_cpp', 'pydantic', 'rich', 'requests'} & set(sys.modules)\n"
        "print(heavy, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "set()"
    assert "Answer a question" in done.stdout


def test_every_command_has_help_that_begins_like_its_summary(run: Run) -> None:
    for name, summary in COMMANDS.items():
        result = run(name, "--help")
        assert result.exit_code == 0
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert command.help
        assert f"Usage: cli {name}" in result.output
        first, words = command.help.splitlines()[0], summary.rstrip(".").split()
        assert words[0] == first.split()[0], f"{name}: {summary!r} is told otherwise by {first!r}"


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["search"],
        ["search", "q", "--top", "0"],
        ["search", "  "],
        ["ask", ""],
        ["ask", "q", "--passages", "none"],
        ["index", "--chunker", "magic"],
    ],
)
def test_wrong_usage_exits_2(arguments: list[str], run: Run) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Usage" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "q"], "local-rag index"),
        (["ask", "q"], "local-rag index"),
        (["index"], "name a folder"),
        (["index", "nowhere"], "does not exist"),
        (["index", ".", "--profile", "huge"], "choose one of starter"),
        (["index", ".", "--embed-model", "smollm2-135m-instruct"], "smollm2-135m-instruct"),
        (["index", ".", "--profile", "small", "--context", "headings"], "local-rag models pull"),
    ],
)
def test_expected_failures_are_one_sentence(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert len(result.stderr.strip().splitlines()) == 1
    assert not result.stdout


def test_index_reports(documents: Path, run: Run) -> None:
    (documents / "empty.md").write_text("")
    result = run("index", "documents", "--profile", "tiny", "--context", "headings")
    assert "3 added" in result.stdout
    assert "documents/empty.md: " in result.stdout
    again = json.loads(run("index", "--json").stdout)
    assert (again["unchanged"], again["published"]) == (3, False)


def test_search_prints_location_headings_and_ranks(indexed: Path, run: Run) -> None:
    result = run("search", "parental leave Norway weeks", "--top", "2", "--explain")
    assert result.exit_code == 0
    assert result.stdout.startswith("[1] documents/norway/leave.md:")
    assert "Leave in Norway" in result.stdout
    assert "dense #" in result.stdout
    assert "fused #1" in result.stdout
    assert "no cross-encoder" in result.stderr


def test_search_json(indexed: Path, run: Run) -> None:
    found = json.loads(run("search", "boat harbour", "--json", "--top", "1").stdout)
    assert found["reranked"] is False
    (passage,) = found["passages"]
    assert passage["location"] == "documents/boat.txt:1"
    assert set(passage["ranks"]) == {"dense", "keyword", "fused"}


def test_what_index_was_told_is_remembered(indexed: Path, run: Run) -> None:
    assert run("search", "boat").exit_code == 0


def test_terminal_escapes_in_documents_are_not_printed(indexed: Path, run: Run) -> None:
    (indexed / "evil.txt").write_text("Evil \x1b[31mred\x1b[0m and \u202ereversed text about zebras.")
    assert run("index").exit_code == 0
    result = run("search", "zebras", "--top", "1")
    assert "zebras" in result.stdout
    assert "\x1b" not in result.stdout
    assert "\u202e" not in result.stdout


def test_a_name_that_is_not_utf8_is_listed(indexed: Path, run: Run) -> None:
    Path(os.fsdecode(bytes(indexed) + b"/bad\xff.txt")).write_text("text")
    result = run("index")
    assert "name is not UTF-8" in result.stdout
    assert json.loads(run("index", "--json").stdout)["skipped"][0]["reason"] == "name is not UTF-8"


def test_ask_answers_or_refuses_with_sources(indexed: Path, run: Run) -> None:
    result = run("ask", "When does the boat leave?")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(REFUSAL) == ("Closest passages (" in result.stdout) != ("Sources:" in result.stdout)


def test_ask_json_and_passages(indexed: Path, run: Run) -> None:
    answer = json.loads(run("ask", "When does the boat leave?", "--json", "--passages", "2").stdout)
    assert answer["answered"] == (answer["answer"] != REFUSAL)
    assert len(answer["passages"]) == 2
    assert {citation["number"] for citation in answer["citations"]} <= {1, 2}
    keys = {"sentence", "supported", "missing", "score", "citations"}
    assert all(set(support) == keys for support in answer["support"])
    assert bool(answer["support"]) == answer["answered"]
    shown = run("ask", "When does the boat leave?", "--show-passages", "--passages", "1")
    assert "[1] documents/boat.txt:1" in shown.stdout


def test_ask_strict_says_only_what_the_sources_hold(indexed: Path, run: Run) -> None:
    answer = json.loads(run("ask", "When does the boat leave?", "--strict", "--json").stdout)
    assert answer["answered"] == (answer["answer"] != REFUSAL)
    assert all(support["supported"] or support["sentence"] not in answer["answer"] for support in answer["support"])


def test_a_changed_citation_and_an_unsupported_sentence_are_told() -> None:
    support = (SentenceSupport("It costs 26 euro [1].", False, ("26 euro",), None, (1,)),)
    answer = Answer("?", "", True, (), (), support=support, changed_citations=((2, 1),))
    assert list(remarks(answer, strict=False)) == [
        "A sentence now cites [1] instead of [2] because that source fits better.",
        "26 euro does not occur in the sources of: It costs 26 euro [1].",
    ]
    assert list(remarks(answer, strict=True))[1].startswith("Left out, since 26 euro does not occur in")


def test_interrupted_index_keeps_contexts_and_says_how_to_go_on(documents: Path) -> None:
    for number in range(30):
        (documents / f"{number}.md").write_text(f"# Page {number}\n\n" + f"Text of page {number}. " * 40)
    command = [sys.executable, "-c", "from local_rag.cli.main import main; main()"]
    process = subprocess.Popen(
        [*command, "index", "documents", "--profile", "tiny", "--context", "llm"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=documents.parent,
    )
    store = documents.parent / ".local-rag" / "library.sqlite3"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and written(store) < 3:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run `local-rag index` again" in errors
    assert "Traceback" not in errors
    assert time.monotonic() - sent < 20
    assert written(store) >= 3


def written(store: Path) -> int:
    if not store.exists():
        return 0
    connection = sqlite3.connect(store)
    try:
        return int(connection.execute("SELECT count(*) FROM contexts").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
    finally:
        connection.close()


def test_python_interface() -> None:
    assert local_rag.Library.__name__ == "Library"
    assert {name for name in local_rag.__all__ if getattr(local_rag, name)} == set(local_rag.__all__)
    with pytest.raises(AttributeError):
        _ = local_rag.nothing


def test_an_unsupported_system_is_one_sentence() -> None:
    code = "import click, sys; sys.platform = 'win32'; from local_rag.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "Error: local-rag runs on Linux and macOS; on Windows use it in WSL.\n"
