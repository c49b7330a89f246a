"""The look-alike set: made by its script, and hard for the reason it claims to be."""

import itertools
import json
import runpy
from functools import cache
from pathlib import Path
from typing import Any

from local_rag.evaluation.dataset import load_dataset
from local_rag.reading.split import Splitting

ROOT = Path(__file__).resolve().parents[2]
SET = ROOT / "corpus" / "look-alikes"
# What a question tells documents apart by; of the others some are plain words that may come again.
NAMES = {"site", "contractor", "society", "model", "maker", "bridge", "river", "address", "tenant", "pond", "year"}


@cache
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "make_look_alikes.py"))


def families() -> list[list[Any]]:
    return [script()["make_family"](path) for path in sorted(script()["SOURCE"].glob("*.toml"))]


def read(name: str) -> list[Any]:
    return [json.loads(line) for line in (SET / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_committed_set_is_what_the_script_makes() -> None:
    assert script()["make"]() == (read("documents"), read("questions"), read("facts"))


def test_size_and_halves() -> None:
    dataset = load_dataset(SET)
    assert (len(dataset.documents), len(dataset.questions)) == (60, 120)
    assert len({question.text for question in dataset.questions}) == len(dataset.questions)
    halves = [question.part for question in dataset.questions]
    assert min(halves.count("choose"), halves.count("report")) >= 50
    assert [fact["document"] for fact in read("facts")] == [document.id for document in dataset.documents]


def test_what_a_document_is_about_stands_before_its_first_section_alone() -> None:
    for document in (document for family in families() for document in family):
        opening, rest = document.text.split("\n## ", maxsplit=1)
        for name in NAMES & document.values.keys():
            value = document.values[name]
            assert value.lower() in opening.lower(), (value, "is not said")
            assert value not in rest, (value, "is said again")
            assert value in document.context


def test_siblings_share_headings_and_differ_in_most_values() -> None:
    for family in families():
        headings = {tuple(line for line in document.text.splitlines() if line.startswith("#")) for document in family}
        assert len(headings) == 1
        for one, other in itertools.pairwise(family):
            same = [slot for slot in one.values if one.values[slot] == other.values[slot]]
            assert len(same) < len(one.values) / 4


def test_every_template_was_filled() -> None:
    texts = [document.text + document.context for family in families() for document in family]
    assert not [text for text in texts if set(text) & set("<>{|}")]


def test_no_chunk_with_an_answer_says_what_it_is_about(splitting: Splitting) -> None:
    documents = {document.id: document.document for document in load_dataset(SET).documents}
    openings = {name: documents[name].text.index("\n## ") for name in documents}
    for question in load_dataset(SET).questions:
        (span,) = question.spans
        holders = [
            chunk
            for chunk in splitting.split(documents[span.document])
            if min(chunk.end, span.end) > max(chunk.start, span.start)
        ]
        assert holders
        assert min(chunk.start for chunk in holders) >= openings[span.document], question.text
