"""`eval make`: canned drafts through the real checks and files; the tiny model for the drafting itself."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from local_rag.cli.main import cli
from local_rag.evaluation.dataset import load_dataset
from local_rag.evaluation.draft_questions import _choose_chunks, _draft, _read_documents, reason_to_drop
from local_rag.indexing.indexer import Progress
from local_rag.models.registry import resolve
from local_rag.records import Answer, Chunk, Document, InstalledModel, Passage

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


class FakeAnswerer:
    """Answer everything but questions about Dagny."""

    def __init__(self, model: InstalledModel) -> None:
        self.closed = False

    def answer(self, question: str, passages: Sequence[Passage]) -> Answer:
        answered = "dagny" not in question
        return Answer(question, "At seven. [1]", answered, citations=(), passages=tuple(passages))

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("When does the ferry Anna leave?", ""),
        ("The ferry leaves at seven.", "no question"),
        ("Why?", "no question"),
        ("What does this passage say about ferries?", "about the passage"),
        ("Does the ferry Anna leaves the harbour at seven every morning?", "copied"),
        ("when does the FERRY bodil leave?", "twice"),
    ],
)
def test_reason_to_drop(question: str, reason: str) -> None:
    assert reason_to_drop(question, LONG.format("Anna"), ["When does the ferry Bodil leave?"]) == reason


def test_make_writes_a_dataset_to_review(manuals: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def draft(
        chunks: Sequence[tuple[Document, Chunk]], model: InstalledModel, progress: Any
    ) -> Iterator[tuple[Document, Chunk, str]]:
        for document, chunk in chunks:
            name = document.path.stem
            yield document, chunk, "Who?" if name == "cilla" else f"At what time does {name} sail?"

    monkeypatch.setattr("local_rag.evaluation.draft_questions._draft", draft)
    monkeypatch.setattr("local_rag.evaluation.draft_questions.Answerer", FakeAnswerer)
    result = CliRunner().invoke(cli, ["eval", "make", "manuals", "--output", "mine", "--profile", "tiny"])
    assert result.exit_code == 0, result.output
    assert "2 questions in mine/questions.jsonl" in result.stdout
    assert "1 no question" in result.stdout
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

    again = CliRunner().invoke(cli, ["eval", "make", "manuals", "--output", "mine", "--profile", "tiny"])
    assert again.exit_code == 1
    assert "already holds questions" in again.stderr


def test_chunks_come_from_all_over_and_are_the_same_every_time(manuals: Path, embed_model: InstalledModel) -> None:
    documents = list(_read_documents([manuals], []))
    chosen = _choose_chunks(documents, embed_model, 3)
    assert chosen == _choose_chunks(documents[::-1], embed_model, 3)
    assert len({document.path for document, _ in chosen}) == 3
    assert len(_choose_chunks(documents, embed_model, 99)) == 4, "the short one is left out"


def test_nothing_to_ask_about(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("Too short.")
    arguments = ["eval", "make", str(tmp_path / "short.txt"), "--output", str(tmp_path / "out"), "--profile", "tiny"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 1
    assert "no passage long enough" in result.stderr


def test_the_tiny_model_drafts_one_line_a_chunk(manuals: Path, embed_model: InstalledModel) -> None:
    seen: list[Progress] = []
    chunks = _choose_chunks(list(_read_documents([manuals], [])), embed_model, 3)
    drafts = list(_draft(chunks, resolve("smollm2-135m-instruct", "answer"), seen.append))
    assert sorted(str(document.path) for document, _, _ in drafts) == sorted(str(doc.path) for doc, _ in chunks)
    assert all(question and "\n" not in question for _, _, question in drafts)
    assert [progress.done for progress in seen] == [0, 1, 2, 3]
