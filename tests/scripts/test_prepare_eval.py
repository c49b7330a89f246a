"""scripts/benchmarks/prepare_eval.py on small files of the three published forms."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from local_rag.evaluation.dataset import GoldenSpan, load_dataset
from scripts.benchmarks.prepare_eval import wanted_of

COMMAND = [sys.executable, "-m", "scripts.benchmarks", "prepare_eval"]
CHECKOUT = Path(__file__).parents[2]


def prepare(source: Path, output: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, source, output], capture_output=True, text=True, check=False, cwd=CHECKOUT)


def write_sources(source: Path) -> None:
    for name in ("codebases", "scifact/qrels", "chunking-evaluation"):
        (source / name).mkdir(parents=True)
    chunks = [{"original_index": 0, "content": "fn a() {}"}, {"original_index": 1, "content": "fn b() {}"}]
    (source / "codebases/codebase_chunks.json").write_text(
        json.dumps([{"original_uuid": "u", "content": "fn a() {}\n\nfn b() {}\n", "chunks": chunks}])
    )
    (source / "codebases/evaluation_set.jsonl").write_text(
        json.dumps({"query": "What does b do?\u2028", "golden_chunk_uuids": [["u", 1]]}, ensure_ascii=False)
    )
    (source / "scifact/corpus.jsonl").write_text(
        "".join(json.dumps({"_id": key, "title": f"Title {key}", "text": "An abstract."}) + "\n" for key in "12")
    )
    (source / "scifact/queries.jsonl").write_text('{"_id": "7", "text": "A claim"}\n{"_id": "8", "text": "Of train"}\n')
    (source / "scifact/qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n7\t2\t1\n7\t1\t0\n")
    text = "First line.\r\nGolden \u201c14 words\u201d here.\n"
    (source / "chunking-evaluation/state_of_the_union.md").write_text(text, newline="")
    (source / "chunking-evaluation/README.md").write_text("no document")
    start = text.index("Golden")
    reference = {"content": text[start : start + 17], "start_index": start, "end_index": start + 17}
    with (source / "chunking-evaluation/questions_df.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "references", "corpus_id"])
        writer.writerow(["Which, please?", json.dumps([reference]), "state_of_the_union"])


def test_all_three_sets(tmp_path: Path) -> None:
    write_sources(tmp_path / "source")
    result = prepare(tmp_path / "source", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == 3

    codebases = load_dataset(tmp_path / "out" / "codebases")
    (document,) = codebases.documents
    assert document.chunks == {"u#0": (0, 9), "u#1": (11, 20)}
    assert [chunk.text for chunk in document.ready_made()] == ["fn a() {}", "fn b() {}"]
    assert codebases.questions[0].chunks == ("u#1",)

    scifact = load_dataset(tmp_path / "out" / "scifact")
    assert [(question.text, question.documents) for question in scifact.questions] == [("A claim", ("2",))]
    assert [document.document.title for document in scifact.documents] == ["Title 1", "Title 2"]

    chunking = load_dataset(tmp_path / "out" / "chunking-evaluation")
    (document,) = chunking.documents
    assert (document.id, document.document.title) == ("state_of_the_union", "State of the union")
    (span,) = chunking.questions[0].spans
    assert isinstance(span, GoldenSpan)
    assert document.document.text[span.start : span.end] == "Golden \u201c14 words\u201d"
    assert chunking.questions[0].must_include == (("14",),)


@pytest.mark.parametrize(
    ("question", "excerpt", "wanted"),
    [
        ("How long?", "males live 9 years and females 13 years", ["9 years", "13 years"]),
        ("How many of the 50 came?", "Of the 50, 12 came.", ["12"]),
        ("Who won?", "They were beaten by the Phoenix Coyotes in 2004.", ["2004"]),
        ("Who won?", "They were beaten by the Phoenix Coyotes.", ["Phoenix Coyotes"]),
        ("Who won?", "Columbus won.", []),
        ("How many?", "In 1990, 1991 and 1992 there were 12.", []),
        ("How many?", "A fifth (Smith 2019) of them, 40 in all.", ["40"]),
        ("How much?", "lowe 2019s paid 18%", ["18%"]),
        ("How much?", f"It was 18% {'of this ' * 20}", []),
        ("How much?", "", []),
    ],
)
def test_what_a_right_answer_includes_is_what_a_short_excerpt_adds(
    question: str, excerpt: str, wanted: list[str]
) -> None:
    assert wanted_of(question, excerpt) == wanted


def test_one_set_alone(tmp_path: Path) -> None:
    write_sources(tmp_path / "source")
    result = prepare(tmp_path / "source" / "scifact", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["scifact"]


def test_a_folder_without_a_set(tmp_path: Path) -> None:
    result = prepare(tmp_path, tmp_path / "out")
    assert result.returncode == 1
    assert "contains none of codebases, scifact, chunking-evaluation" in result.stderr
