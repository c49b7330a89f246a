"""The look-alike set: made by its script, and hard for the reason it claims to be."""

import itertools
import json
import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from local_rag.evaluation.dataset import load_dataset
from local_rag.reading.split import Splitting

ROOT = Path(__file__).resolve().parents[2]
SET = ROOT / "corpus" / "look-alikes"
# What a question tells documents apart by; of the others some are plain words that may come again.
NAMES = {"site", "contractor", "society", "model", "maker", "bridge", "river", "address", "tenant", "pond", "year"}


@cache
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "corpus" / "make_look_alikes.py"))


def families() -> list[list[Any]]:
    return [script()["make_family"](path) for path in sorted(script()["SOURCE"].glob("*.toml"))]


def named_in(template: str) -> set[str]:
    return set(re.findall(r"<(\w+)>", template))


def read(name: str) -> list[Any]:
    return [json.loads(line) for line in (SET / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_committed_set_is_what_the_script_makes() -> None:
    assert script()["make"]() == (read("documents"), read("questions"), read("facts"))


def test_size_and_parts() -> None:
    dataset = load_dataset(SET)
    assert (len(dataset.documents), len(dataset.questions)) == (60, 120)
    assert len({question.text for question in dataset.questions}) == len(dataset.questions)
    parts = [question.part for question in dataset.questions]
    assert parts.count("choose") >= 50
    assert min(parts.count("report"), parts.count("locked")) >= 20
    assert [fact["document"] for fact in read("facts")] == [document.id for document in dataset.documents]


def naming_section(document: Any) -> int:
    """Return the number of the one section that says what a document is about, 0 for its opening."""
    sections = document.text.split("\n## ")
    names = [document.values[name].lower() for name in sorted(NAMES & document.values.keys())]
    (place,) = (number for number, section in enumerate(sections) if all(name in section.lower() for name in names))
    rest = "\n".join(section for number, section in enumerate(sections) if number != place)
    assert not [name for name in names if re.search(rf"\b{re.escape(name)}\b", rest.lower())], "is said again"
    return place


def test_what_a_document_is_about_stands_in_one_section_alone() -> None:
    for document in (document for family in families() for document in family):
        naming_section(document)
        assert all(document.values[name] in document.context for name in named_in(document.family["context"]))


def test_some_families_say_it_in_the_midst_in_a_table_and_at_the_end() -> None:
    places = {}
    for family in families():
        (place,) = {naming_section(document) for document in family}
        section = family[0].text.split("\n## ")[place]
        last = place == family[0].text.count("\n## ")
        kind = "opening" if not place else "end" if last else "table" if "| --- |" in section else "midst"
        places[family[0].family["form"]] = kind
    assert sorted(places.values()) == ["end", "midst", *["opening"] * 4, "table"], places


def test_siblings_share_headings_and_differ_in_most_values() -> None:
    for family in families():
        headings = {tuple(line for line in document.text.splitlines() if line.startswith("#")) for document in family}
        assert len(headings) == 1
        for one, other in itertools.pairwise(family):
            same = [slot for slot in one.values if one.values[slot] == other.values[slot]]
            assert len(same) < len(one.values) / 4


def test_every_template_was_filled() -> None:
    texts = [document.text + document.context for family in families() for document in family]
    lines = [line for text in texts for line in text.splitlines() if not line.startswith("| ")]
    assert not [line for line in lines if set(line) & set("<>{|}")]
    assert not [text for text in texts if set(text) & set("<>{}")]


@pytest.mark.slow
def test_no_chunk_with_an_answer_says_what_it_is_about(splitting: Splitting) -> None:
    made = {fact["document"]: fact["context"] for fact in read("facts")}
    by_context = {document.context: document for family in families() for document in family}
    dataset = load_dataset(SET)
    documents = {document.id: document.document for document in dataset.documents}
    for question in dataset.questions:
        (span,) = question.spans
        document = by_context[made[span.document]]
        names = [document.values[name].lower() for name in NAMES & document.values.keys()]
        holders = [
            chunk
            for chunk in splitting.split(documents[span.document])
            if min(chunk.end, span.end) > max(chunk.start, span.start)
        ]
        assert holders
        for chunk in holders:
            assert not [name for name in names if name in chunk.text.lower()], question.text
