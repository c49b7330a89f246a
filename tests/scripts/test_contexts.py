"""scripts/benchmarks/contexts.py: contexts that no model wrote, and what is reported of each way."""

import json
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from local_rag.errors import LocalRagError
from local_rag.evaluation.dataset import Dataset, load_dataset, write_dataset
from local_rag.evaluation.evaluate import index_dataset
from local_rag.library import Library, Parts
from scripts.benchmarks import contexts as script
from tests.fakes import FakeEmbedder, FakeGenerator, generating, quick_vocabulary

FORM = "The contractor comes every {}.\n\nThe keys hang behind the door of the boiler room.\n\n"
SITES = {"scan-1.md": ("Harrow", "week"), "scan-2.md": ("Lindum", "month"), "scan-3.md": ("Pellow", "quarter")}


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """Three documents of two chunks: only the first says which site they are about."""
    documents, questions, facts = [], [], []
    for name, (site, interval) in SITES.items():
        first, second = f"This is about {site}.\n\n", FORM.format(interval)
        chunks = [{"id": f"{name}#{n}", "text": text} for n, text in enumerate((first, second))]
        documents.append({"id": name, "title": "Agreement", "text": first + second, "chunks": chunks})
        questions.append({"question": f"How often does the contractor come to {site}?", "golden": [f"{name}#1"]})
        facts.append({"document": name, "context": f"From the agreement for {site}."})
    questions.append({"question": "Who pays?", "golden": []})
    write_dataset(tmp_path / "sites", documents, questions)
    (tmp_path / "sites" / "facts.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    return load_dataset(tmp_path / "sites")


def parts(generator: FakeGenerator) -> Parts:
    return Parts(load_embedder=FakeEmbedder, open_engine=generating(generator), open_vocabulary=quick_vocabulary)


def measured(dataset: Dataset, folder: Path, way: str, generator: FakeGenerator | None = None) -> Any:
    with_fakes = parts(generator or FakeGenerator())
    library = folder / ("without-model" if way in script.WITHOUT_MODEL else way)
    return script.measure(dataset, way, library, rerank=False, facts=None, parts=with_fakes, profile="tiny")


@pytest.mark.slow
def test_questions_whose_chunks_all_were_given_contexts_are_reported_by_themselves(
    dataset: Dataset, tmp_path: Path
) -> None:
    facts = tmp_path / "facts.jsonl"
    facts.write_text("".join(json.dumps({"chunk": f"scan-{n}.md#1", "context": "Of Lindum."}) + "\n" for n in (2, 3)))
    given = script.given_questions(dataset, facts)
    assert given == {"How often does the contractor come to Lindum?", "How often does the contractor come to Pellow?"}
    settings: dict[str, Any] = {"rerank": False, "facts": facts, "parts": parts(FakeGenerator()), "profile": "tiny"}
    ways = {way: script.measure(dataset, way, tmp_path / "library", **settings) for way in ("headings", "perfect")}
    assert [way["halves"]["given"]["questions"] for way in ways.values()] == [2, 2]
    assert "given" in {one["part"] for one in script.comparisons(ways, given)}
    assert script.given_questions(dataset, None) == set(), "where documents were, or nothing"


@pytest.mark.slow
def test_given_contexts_are_those_of_the_chunks_and_no_model_writes(dataset: Dataset, tmp_path: Path) -> None:
    generator = FakeGenerator(lambda _prompt: " is written by a model.")
    way = measured(dataset, tmp_path, "perfect", generator)
    assert generator.prompts == []
    assert (way["chunks"], way["generated_contexts"]) == (6, 6)
    assert "context" not in way["models"]
    with Library(tmp_path / "without-model", parts=parts(generator), context="auto", profile="tiny") as library:
        for passage in library.search("the contractor", rerank=False):
            assert passage.context == f"From the agreement for {SITES[Path(passage.path).name][0]}."


def test_a_context_for_a_chunk_goes_before_that_for_its_document(dataset: Dataset, tmp_path: Path) -> None:
    with Library(tmp_path / "library", parts=parts(FakeGenerator()), context="headings", profile="tiny") as library:
        chunks = index_dataset(dataset, library, lambda _progress: None)
    facts = tmp_path / "facts.jsonl"
    facts.write_text(
        '{"chunk": "scan-2.md#1", "context": "Visits."}\n{"document": "scan-2.md", "context": "Lindum."}\n'
    )
    given = script.perfect(dataset, chunks, facts)
    assert [given[key] for key in sorted(chunks)] == ["", "", "Lindum.", "Visits.", "", ""]
    with pytest.raises(LocalRagError, match="is not a file of facts"):
        script.perfect(dataset, chunks, tmp_path / "missing.jsonl")


def test_terms_are_those_that_set_a_document_apart(dataset: Dataset, tmp_path: Path) -> None:
    with Library(tmp_path / "library", parts=parts(FakeGenerator()), context="headings", profile="tiny") as library:
        chunks = index_dataset(dataset, library, lambda _progress: None)
    for way in (script.tf_idf, script.rare):
        contexts = way(dataset, chunks)
        for key, (document, _) in chunks.items():
            assert contexts[key].split(", ")[:2] == list(SITES[document]), way
            assert len(contexts[key].split(", ")) == script.TERMS


def test_the_lead_is_the_first_paragraph_cut_between_words(tmp_path: Path) -> None:
    long = "word " * script.LEAD_CHARACTERS
    texts = ["# Title\n\nFirst\nline.\n\nSecond.", f"# Title\n\n{long}", "# Title\n"]
    documents = [{"id": f"{number}.md", "text": text} for number, text in enumerate(texts)]
    write_dataset(tmp_path / "leads", documents, [])
    leads = script.lead(load_dataset(tmp_path / "leads"), {number: (f"{number}.md", ANY) for number in range(3)})
    assert leads[0] == "First line."
    assert set(leads[1].split(" ")) == {"word"}
    assert script.LEAD_CHARACTERS - 5 <= len(leads[1]) <= script.LEAD_CHARACTERS
    assert leads[2] == ""


def test_a_model_writes_once_and_its_time_is_kept(dataset: Dataset, tmp_path: Path) -> None:
    generator = FakeGenerator(lambda _prompt: " is written by a model.")
    first = measured(dataset, tmp_path, "auto", generator)
    assert len(generator.prompts) == first["generated_contexts"] == 6
    assert first["models"]["context"]
    again = measured(dataset, tmp_path, "auto", generator)
    assert len(generator.prompts) == 6
    assert again["seconds_writing"] == first["seconds_writing"]


def test_ways_are_compared_by_halves(dataset: Dataset, tmp_path: Path) -> None:
    ways = {way: measured(dataset, tmp_path, way) for way in ("none", "headings", "perfect")}
    for way in ways.values():
        counted = {part: half["questions"] for part, half in way["halves"].items()}
        parts = Counter(question.part for question in dataset.questions if question.has_golden)
        assert counted == {"all": 3} | {part: parts[part] for part in ("choose", "report") if parts[part]}
        assert way["halves"]["all"]["ideal_reranking"]["recall@5"] == 100
    tests = [test for test in script.comparisons(ways, ()) if test["part"] == "all"]
    assert [(test["way"], test["against"]) for test in tests] == [
        ("headings", "none"), ("perfect", "none"), ("perfect", "headings"),
    ]  # fmt: skip
    gained = tests[2]["stages"]["keyword"]["mrr@10"]["difference"]
    means = [ways[way]["halves"]["all"]["stages"]["keyword"]["mrr@10"] for way in ("perfect", "headings")]
    assert gained == pytest.approx(means[0] - means[1])
    assert any(line.startswith("perfect") for line in script.table(ways))


def test_ideal_reranking_and_the_better_list() -> None:
    rows = [
        {"question": "one", "golden": 2, "ranks": {"dense": [3, 7], "keyword": [20], "fused": [6, 9]}},
        {"question": "two", "golden": 1, "ranks": {"dense": [], "keyword": [2], "fused": [151]}},
    ]
    summary = script.summary(rows)
    assert summary["ideal_reranking"]["recall@5"] == 50
    assert summary["better_list"]["recall@5"] == (50 + 100) / 2
    assert summary["better_list"]["mrr@10"] == pytest.approx((1 / 3 + 1 / 2) / 2)


def test_what_was_measured_on_another_set_is_not_compared(dataset: Dataset, tmp_path: Path) -> None:
    path, content = tmp_path / "report.json", script.content_of(dataset)
    assert script.load_ways(path, content) == {}
    path.write_text(json.dumps({"content": content, "ways": {"none": {}}}))
    assert script.load_ways(path, content) == {"none": {}}
    with (dataset.folder / "questions.jsonl").open("a") as file:
        file.write('{"question": "Which?", "golden": []}\n')
    assert script.load_ways(path, script.content_of(dataset)) == {}
