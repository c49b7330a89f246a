"""`eval --answers`, `eval calibrate` and `eval history`: canned answers through the real search, judge and files."""

import json
from pathlib import Path
from typing import Any

import pytest

from local_rag import Library
from local_rag.errors import DatasetError
from local_rag.evaluation.answers import compare_answers, is_right
from local_rag.evaluation.calibrate import threshold_for
from local_rag.evaluation.dataset import Question, load_dataset
from local_rag.evaluation.runs import append, load, require_at_least
from local_rag.library import Parts
from local_rag.store.connect import remembered_settings
from tests.conftest import Run
from tests.fakes import FakeEmbedder, FakeGenerator, generating

SHIPS = ("Anna", "Bodil", "Cilla", "Dagny", "Embla", "Frida", "Gerda", "Hulda", "Idun", "Jorid", "Kari", "Liv")


def write_questions(folder: Path, *questions: dict[str, Any]) -> Path:
    """Write a dataset without documents."""
    folder.mkdir(exist_ok=True)
    (folder / "questions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in questions))
    return folder


def test_a_right_answer_says_one_of_each_group() -> None:
    question = Question("How much?", must_include=(("1,200", "twelve hundred"), ("kroner",)))
    assert is_right(question, "It costs 1 200 kroner a night [1].")
    assert is_right(question, "Twelve hundred Kroner.")
    assert not is_right(question, "It costs 1,200 euro.")
    assert not is_right(question, "It costs 11,200 kroner.")
    assert not is_right(question, "It costs 1,200.5 kroner."), "another number"
    assert not is_right(Question("q", must_include=(("5 million",),)), "41.5 million")


def test_an_answer_is_compared_with_a_whole_one_by_its_words_and_numbers() -> None:
    question = Question("When does the boat leave?", answer="The boat leaves the harbour at 7 o'clock every morning.")
    assert is_right(question, "It leaves the harbour every morning at 7 [2].")
    assert not is_right(question, "It leaves the harbour every morning at 9.")
    assert not is_right(question, "Bread is baked with rye flour.")


@pytest.fixture
def in_use(documents: Path, run: Run) -> Path:
    """A library in use, of three documents."""
    assert run("index", documents, "--context", "headings", "--profile", "tiny").exit_code == 0
    return documents


def answering() -> Parts:
    """Answer by what is asked; say that nothing holds the price of a camel."""

    def reply(prompt: str) -> str:
        return "In Norway 49 weeks [1]." if "Norway?" in prompt else "At nine [1]."

    generator = FakeGenerator(reply, lambda prompt: "camel" not in prompt)
    return Parts(load_embedder=FakeEmbedder, open_engine=generating(generator))


@pytest.mark.slow
def test_a_library_in_use_is_asked_and_stays_as_it_is(in_use: Path, run: Run) -> None:
    folder = write_questions(
        in_use.parent / "set",
        {"question": "How long is leave in Norway?", "golden": ["norway/leave.md:5"], "must_include": ["49"]},
        {"question": "When does the boat leave?", "golden": ["boat.txt"], "must_include": ["seven"]},
        {"question": "What is the price of a camel?", "golden": []},
        {"question": "And the other one?", "golden": [], "answerability": "underspecified"},
    )
    before = Path(".local-rag/library.sqlite3").read_bytes()
    result = run("eval", folder, "--answers", "--json", "out.json", parts=answering())
    assert result.exit_code == 0, result.output
    assert "refused although answerable" in result.stdout
    report = json.loads(Path("out.json").read_text())
    counts = report["answers"]
    assert {name: counts[name] for name in ("answerable", "right", "wrong", "refused_answerable")} == {
        "answerable": 2,
        "right": 1,
        "wrong": 1,
        "refused_answerable": 0,
    }
    assert (counts["unanswerable"], counts["refused"], counts["other"], counts["cited_right"]) == (1, 1, 1, 2)
    assert (counts["flagged"], counts["flagged_right"]) == (0, 0)
    assert counts["median_seconds"] > 0
    assert report["questions"] == 2
    assert report["stages"]["keyword"]["recall@1"] == 100.0
    assert Path(".local-rag/library.sqlite3").read_bytes() == before

    again = run(
        "eval", folder, "--answers", "--compare", "out.json", "--fail-below", "right=60", "--fail-below",
        "recall@5=100", parts=answering(),
    )  # fmt: skip
    assert again.exit_code == 1
    assert "Correct on 2 of 3 questions, on 2 in the other run (p = 1.000)" in again.stdout
    assert "Lower than wanted: right is 50, below 60." in again.stderr
    assert run("eval", folder, "--fail-below", "recall@5=90", parts=answering()).exit_code == 0

    runs = run("eval", "history", "--plot", "history.svg", parts=answering())
    assert runs.exit_code == 0, runs.output
    assert runs.stdout.count(" set ") == 3
    assert Path("history.svg").stat().st_size > 0
    assert [one["figures"].get("right") for one in load(Path(".local-rag"))] == [50.0, 50.0, None]


@pytest.mark.parametrize(
    ("golden", "reason"),
    [
        ("nowhere.md", "nowhere.md, golden in .*, matches no file in the library"),
        ("leave.md:0", "line range"),
        ("leave.md:9-3", "line range"),
        ({"document": "x", "start": 0, "end": 1}, "is not a file"),
    ],
)
def test_what_is_golden_must_be_in_the_library(in_use: Path, golden: object, reason: str, run: Run) -> None:
    folder = write_questions(in_use.parent / "set", {"question": "When?", "golden": [golden]})
    result = run("eval", folder)
    assert result.exit_code == 1
    with pytest.raises(DatasetError, match=reason):
        raise DatasetError(" ".join(result.stderr.split()))


def test_wrong_wishes_are_refused(in_use: Path, run: Run) -> None:
    folder = write_questions(in_use.parent / "set", {"question": "When?", "golden": ["boat.txt"]})
    assert run("eval", folder, "--fail-below", "recall").exit_code == 2
    assert run("eval", folder, "--context", "none").exit_code == 2
    unknown = run("eval", folder, "--fail-below", "beauty=1")
    assert (unknown.exit_code, "beauty was not measured" in unknown.stderr) == (1, True)
    assert run("eval", "history", "--library", "nowhere").stdout == ""


def test_a_history_cut_off_by_a_crash_can_still_be_read(tmp_path: Path) -> None:
    report = {"stages": {"fused": {"recall@5": 80.0}}} | dict.fromkeys(
        ("dataset", "part", "questions", "chunks", "profile", "context", "models"), "x"
    )
    append(tmp_path, report)
    with (tmp_path / "evaluations.jsonl").open("a") as file:
        file.write('{"time": "2026')
    assert [run["figures"] for run in load(tmp_path)] == [{"recall@5": 80.0}]
    assert require_at_least({"recall@5": 80.0}, {"recall@5": 80}) == []


def test_a_run_of_a_library_that_may_not_be_written_is_told_all_the_same(in_use: Path, run: Run) -> None:
    folder = write_questions(in_use.parent / "set", {"question": "When does the boat leave?", "golden": ["boat.txt"]})
    history = Path(".local-rag") / "evaluations.jsonl"
    history.mkdir()  # root may write everywhere else
    result = run("eval", folder, "--no-rerank")
    assert result.exit_code == 0, result.output
    assert "MRR@10" in result.stdout
    assert result.stderr.count("`eval history` will not show this run.") == 1
    assert not list(history.iterdir())


def test_runs_are_compared_over_the_questions_both_asked() -> None:
    def rows(*right: bool) -> list[dict[str, Any]]:
        return [
            {"question": str(number), "answerable": number % 2 == 0, "answered": number % 2 == 0, "right": one}
            for number, one in enumerate(right)
        ]

    found = compare_answers(rows(True, False, True, False), rows(False, False, False))
    assert (found["questions"], found["this"], found["other"]) == (3, 3.0, 1.0)
    assert compare_answers(rows(True), [])["questions"] == 0
    twice = [{**row, "question": "the same"} for row in rows(True, True, False)]
    other = [{**row, "question": "the same"} for row in rows(False, True, False)]
    assert compare_answers(twice, other)["questions"] == 3, "asked of several passages, each is paired with its own"


def test_a_threshold_lets_through_no_more_than_is_wanted() -> None:
    odds = [float(number) for number in range(20)]
    assert sum(one >= threshold_for(odds, 0.1) for one in odds) == 2
    assert sum(one >= threshold_for(odds, 0.01) for one in odds) == 0
    assert sum(one >= threshold_for([1.0] * 20, 0.1) for one in [1.0] * 20) == 0, "all alike"


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a document for each ship, of which no two say the same."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "fleet"
    folder.mkdir()
    for number, ship in enumerate(SHIPS):
        words = " ".join(f"{ship.lower()}{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")
        (folder / f"{ship}.md").write_text(f"# {ship}\n\nThe ferry {ship} sails on line {number}: {words}.\n")
    return folder


def test_calibrate_tells_what_is_held_from_what_is_not(fleet: Path, run: Run) -> None:
    def reply(prompt: str) -> str:
        ship = prompt.partition("The ferry ")[2].partition(" ")[0]
        return f"On which line does the {ship} of that fleet sail?"

    def holds(prompt: str) -> bool:
        ship = prompt.partition("does the ")[2].partition(" ")[0]
        return f"The ferry {ship} sails" in prompt

    parts = Parts(load_embedder=FakeEmbedder, open_engine=generating(FakeGenerator(reply, holds)))
    assert run("index", fleet, "--context", "none", "--profile", "tiny").exit_code == 0
    result = run("eval", "calibrate", "--questions", "10", "--json", parts=parts)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["questions"] >= 8
    assert (found["answered_with"], found["answered_without"]) == (found["questions"], 0)
    kept = remembered_settings(Path(".local-rag"))["answered_log_odds"]
    assert list(kept.values()) == [found["threshold"]]
    with Library(".local-rag", parts=parts) as library:
        assert library.ask("On which line does the Anna of that fleet sail?").threshold == found["threshold"]
    assert f"{found['threshold']:.2f}" in run("status").stdout


def test_calibrate_needs_enough_documents(in_use: Path, run: Run) -> None:
    parts = Parts(load_embedder=FakeEmbedder, open_engine=generating(FakeGenerator(lambda _prompt: "No question")))
    result = run("eval", "calibrate", parts=parts)
    assert result.exit_code == 1
    assert "Only 0 questions could be drafted" in result.stderr


def test_a_dataset_without_documents_names_what_is_wrong(tmp_path: Path) -> None:
    folder = write_questions(tmp_path, {"question": "When?", "golden": ["a.md:3-4"], "must_include": "seven"})
    with pytest.raises(DatasetError, match=r"questions.jsonl:1 is malformed \(must_include is a string, not a list\)"):
        load_dataset(folder)
    (tmp_path / "documents.jsonl").write_text("\n")
    with pytest.raises(DatasetError, match="contains no documents"):
        load_dataset(folder)
