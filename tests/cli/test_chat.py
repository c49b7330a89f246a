"""`local-rag chat` as a user types it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from local_rag.answering.compose import REFUSAL
from local_rag.cli.main import cli
from local_rag.cli.options import Invocation
from local_rag.model_records import PLAIN_FORM
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY, FakeGenerator, generating


@pytest.fixture
def generator() -> FakeGenerator:
    return FakeGenerator(lambda _prompt: "At seven.")


def chat(generator: FakeGenerator, *lines: str, arguments: tuple[str, ...] = ()) -> Result:
    parts = replace(EMBEDS_QUICKLY, open_engine=generating(generator))
    typed = "".join(f"{line}\n" for line in lines)
    return CliRunner().invoke(cli, ["chat", *arguments], input=typed, obj=Invocation(parts=parts))


def test_a_conversation(indexed: Path, generator: FakeGenerator) -> None:
    lines = (
        "When does the boat leave?",
        "",
        "Who is on the boat?",
        "thanks",
        "/sources",
        "/new",
        "When does it leave?",
    )
    result = chat(generator, *lines)
    assert result.exit_code == 0, result.output
    assert [line for line in result.stdout.splitlines() if line.startswith("At seven. [")] == [
        "At seven. [1]",
        "At seven. [1]",
        "At seven. [3]",
    ]
    assert result.stdout.count("] documents/boat.txt:1\n") >= 3
    assert "I answer questions from the documents" in result.stdout, "thanks ask nothing of the documents"
    assert "[1] documents/" in result.stdout
    assert result.stderr.count("/new starts a new subject") == 1
    prompts = [prompt for prompt in generator.prompts if PLAIN_FORM.request in prompt]
    assert "Question: When does the boat leave?\nQuestion: Who is on the boat?\n" in prompts[1]
    assert [prompt.count("Question:") for prompt in prompts] == [2, 4, 2], "each at its beginning and its end"


def test_filters_hold_for_all_questions_and_can_be_changed(indexed: Path, generator: FakeGenerator) -> None:
    lines = ("How much?", "/in norway/**", "How much?", "/in nowhere", "How much?", "/in", "How much?")
    result = chat(generator, *lines, arguments=("--type", "md", "--json"))
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    read = [{Path(passage["path"]).name for passage in answer["passages"]} for answer in answers]
    assert read == [{"leave.md", "ireland.md"}, {"leave.md"}, set(), {"leave.md", "ireland.md"}]
    assert answers[2]["answer"] == REFUSAL


def test_conversations_are_listed_saved_and_forgotten(indexed: Path, generator: FakeGenerator) -> None:
    chat(generator, "When does the boat leave?")
    result = chat(
        generator, "Who?", "/list", "/switch 1", "/save talk.md", "/save talk.md", "/forget 2", "/list", "/quit", "no"
    )
    assert result.exit_code == 0, result.output
    listed = [line.split()[0] for line in result.stdout.splitlines() if line.endswith("?")]
    assert listed == ["*", "1", "*"], "two conversations, the one that goes on marked, then the one that is left"
    text = Path("talk.md").read_text()
    assert text.startswith("# Conversation\n\n## When does the boat leave?\n\nAt seven. [1]\n\n> [1] ")
    assert "talk.md cannot be written (it already exists)" in result.stderr
    assert len(generator.prompts) == 4, "an answer and whether it is right for each of two questions"


def test_mistakes_are_told_and_the_conversation_goes_on(indexed: Path, generator: FakeGenerator) -> None:
    result = chat(
        generator, "/switch 9", "/frobnicate", "/save", "/save /nowhere/at/all.md", "/help", "/forget", "Who?"
    )
    assert result.exit_code == 0, result.output
    assert "There is no conversation 9" in result.stderr
    assert result.stderr.count("There is no command") == 1, "but /save without a file is one"
    assert "There is no command /frobnicate; these are the commands:\n/sources" in result.stderr
    assert "/nowhere/at/all.md cannot be written" in result.stderr
    assert "/switch NUMBER" in result.stdout
    assert "At seven. [3]\n\nSources:\n  [3] documents/boat.txt:1\n" in result.stdout


def test_what_is_erased_is_in_no_conversation(indexed: Path, generator: FakeGenerator, run: Run) -> None:
    chat(generator, "When does the boat leave?", arguments=("--in", "boat.txt"))
    assert "When does" in chat(generator, "/list").stdout
    assert run("remove", "documents/boat.txt", "--erase").exit_code == 0
    assert "When does" not in chat(generator, "/list").stdout


def test_conversations_of_before_the_history_was_turned_off_are_told(
    indexed: Path, generator: FakeGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat(generator, "When does the boat leave?")
    monkeypatch.setenv("LOCAL_RAG_HISTORY", "false")
    result = chat(generator, "/list")
    assert "`local-rag clean --history` deletes them" in result.stderr
    assert "When does" not in result.stdout


def test_without_a_library_there_is_nothing_to_talk_about(documents: Path, generator: FakeGenerator) -> None:
    result = chat(generator, "Who?")
    assert result.exit_code == 1
    assert "local-rag index" in result.stderr
    assert not Path(".local-rag").exists()
