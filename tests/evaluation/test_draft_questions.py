"""`eval make`: canned drafts through the real checks and files; the tiny model for the drafting itself."""

import json
import re
from pathlib import Path

import pytest

from local_rag.evaluation.dataset import load_dataset
from local_rag.evaluation.draft_questions import choose_chunks, reason_to_drop
from local_rag.library import Parts
from local_rag.reading.isolate import IsolatedReader
from local_rag.reading.split import Splitting
from tests.conftest import Run
from tests.fakes import FakeGenerator, generating

LONG = (
    "The ferry {} leaves the harbour at seven every morning and carries twelve people across the sound to the islands."
)


@pytest.fixture
def manuals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "manuals"
    folder.mkdir()
    for name in ("anna", "bodil", "cilla", "dagny"):
        (folder / f"{name}.md").write_text(f"# Ferry {name}\n\n{LONG.format(name)}\n")
    (folder / "short.txt").write_text("Too short to ask about.")
    (folder / "picture.bin").write_bytes(b"\x00\x01")
    return folder


def reply(prompt: str) -> str:
    """Draft a question about the ferry of a passage, or answer one."""
    if "Question:" in prompt:
        return "At seven. [1]"
    name = re.findall(r"ferry (\w+) leaves", prompt)[0]
    return "Who?" if name == "cilla" else f"Question: At what time does {name} sail?\nBecause."


def drafting() -> FakeGenerator:
    """Return a generator that answers every question but those about Dagny."""
    return FakeGenerator(reply, lambda prompt: "does dagny sail" not in prompt)


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("When does the ferry Anna leave?", ""),
        ("The ferry leaves at seven.", "not a question"),
        ("Why?", "not a question"),
        ("What does this passage say about ferries?", "about the passage"),
        ("Does the ferry Anna leaves the harbour at seven every morning?", "copied"),
        ("when does the FERRY bodil leave?", "duplicate"),
    ],
)
def test_reason_to_drop(question: str, reason: str) -> None:
    assert reason_to_drop(question, LONG.format("Anna"), ["When does the ferry Bodil leave?"]) == reason


def test_make_writes_a_dataset_to_review(manuals: Path, run: Run) -> None:
    parts = Parts(open_engine=generating(drafting()))
    arguments = ("eval", "make", "manuals", "--output", "mine", "--profile", "tiny")
    result = run(*arguments, parts=parts)
    assert result.exit_code == 0, result.output
    assert "2 questions to review are in mine/questions.jsonl" in result.stdout
    assert "1 not a question" in result.stdout
    assert "1 not answered" in result.stdout
    assert "picture.bin" in result.stderr
    rows = [json.loads(line) for line in Path("mine/questions.jsonl").read_text().splitlines()]
    assert {row["reviewed"] for row in rows} == {False}
    dataset = load_dataset(Path("mine"))
    for question, row in zip(dataset.questions, rows, strict=True):
        (span,) = question.spans
        (document,) = (item for item in dataset.documents if item.id == span.document)
        assert document.document.text[span.start : span.end] == row["passage"]
        assert document.document.path.stem in row["question"]

    told = run(*arguments[:-3], "other", "--profile", "tiny", "--json", parts=parts)
    drafted = json.loads(told.stdout)
    assert (drafted["dataset"], drafted["kept"]) == ("other", 2)
    assert drafted["dropped"]["not a question"] == 1
    assert [Path(one["path"]).name for one in drafted["skipped"]] == ["picture.bin"]
    again = run(*arguments, parts=parts)
    assert again.exit_code == 1
    assert "already contains questions" in again.stderr


def test_chunks_come_from_all_over_and_are_the_same_every_time(manuals: Path, splitting: Splitting) -> None:
    with IsolatedReader(splitting) as reader:
        read = [reader.read(path) for path in sorted(manuals.glob("*.[mt]*"))]
    documents = [(one.document, one.chunks) for one in read]
    chosen = choose_chunks(documents, 3)
    assert chosen == choose_chunks(documents[::-1], 3)
    assert len({document.path for document, _ in chosen}) == 3
    assert len(choose_chunks(documents, 99)) == 4, "the short one is left out"


def test_nothing_to_ask_about(tmp_path: Path, run: Run) -> None:
    (tmp_path / "short.txt").write_text("Too short.")
    result = run("eval", "make", tmp_path / "short.txt", "--output", tmp_path / "out", "--profile", "tiny")
    assert result.exit_code == 1
    assert "no passage that is long enough" in result.stderr


@pytest.mark.slow
def test_the_tiny_model_drafts_a_question_a_chunk(manuals: Path, run: Run) -> None:
    result = run("eval", "make", "manuals", "--output", "mine", "--profile", "tiny", "--questions", "2")
    assert result.exit_code == 0, result.output
    rows = Path("mine/questions.jsonl").read_text().splitlines()
    counts = re.search(r"(\d+) questions to review are in .*Dropped: (.*)\.", result.stdout)
    assert counts is not None
    assert int(counts[1]) == len(rows)
    assert re.fullmatch(r"none|\d+ not answered", counts[2]), "each line is a question of its own"
    assert "Drafting: 0 of 4" in result.stderr
