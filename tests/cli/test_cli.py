"""The command line as a user types it, with fakes for the models."""

import itertools
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

from local_rag.answering.compose import NOT_SURE, REFUSAL
from local_rag.cli.main import COMMANDS, cli
from local_rag.cli.options import DefaultGroup
from local_rag.library import Parts
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY, QUICK, FakeGenerator, generating

ROOT = Path(__file__).parents[2]


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


def test_every_command_has_help(run: Run) -> None:
    for name in COMMANDS:
        result = run(name, "--help")
        assert result.exit_code == 0
        assert f"Usage: cli {name}" in result.output


def test_every_command_that_reports_something_does_so_in_json() -> None:
    without = {path for path, command in every_command(cli) if not isinstance(command, click.Group)}
    without -= {path for path, command in every_command(cli) if any("--json" in one.opts for one in command.params)}
    assert without == {("serve",), ("mcp",)}


def every_command(command: click.Command, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, DefaultGroup):  # whose help is that of the default
        yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from every_command(below, *path, name)


def test_the_help_of_every_command_has_an_example_that_fits_it(run: Run) -> None:
    commands = dict(every_command(cli))
    for path, command in commands.items():
        assert command.epilog, path
        example = command.epilog.splitlines()[-1]
        assert f"\n  {example}\n" in run(*path, "--help").output
        words = shlex.split(example.removeprefix("Example: local-rag "))
        named = max((name for name in commands if tuple(words[: len(name)]) == name), key=len)
        if not named:
            group = cli.get_command(click.Context(cli), words[0])
            assert isinstance(group, DefaultGroup)
            named = (words[0], group.default)
        options = {name for option in commands[named].params for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= options, path


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
    ("arguments", "quoted"),
    [
        ("ask What is the notice period", "question in quotation marks: 'What is the notice period'"),
        ("search notice period --top 3", "question in quotation marks: 'notice period'"),
        ("find crane reports", "question in quotation marks: 'crane reports'"),
        ("mark right What is it", "question in quotation marks: 'What is it'"),
        ("query SELECT 1", "statement in quotation marks: 'SELECT 1'"),
        ("index Kestrel Lane files", "name in quotation marks: 'Kestrel Lane files'"),
        ("index here Kestrel Lane files --json", "name in quotation marks: 'Kestrel Lane files'"),
        ("remove Kestrel Lane files", "name in quotation marks: 'Kestrel Lane files'"),
        ("diff here Kestrel Lane files", "name in quotation marks: 'Kestrel Lane files'"),
        ("index here there away", ""),
        ("status now", "Got more arguments than expected: now"),
        ("index here here", ""),
    ],
)
def test_words_that_lack_quotation_marks_are_shown_with_them(
    arguments: str, quoted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("Kestrel Lane files", "here", "here here"):
        Path(name).mkdir()
    result = run(*arguments.split())
    assert quoted in result.stderr
    assert (result.exit_code == 2) == bool(quoted)


@pytest.mark.parametrize(
    ("command", "message"),
    [("idnex", "'idnex'; did you mean 'index'?"), ("dance", "'dance'; see `local-rag --help`.")],
)
def test_a_mistyped_command_names_the_nearest_one(command: str, message: str, run: Run) -> None:
    result = run(command, "x")
    assert (result.exit_code, message in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "q"], "local-rag index"),
        (["ask", "q"], "local-rag index"),
        (["index"], "name a folder"),
        (["index", "nowhere"], "does not exist"),
        (["search", "x", "--library", "a b"], "index PATH --library '"),
        (["search", "x"], "index PATH`"),
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


@pytest.mark.parametrize("command", ["ask", "search", "find", "chat", "ask --questions asked.txt --output answers.csv"])
def test_a_library_without_documents_is_not_searched(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "asked.txt").write_text("Who leaves?\n")
    indexed = run("index", "empty", "--profile", "tiny")
    assert indexed.stdout.splitlines()[-1].startswith("Nothing was found to read; ")

    def load(_model: object) -> Any:
        raise AssertionError("a model was loaded for nothing")

    parts = replace(EMBEDS_QUICKLY, load_embedder=load, load_reader=load)
    result = run(*command.split(), *([] if " " in command or command == "chat" else ["Who leaves?"]), parts=parts)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "holds no documents; index some with `local-rag index PATH`." in result.stderr


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
    assert found["corrections"] == []


def test_search_says_what_was_searched_instead_of_a_mistyped_word(indexed: Path, run: Run) -> None:
    result = run("search", "the boat harbuor", "--top", "1")
    assert 'Searched for "harbour" instead of "harbuor".' in result.stderr
    assert result.stdout == run("search", "the boat harbour", "--top", "1").stdout
    found = json.loads(run("search", "the boat harbuor", "--json").stdout)
    assert found["question"] == "the boat harbuor"
    assert found["corrections"] == [{"typed": "harbuor", "searched": "harbour"}]


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


def replies(reply: str, *, right: bool = True) -> Parts:
    """Return fakes that reply with a text, and say whether it is right."""
    generator = FakeGenerator(lambda _prompt: reply, lambda _prompt: right)
    return replace(EMBEDS_QUICKLY, open_engine=generating(generator))


def test_ask_prints_the_answer_with_its_sources(indexed: Path, run: Run) -> None:
    result = run("ask", "When does the boat leave?", parts=replies("At seven."))
    assert result.exit_code == 0, result.output
    quoted = '      "The boat leaves the harbour at seven."'
    assert result.stdout == f"At seven. [1]\n\nSources:\n  [1] documents/boat.txt:1\n{quoted}\n"


def test_ask_quotes_the_documents_where_the_answer_is_doubtful(indexed: Path, run: Run) -> None:
    result = run("ask", "When does the boat leave?", parts=replies("At eight.", right=False))
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{NOT_SURE}\n- The boat leaves the harbour at seven. [1]\n")
    assert "Sources:\n  [1] documents/boat.txt:1\n" in result.stdout
    assert "Closest passages:" not in result.stdout
    assert "eight" not in result.output


def test_ask_prints_the_closest_passages_where_the_documents_do_not_answer(indexed: Path, run: Run) -> None:
    result = run("ask", "Do zebras sleep?", parts=replies("Invented.", right=False))
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(REFUSAL)
    assert "Closest:\n  documents/" in result.stdout
    assert "Sources:" not in result.stdout
    assert "Invented" not in result.stdout


@pytest.mark.parametrize(
    ("question", "right", "outcome", "quoted"),
    [
        ("When does the boat leave?", True, "answered", True),
        ("When does the boat leave?", False, "quoted", True),
        ("Do zebras sleep?", False, "refused", False),
    ],
)
def test_ask_json_tells_the_outcome_with_quotes_and_what_was_shown(
    indexed: Path, run: Run, question: str, right: bool, outcome: str, quoted: bool
) -> None:
    result = run("ask", question, "--json", parts=replies("At seven.", right=right))
    answer = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (answer["outcome"], answer["answered"]) == (outcome, outcome == "answered")
    assert answer["probability"] is None, "the fake has no calibration"
    assert bool(answer["quotes"]) == quoted
    for quote in answer["quotes"]:
        assert set(quote) == {"text", "citation"}
        (source,) = [one for one in answer["citations"] if one["number"] == quote["citation"]]
        assert quote["text"] in source["text"]
    assert [set(shown) for shown in answer["shown"]] == [{"citation", "text"}] * len(answer["read"])
    assert [shown["citation"] for shown in answer["shown"]] == [*range(1, len(answer["read"]) + 1)]


@pytest.mark.slow
def test_ask_with_the_tiny_model_answers_or_refuses(indexed: Path, run: Run) -> None:
    result = run("ask", "When does the boat leave?")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(REFUSAL) == ("Closest:" in result.stdout) != ("Sources:" in result.stdout)


def test_ask_json_tells_the_support_of_each_sentence(indexed: Path, run: Run) -> None:
    parts = replies("The boat leaves at seven with 99 people.")
    asked = ("ask", "When does the boat leave?", "--json", "--passages", "2")
    answer = json.loads(run(*asked, "--no-strict", parts=parts).stdout)
    assert answer["answer"] == "The boat leaves at seven with 99 people. [1]"
    assert len(answer["passages"]) == 2
    assert [citation["number"] for citation in answer["citations"]] == [1]
    keys = {"sentence", "supported", "missing", "citations"}
    assert [set(support) for support in answer["support"]] == [keys]
    assert [support["supported"] for support in answer["support"]] == [False]
    refused = json.loads(run("ask", "Do zebras sleep?", "--json", parts=replies("", right=False)).stdout)
    assert (refused["answered"], refused["answer"], refused["support"]) == (False, REFUSAL, [])


def test_ask_can_show_the_passages_that_it_read(indexed: Path, run: Run) -> None:
    arguments = ("ask", "When does the boat leave?", "--show-passages", "--passages", "1")
    shown = run(*arguments, parts=replies("At seven."))
    assert shown.stdout.startswith("[1] documents/boat.txt:1")


def test_ask_quotes_where_a_number_is_in_no_source(indexed: Path, run: Run) -> None:
    for said, outcome in (("The boat leaves with 99 people.", "quoted"), ("It leaves at seven. 99 ride.", "answered")):
        answer = json.loads(run("ask", "When does the boat leave?", "--json", parts=replies(said)).stdout)
        assert answer["outcome"] == outcome
        assert "99" not in answer["answer"]


def test_ask_anyway_gives_a_doubtful_answer(indexed: Path, run: Run) -> None:
    parts = replies("The boat leaves at seven.", right=False)
    quoted = run("ask", "When does the boat leave?", parts=parts)
    assert quoted.stdout.startswith("Not sure.")
    assert quoted.stderr.endswith("add --anyway.\n")
    answered = run("ask", "When does the boat leave?", "--anyway", parts=parts)
    assert answered.stdout.startswith("The boat leaves at seven. [1]\n")
    assert "--anyway" not in answered.stderr


def test_what_distinguishes_documents_is_told_once(documents: Path, run: Run) -> None:
    for name in ("Harrow", "Sable"):
        fee = "The fee for a mooring is paid at the office each year."
        (documents / f"{name}.md").write_text(f"# Form\n\nThe station is {name} Point.\n\n## Fee\n\n{fee}\n")
    shown = run("index", "documents", "--profile", "tiny", "--contexts", "--chunk-tokens", "16", parts=QUICK).stdout
    assert shown.count("of what distinguishes the document") == 1
    assert shown.count("by the model") == 1


def test_index_reports_before_it_writes_sentences_which_need_not_be_waited_for(documents: Path, run: Run) -> None:
    (documents / "damaged.docx").write_text("no archive")
    shown = run("index", "documents", "--profile", "tiny", "--contexts", parts=QUICK)
    assert shown.exit_code == 0
    ready = "Everything else is fine: 3 documents, 3 chunks"
    places = [shown.output.index(part) for part in ("Not read (1)", ready, "Now the context", "Writing contexts: ")]
    assert places == sorted(places)
    assert "writes the contexts of 3 chunks, until all are written; you can ask already" in shown.stderr
    assert shown.output.count(ready) == shown.output.count("Not read") == 1
    said = r"^Contexts: \d sentences? by the model.* 3 written in \d+ s, [\d.]+ a second; .* came from the KV cache\.$"
    assert re.search(said, shown.stdout, re.MULTILINE)
    again = run("index", "--contexts", parts=QUICK)
    assert "Now the context" not in again.output, "nothing is left to write"
    (documents / "new.txt").write_text("The boat carries mail.")
    assert "Now the context" not in run("index", parts=QUICK).output, "no time was set"
    assert len(json.loads(run("index", "--contexts", "--json", parts=QUICK).stdout)["skipped"]) == 1


@pytest.mark.parametrize("models", ["quick", "real"])
@pytest.mark.slow
def test_interrupted_index_keeps_contexts_and_says_how_to_go_on(documents: Path, models: str) -> None:
    for number in range(10):
        (documents / f"{number}.md").write_text(f"# Page {number}\n\n" + f"Text of page {number}. " * 40)
    (documents / "damaged.docx").write_text("no archive")
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.whole.crash.command", "index", "documents", "--profile=tiny", "--contexts"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=documents.parent,
        pass_fds=[writing],
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT),
            "CRASH_MODELS": models,
            "CRASH_SLOW": "0.1",
            "CRASH_JOURNAL": f"/dev/fd/{writing}",
            "LOCAL_RAG_CONTEXT_MINUTES": "9",
        },
    )
    os.close(writing)
    with os.fdopen(reading) as journal:
        stored = list(itertools.islice((line for line in journal if line.startswith("contexts ")), 3))
        assert len(stored) == 3, "it ended before that"
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Not read (1):\n  documents/damaged.docx" in said
    assert "1 file that is not read. Everything else is fine: 13 documents" in said
    assert re.search(r"^Contexts: .* written in .* s, [\d.]+ a second", said, re.MULTILINE)
    assert "Contexts still to be written: " in said
    assert "Everything finished is kept; run `local-rag index` again to continue." in errors
    assert "Traceback" not in errors
    assert written(documents.parent / ".local-rag" / "library.sqlite3") >= 3


def written(store: Path) -> int:
    with closing(sqlite3.connect(store)) as connection:
        return int(connection.execute("SELECT count(*) FROM contexts").fetchone()[0])


def test_an_unsupported_system_is_one_sentence() -> None:
    code = "import click, sys; sys.platform = 'win32'; from local_rag.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "Error: local-rag runs on Linux and macOS; on Windows use it in WSL.\n"
