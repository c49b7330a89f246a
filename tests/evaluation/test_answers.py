"""`eval --answers`, `--facts`, `calibrate` and `history`: canned answers through the real search, judge and files."""

import json
from pathlib import Path
from typing import Any

import pytest

from local_rag import Library
from local_rag.answer_records import Answer, Citation, Outcome, Quote, SentenceSupport, Shown, VersionValue
from local_rag.display import version_lines
from local_rag.errors import DatasetError
from local_rag.evaluation.answer_figures import compare_answers, judge, risk_coverage, summarize_answers
from local_rag.evaluation.calibrate import threshold_for
from local_rag.evaluation.dataset import Question, load_dataset
from local_rag.evaluation.run_history import append, load, require_at_least
from local_rag.library import Parts
from local_rag.store.connect import remembered_settings
from tests.conftest import Run
from tests.fakes import FakeEmbedder, FakeGenerator, generating, passage

SHIPS = ("Anna", "Bodil", "Cilla", "Dagny", "Embla", "Frida", "Gerda", "Hulda", "Idun", "Jorid", "Kari", "Liv")


def write_questions(folder: Path, *questions: dict[str, Any]) -> Path:
    """Write a dataset without documents."""
    folder.mkdir(exist_ok=True)
    (folder / "questions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in questions))
    return folder


@pytest.fixture
def in_use(documents: Path, run: Run) -> Path:
    """A library in use, of three documents."""
    assert run("index", documents, "--context", "headings", "--profile", "tiny").exit_code == 0
    return documents


def answering() -> Parts:
    """Answer by what is asked; say that nothing holds the price of a camel."""

    def reply(prompt: str) -> str:
        return "Parents get 49 weeks." if "Norway?" in prompt else "The boat leaves the harbour."

    generator = FakeGenerator(reply, lambda prompt: "camel" not in prompt)
    return Parts(load_embedder=FakeEmbedder, open_engine=generating(generator))


@pytest.mark.slow
def test_a_library_in_use_is_asked_and_stays_as_it_is(in_use: Path, run: Run) -> None:
    folder = write_questions(
        in_use.parent / "set",
        {"question": "How long is leave in Norway?", "golden": ["norway/leave.md:5"], "must_include": ["49"]},
        {"question": "What does the boat do?", "golden": ["boat.txt"], "must_include": ["seven"]},
        {"question": "What is the price of a camel?", "golden": []},
        {"question": "And the other one?", "golden": [], "answerability": "underspecified"},
    )
    before = Path(".local-rag/library.sqlite3").read_bytes()
    result = run("eval", folder, "--answers", "--json", "out.json", parts=answering())
    assert result.exit_code == 0, result.output
    assert "refused although answerable" in result.stdout
    report = json.loads(Path("out.json").read_text())
    counts = report["answers"]
    assert {name: counts[name] for name in ("answerable", "right", "wrong", "off_the_point", "quoted")} == {
        "answerable": 2,
        "right": 1,
        "wrong": 1,
        "off_the_point": 1,
        "quoted": 0,
    }
    assert (counts["unanswerable"], counts["stated_unanswerable"], counts["other"], counts["cited_right"]) == (
        1,
        0,
        1,
        2,
    )
    assert (counts["flagged"], counts["flagged_right"], counts["facts_shown"]) == (0, 0, 2)
    assert counts["intervals"]["right"] == pytest.approx((9.5, 90.5), abs=0.1)
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


@pytest.mark.slow
def test_what_is_shown_is_measured_without_a_language_model(in_use: Path, run: Run) -> None:
    folder = write_questions(
        in_use.parent / "set",
        {"question": "How long is leave in Norway?", "golden": ["norway/leave.md:5"], "must_include": ["49"]},
        {"question": "When does the boat leave?", "golden": ["boat.txt"], "must_include": ["seven", "camel"]},
        {"question": "Who knows?", "golden": ["boat.txt"], "answer": "Nobody"},
        {"question": "What is the price of a camel?", "golden": [], "must_include": ["seven"]},
    )

    def open_engine(*_arguments: object, **_options: object) -> Any:
        raise AssertionError("no model is needed")

    parts = Parts(load_embedder=FakeEmbedder, open_engine=open_engine)
    result = run("eval", folder, "--facts", "--no-rerank", "--json", "out.json", parts=parts)
    assert result.exit_code == 0, result.output
    report = json.loads(Path("out.json").read_text())
    assert {name: report["facts"][name] for name in ("questions", "shown")} == {"questions": 2, "shown": 1}
    assert 20 < report["facts"]["median_tokens"] < 700
    assert [row["shown"] for row in report["per_fact"]] == [True, False]
    assert "shown to the model for 1 of 2 questions" in " ".join(result.stdout.split())


def judged(outcome: Outcome, text: str, *, answerable: bool = True, **fields: Any) -> dict[str, Any]:
    """Return the row of a question to which the right answer is 49 weeks for all parents."""
    question = Question(
        "How long is leave?",
        documents=("leave.md",),
        must_include=(("49",), ("parents",)),
        answer="49 weeks for all parents",
        answerability="answerable" if answerable else "unanswerable",
    )
    return judge(question, {"leave.md"}, Answer(question.text, text, outcome, **fields), 1.5)


def test_what_other_versions_say_is_no_part_of_an_answer() -> None:
    older = (VersionValue("2022-01-01", "leave 2022.md", "Parents get 49 weeks.", 2),)
    [line] = version_lines(older)
    assert judged("answered", f"Parents get 49 weeks.\n\n{line}", versions=older)["right"]
    assert not judged("answered", f"Parents get 26 weeks.\n\n{line}", versions=older)["right"]


EACH = [
    judged("answered", "Parents get 49 weeks.", tokens=100, shown=(Shown(1, "Parents get 49 weeks."),)),
    judged("answered", "49 weeks.", tokens=300),
    judged("answered", "26 weeks.", support=(SentenceSupport("26 weeks.", False, ("26",), (1,)),)),
    judged("answered", "Ask somebody."),
    judged("quoted", "Not sure.", quotes=(Quote("Parents get 49 weeks.", 1), Quote("Other.", 2))),
    judged("quoted", "Not sure. This is said: 49 weeks for parents.", quotes=(Quote("Other.", 1),)),
    judged("refused", "49 weeks for parents."),
    judged("answered", "49 weeks for parents.", answerable=False),
    judged("quoted", "Not sure.", answerable=False),
    judged("refused", "No.", answerable=False),
    judged("refused", "No.", answerable=False),
]


def test_each_question_is_counted_once() -> None:
    counts = summarize_answers(EACH, len(EACH) + 3)
    named = ("right", "wrong", "quoted", "refused_answerable", "quoted_right", "facts_shown")
    assert [counts[name] for name in named] == [1, 3, 2, 1, 1, 1]
    assert counts["answerable"] == 7
    assert counts["answerable"] == sum(counts[name] for name in named[:4])
    assert [counts[name] for name in ("incomplete", "other_value", "off_the_point")] == [1, 1, 1]
    assert [counts[name] for name in ("refused", "quoted_unanswerable", "stated_unanswerable")] == [2, 1, 1]
    assert (counts["unanswerable"], counts["other"]) == (4, 3)
    assert (counts["flagged"], counts["flagged_right"], counts["flagged_wrong"]) == (1, 0, 1)
    assert (counts["median_seconds"], counts["median_tokens"]) == (1.5, 0)
    low, high = counts["intervals"]["right_or_quoted_right"]
    assert low < 100 * 2 / 7 < high
    assert set(counts["intervals"]) >= {"right", "wrong", "refused", "facts_shown", "stated_unanswerable"}


def test_nothing_asked_is_counted_too() -> None:
    counts = summarize_answers([], 2)
    assert (counts["answerable"], counts["other"], counts["intervals"]) == (0, 2, {})


def test_a_golden_document_may_be_cited_and_read() -> None:
    cited = Citation(1, passage(path="/home/leave.md"))
    row = judged("answered", "49 weeks.", citations=(cited,), read=(cited.passage,))
    assert (row["cited_right"], row["read_documents"], row["golden_documents"]) == (True, 1, 1)
    assert not judged("answered", "49 weeks.", citations=(Citation(1, passage(path="sickleave.md")),))["cited_right"]


def test_the_risk_rises_with_the_questions_answered() -> None:
    rows = [
        {"answered": True, "probability": 0.9, "right": True},
        {"answered": False, "probability": 0.8, "right": False},
    ]
    rows += [
        {"answered": True, "probability": 0.5, "right": False},
        {"answered": True, "probability": 0.7, "right": True},
    ]
    assert risk_coverage(rows) == [(0.25, 0), (0.5, 0), (0.75, 1 / 3)]
    assert risk_coverage([{"answered": True, "probability": None, "right": True}]) == [], "not calibrated"


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
    odds = [number / 20 for number in range(20)]
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
        words = " ".join(f"{ship.lower()}{letter}" for letter in "abcdefghijkl")
        (folder / f"{ship}.md").write_text(f"# {ship}\n\nThe ferry {ship} sails on line {number}: {words}.\n")
    return folder


def test_calibrate_tells_what_is_held_from_what_is_not(fleet: Path, run: Run) -> None:
    def reply(prompt: str) -> str:
        asked = prompt.partition("Question: On which line does the ")[2] or prompt.partition("The ferry ")[2]
        ship = asked.partition(" ")[0]
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
    (kept,) = remembered_settings(Path(".local-rag"))["calibrations"].values()
    assert kept["answer_from"] == found["threshold"]
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
