"""`eval`: datasets, golden passages, report, comparison and plot, with a fake embedder; contexts by the tiny model."""

import json
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from local_rag import Library
from local_rag.document_records import Chunk
from local_rag.errors import DatasetError
from local_rag.evaluation.dataset import GoldenSpan, Question, load_dataset, write_dataset
from local_rag.evaluation.evaluate import Ranker, compare_reports, evaluate, load_report
from local_rag.library import Parts
from local_rag.progress_records import Progress
from local_rag.store.database import Store
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY, FakeEmbedder, FakeReader

BOATS = "The ferry leaves at seven. " * 30
TIDES = "High water comes twice a day. " * 30
DOCUMENTS: list[dict[str, Any]] = [
    {"id": "boats.md", "title": "Boats", "text": f"# Boats\n\n{BOATS}\n\n## Zeppelins\n\nA zeppelin leaves at noon."},
    {
        "id": "code",
        "title": "",
        "text": "def tide(): pass\n\ndef kite(): fly()\n",
        "chunks": [{"id": "code#0", "text": "def tide(): pass"}, {"id": "code#1", "start": 18, "end": 36}],
    },
    {"id": "tides", "title": "Tides", "text": TIDES},
]
ZEPPELIN = DOCUMENTS[0]["text"].index("A zeppelin")
QUESTIONS: list[dict[str, Any]] = [
    {"question": "kite fly", "golden": ["code#1"]},
    {"question": "zeppelin leaves noon", "golden": [{"document": "boats.md", "start": ZEPPELIN, "end": ZEPPELIN + 26}]},
    {"question": "high water twice", "golden": ["tides"], "reviewed": False},
    {"question": "price of a camel", "golden": []},
]


def ignore(_progress: Progress) -> None:
    pass


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_dataset(tmp_path / "set", DOCUMENTS, QUESTIONS)
    return tmp_path / "set"


def test_every_kind_of_golden_passage_is_found(folder: Path) -> None:
    library = Library(folder / "lib", parts=EMBEDS_QUICKLY, profile="tiny", context="headings")
    report = evaluate(load_dataset(folder), library, part="all", rerank=True, progress=ignore)
    library.close()
    assert (report["questions"], report["unanswerable"], report["unreviewed"]) == (3, 1, 1)
    assert (report["documents"], report["context"], report["profile"]) == (3, "headings", "tiny")
    assert set(report["stages"]) == {"dense", "keyword", "fused"}
    assert report["stages"]["keyword"]["recall@1"] == 100.0
    assert report["stages"]["fused"]["recall@150"] == 100.0
    assert [row["golden"] for row in report["per_question"]] == [1, 1, 1]
    assert set(report["seconds_per_question"]) == {"embed", "dense", "keyword", "fuse", "total"}
    low, high = report["intervals"]["dense"]["recall@5"]
    assert low <= report["stages"]["dense"]["recall@5"] <= high


def test_a_question_with_a_history_is_searched_as_a_follow_up(folder: Path) -> None:
    history = [
        {"speaker": "user", "text": "When does the zeppelin leave?"},
        {"speaker": "agent", "text": "At noon, unlike the kite."},
        {"speaker": "user", "text": "does the zeppelin leave at noon"},
    ]
    asked = [{"question": "and why does the?", "golden": ["boats.md"], "history": said} for said in (history, [])]
    write_dataset(folder, DOCUMENTS, asked)
    dataset = load_dataset(folder)
    assert [question.earlier for question in dataset.questions] == [
        ("When does the zeppelin leave?", "does the zeppelin leave at noon"),
        (),
    ]
    with Library(folder / "lib", parts=EMBEDS_QUICKLY, profile="tiny", context="headings") as library:
        report = evaluate(dataset, library, part="all", rerank=True, progress=ignore)
    assert [row["ranks"]["keyword"] for row in report["per_question"]] == [[1], []]


@pytest.mark.slow
def test_only_what_changed_is_embedded_again(folder: Path) -> None:
    def measure(context: str) -> int:
        with Library(folder / "lib", parts=EMBEDS_QUICKLY, profile="tiny", context=context) as library:
            return int(evaluate(load_dataset(folder), library, part="all", rerank=True, progress=ignore)["chunks"])

    chunks = measure("headings")
    indexed = FakeEmbedder.loaded
    measure("headings")
    assert FakeEmbedder.loaded == indexed + 1, "one embedder, for the questions"
    write_dataset(folder, DOCUMENTS[:2], [QUESTIONS[0]])
    assert measure("headings") < chunks
    measure("none")
    assert measure("none") < chunks


def test_reranked_where_there_is_a_reranker(folder: Path) -> None:
    longest_first = FakeReader(lambda _question, text: len(text))
    parts = Parts(load_embedder=FakeEmbedder, load_reader=lambda _model: longest_first)
    model = "minilm-l6-reader"
    with Library(folder / "lib", parts=parts, profile="tiny", context="none", rerank_model=model) as library:
        report = evaluate(load_dataset(folder), library, part="all", rerank=True, progress=ignore)
        assert "reranked" in report["stages"]
        assert "rerank" in report["seconds_per_question"]
        assert longest_first.scored > 0
        without = evaluate(load_dataset(folder), library, part="all", rerank=False, progress=ignore)
    assert "reranked" not in without["stages"]


def test_spans_go_to_the_chunks_that_hold_them(folder: Path) -> None:
    chunks = {
        number: ("tides", Chunk(number, start, start + 100, TIDES[start : start + 100]))
        for number, start in enumerate(range(0, 800, 100))
    }
    ranker = Ranker(
        load_dataset(folder), {**chunks, 90: ("code", Chunk(0, 0, 9, "")), 91: ("code", Chunk(1, 9, 20, ""))}
    )

    def golden(start: int, end: int) -> list[int]:
        rankings = {"one": sorted(chunks)}
        count, ranks = ranker.ranks(Question("q", spans=(GoldenSpan("tides", start, end),)), rankings)
        assert count == len(ranks["one"])
        return [rank - 1 for rank in ranks["one"]]

    assert golden(110, 150) == [1], "inside one chunk"
    assert golden(190, 240) == [2], "most of it in the second"
    assert golden(175, 225) == [1, 2], "half and half"
    assert golden(140, 570) == [1, 2, 3, 4, 5], "longer than a chunk: those at least half within"
    assert golden(160, 430) == [2, 3], "nor those that are less than half within"
    with pytest.raises(DatasetError, match="No chunk of tides overlaps the golden span 805 to 820"):
        golden(805, 820)


def test_documents_rank_by_their_best_chunk(folder: Path) -> None:
    chunks = {
        n: (document, Chunk(0, 0, 1, "")) for n, document in enumerate(["boats.md", "tides", "tides", "code", "code"])
    }
    ranker = Ranker(load_dataset(folder), chunks)
    question = Question("q", documents=("code", "tides"))
    assert ranker.ranks(question, {"dense": [2, 1, 0, 3]}) == (2, {"dense": [1, 3]})


def test_parts_depend_on_the_words_alone(folder: Path) -> None:
    counts = Counter(Question(f"question {number}").part for number in range(400))
    assert 150 < counts["choose"] < 250
    assert min(counts["report"], counts["locked"]) > 70
    assert counts.keys() == {"choose", "report", "locked"}
    assert Question("question 1", documents=("x",)).part == Question("question 1").part
    parts = [question.part for question in load_dataset(folder).questions if question.has_golden]
    with Library(folder / "lib", parts=EMBEDS_QUICKLY, profile="tiny", context="none") as library:
        for part in set(parts):
            report = evaluate(load_dataset(folder), library, part=part, rerank=True, progress=ignore)
            assert report["questions"] == parts.count(part)


def row(question: str, rank: int) -> dict[str, Any]:
    return {"question": question, "golden": 1, "ranks": {"fused": [rank]}}


def test_compare_keeps_the_same_question_about_two_passages_apart() -> None:
    run = {"per_question": [row("again", 1), row("again", 9)]}
    comparison = compare_reports(run, run)
    assert comparison["questions"] == 2
    at_five = comparison["stages"]["fused"]["recall@5"]
    assert (at_five["this"], at_five["other"]) == (50.0, 50.0)


def test_compare_pairs_questions_by_their_text() -> None:
    here = {"per_question": [row(str(number), 1) for number in range(10)]}
    there = {"per_question": [row(str(number), 1 + number % 2 * 7) for number in reversed(range(12))]}
    comparison = compare_reports(here, there)
    assert comparison["questions"] == 10
    at_five = comparison["stages"]["fused"]["recall@5"]
    assert (at_five["this"], at_five["other"], at_five["difference"]) == (100.0, 50.0, 50.0)
    assert at_five["p"] == pytest.approx(2 / 2**5, abs=0.01)
    assert comparison["stages"]["fused"]["recall@10"]["p"] == 1.0
    with pytest.raises(DatasetError, match="no question in common"):
        compare_reports(here, {"per_question": [row("other", 1)]})


def test_command_writes_json_plot_and_table(folder: Path, run: Run) -> None:
    first = run("eval", str(folder), "--profile", "tiny", "--context", "none", "--json", "none.json")
    assert first.exit_code == 0, first.output
    assert "3 questions" in first.stdout
    assert "nDCG@10" in first.stdout
    assert "1 unanswerable questions" in first.stdout
    assert (folder / ".local-rag" / "tiny" / "CURRENT").exists()
    again = run(
        "eval",
        str(folder),
        "--profile",
        "tiny",
        "--context",
        "headings",
        "--compare",
        "none.json",
        "--json",
        "-",
        "--plot",
        "p.png",
    )
    assert again.exit_code == 0, again.output
    report = json.loads(again.stdout)
    difference = report["comparison"]["stages"]["fused"]["recall@5"]
    assert difference["this"] - difference["other"] == pytest.approx(difference["difference"])
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")
    assert load_report(Path("none.json"))["context"] == "none"
    table = run("eval", str(folder), "--profile", "tiny", "--context", "headings", "--compare", "none.json")
    assert "Difference from none.json" in table.stdout


@pytest.mark.parametrize(
    ("documents", "questions", "message"),
    [
        ([{"id": "a", "text": "x"}, {"id": "a", "text": "y"}], [], "uses the id a twice"),
        ([{"id": "a"}], [], r"documents.jsonl:1 has no 'text'"),
        ([{"id": "a", "text": "x", "kind": "poem"}], [], "'poem' is not one of"),
        ([{"id": "a", "text": "x", "chunks": [{"id": "c", "text": "z"}]}], [], "the chunk c is not part of the text"),
        ([{"id": "a", "text": "x"}], [{"question": "q"}], r"questions.jsonl:1 has no 'golden'"),
        ([{"id": "a", "text": "x"}], [{"question": "q", "golden": ["b"]}], "golden id b"),
        ([{"id": "a", "text": "x"}], [{"question": " ", "golden": []}], "the question is empty"),
        (
            [{"id": "a", "text": "x"}],
            [{"question": "q", "golden": [], "history": [{"speaker": "god", "text": "hm"}]}],
            "not a text by user or agent",
        ),
        (
            [{"id": "a", "text": "x"}],
            [{"question": "q", "golden": [{"document": "a", "start": 0, "end": 2}]}],
            "not within a document",
        ),
        (
            [{"id": "a", "text": "x", "chunks": [{"id": "c", "text": "x"}]}],
            [{"question": "q", "golden": ["a", "c"]}],
            "cannot be mixed",
        ),
    ],
)
def test_a_malformed_dataset_is_named(
    documents: list[dict[str, Any]], questions: list[dict[str, Any]], message: str, tmp_path: Path
) -> None:
    write_dataset(tmp_path, documents, questions)
    with pytest.raises(DatasetError, match=message):
        load_dataset(tmp_path)


def test_expected_failures_are_one_sentence(folder: Path, run: Run, tmp_path: Path) -> None:
    for arguments, sentence in [
        (["nowhere", "--profile", "tiny"], "name a folder with documents.jsonl"),
        ([str(folder), "--profile", "nobody"], "Unknown profile 'nobody'"),
        ([str(folder), "--compare", "missing.json"], "missing.json is not a report"),
    ]:
        result = run("eval", *arguments)
        assert result.exit_code == 1
        assert sentence in result.stderr
    write_dataset(tmp_path / "empty", DOCUMENTS, [QUESTIONS[3]])
    assert "contains no answerable question" in run("eval", str(tmp_path / "empty"), "--profile", "tiny").stderr
    assert run("eval").exit_code == 2
    assert "DATASET" in run("eval", "--help").stdout


def stored_kinds(folder: Path) -> int:
    """Count the contexts that were generated and not dropped."""
    with closing(Store(folder)) as store:
        return sum(bool(chunk.sentence) for chunk in store.chunks())


@pytest.mark.slow
def test_generated_contexts_survive_a_stop(folder: Path) -> None:
    """With the tiny model: stopped after the first context, the second run writes only the others."""
    write_dataset(
        folder, [DOCUMENTS[1], {"id": "short", "title": "Kites", "text": "Kites fly on Sundays."}], QUESTIONS[:1]
    )
    written = 0

    def stop(progress: Progress) -> None:
        if progress.stage == "contextualize" and progress.done == 1:
            raise KeyboardInterrupt

    def count(progress: Progress) -> None:
        nonlocal written
        written += progress.stage == "contextualize" and progress.done > 0

    dataset = load_dataset(folder)
    with (
        Library(folder / "lib", parts=EMBEDS_QUICKLY, profile="tiny", context_minutes=9) as library,
        pytest.raises(KeyboardInterrupt),
    ):
        evaluate(dataset, library, part="all", rerank=True, progress=stop)
    with Library(folder / "lib", parts=EMBEDS_QUICKLY, profile="tiny", context_minutes=9) as library:
        report = evaluate(dataset, library, part="all", rerank=True, progress=count)
    assert written == 2
    assert (report["chunks"], report["context"]) == (3, "auto")
    assert report["generated_contexts"] == stored_kinds(folder / "lib")


def test_a_published_question_may_name_a_document_that_is_missing(tmp_path: Path) -> None:
    asked = {"question": "q", "golden": ["a", "b"], "answerability": "answerable"}
    write_dataset(tmp_path, [{"id": "a", "text": "x"}], [asked])
    (question,) = load_dataset(tmp_path).questions
    assert (question.documents, question.answerability) == (("a",), "answerable")


def test_what_serves_to_judge_answers_is_read(tmp_path: Path) -> None:
    pairs = [["Norway", ["19", "nineteen"]], ["Ireland", "9"]]
    asked = {"question": "q", "golden": ["a"], "must_include": ["19", ["9", "nine"]], "must_not": ["4"], "pairs": pairs}
    write_dataset(tmp_path, [{"id": "a", "text": "x"}], [asked])
    (question,) = load_dataset(tmp_path).questions
    assert (question.must_include, question.must_not) == ((("19",), ("9", "nine")), ("4",))
    assert question.pairs == ((("Norway",), ("19", "nineteen")), (("Ireland",), ("9",)))
    for field, value in (("must_not", "4"), ("must_not", [" "]), ("pairs", [["Norway"]]), ("must_include", [[]])):
        write_dataset(tmp_path, [{"id": "a", "text": "x"}], [asked | {field: value}])
        with pytest.raises(DatasetError, match=r"questions.jsonl:1 is malformed"):
            load_dataset(tmp_path)
