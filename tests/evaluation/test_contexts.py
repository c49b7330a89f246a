"""`eval contexts`: what contexts gain in a library, and what its status says of that."""

import json
from pathlib import Path
from typing import Any

import pytest

from local_rag.library import Parts
from tests.conftest import Run
from tests.fakes import FakeEmbedder, FakeGenerator, generating, quick_vocabulary

FORM = """# Agreement

This agreement is made for the lifts at {site} in {year}.

## Visits

The contractor makes {visits} planned visits every year and tells the client of each of them five days before it comes.

## Keys

The keys of the machine room are kept {keys}, where they are signed for by whoever takes them out of there in the day.
"""
SITES = {
    "Harrow": ("four", "downstairs"),
    "Lindum": ("six", "upstairs"),
    "Pellow": ("nine", "outside"),
    "Quarry": ("ten", "indoors"),
    "Calder": ("two", "underneath"),
    "Wexcombe": ("three", "elsewhere"),
}
FLAGS = ("--profile", "tiny", "--chunk-tokens", "32")


@pytest.fixture
def forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "forms"
    folder.mkdir()
    for number, (site, (visits, keys)) in enumerate(SITES.items()):
        text = FORM.format(site=site, year=2010 + number, visits=visits, keys=keys)
        (folder / f"scan-{number}.md").write_text(text)
    return folder


def parts(generator: FakeGenerator) -> Parts:
    return Parts(load_embedder=FakeEmbedder, open_engine=generating(generator), open_vocabulary=quick_vocabulary)


SILENT = parts(FakeGenerator())


def write_questions(folder: Path, questions: list[dict[str, Any]]) -> Path:
    folder.mkdir()
    (folder / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in questions))
    return folder


def of_files(*, reviewed: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"question": f"Where are the keys at {site}?", "golden": [f"forms/scan-{number}.md:9-11"], "reviewed": reviewed}
        for number, site in enumerate(SITES)
    ]
    return [*found, {"question": "Which one did nobody review?", "golden": ["forms/scan-0.md"], "reviewed": False}]


def gained(run: Run, *arguments: object, using: Parts = SILENT) -> Any:
    result = run("eval", "contexts", *arguments, "--json", parts=using)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.slow
def test_what_contexts_gain_is_said_on_reviewed_questions_and_shown_by_status(forms: Path, run: Run) -> None:
    assert run("index", forms, *FLAGS).exit_code == 0
    found = gained(run, write_questions(forms.parent / "asked", of_files(reviewed=True)))
    assert (found["questions"], found["drafted"], found["unreviewed"]) == (6, False, False)
    assert (found["context"], found["contexts"]) == ("auto", found["chunks"])
    assert found["mrr_with"] >= found["mrr_without"] > 0
    assert json.loads(run("status", "--json").stdout)["contexts_gain"] == found
    shown = run("status").stdout
    assert "Gain by contexts: recall@5" in shown
    assert "6 reviewed questions" in shown
    assert "Up to date." in shown, "nothing of the library was changed by measuring"


@pytest.mark.slow
def test_questions_are_drafted_where_there_are_none_and_said_to_be(forms: Path, run: Run) -> None:
    assert run("index", forms, *FLAGS).exit_code == 0
    refused = run("eval", "contexts", parts=parts(FakeGenerator(lambda _prompt: "Where are the keys of the lifts?")))
    assert refused.exit_code == 1
    assert "Only 1 questions can be asked" in refused.stderr
    counted = iter(range(1000))
    generator = FakeGenerator(lambda _prompt: f"Where does the client keep keys number {next(counted)} today?")
    found = gained(run, "--questions", "5", using=parts(generator))
    assert (found["questions"], found["drafted"]) == (5, True)
    assert "5 drafted questions" in run("status").stdout


@pytest.mark.slow
def test_my_eval_is_asked_where_no_dataset_is_named(forms: Path, run: Run) -> None:
    assert run("index", forms, *FLAGS).exit_code == 0
    write_questions(forms.parent / "my-eval", of_files(reviewed=False))
    found = gained(run, "--questions", "5")
    assert (found["questions"], found["drafted"], found["unreviewed"]) == (5, False, True)
    assert "5 unreviewed questions" in run("status").stdout


@pytest.mark.slow
def test_the_questions_of_a_dataset_that_was_made_of_the_documents_are_asked(forms: Path, run: Run) -> None:
    assert run("index", forms, *FLAGS).exit_code == 0
    questions, documents = [], []
    for number, site in enumerate(SITES):
        name = f"forms/scan-{number}.md"
        text = Path(name).read_text()
        documents.append({"id": name, "text": text})
        start = text.index("The keys")
        span = {"document": name, "start": start, "end": start + 60}
        questions.append({"question": f"Where are the keys at {site}?", "golden": [span]})
    made = write_questions(forms.parent / "made", questions)
    (made / "documents.jsonl").write_text("".join(json.dumps(record) + "\n" for record in documents))
    found = gained(run, made)
    assert found["questions"] == len(SITES)
    assert found["recall_with"] > 0


def test_an_index_without_contexts_has_nothing_to_gain_by(forms: Path, run: Run) -> None:
    assert run("index", forms, "--profile", "tiny", "--context", "headings").exit_code == 0
    refused = run("eval", "contexts")
    assert refused.exit_code == 1
    assert "has no contexts to measure" in refused.stderr
