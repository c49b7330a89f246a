"""The shipped reader: relevance, "answers", and a logit for each sentence in its passage."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from local_rag.errors import ModelError
from local_rag.llama.models_in_use import load_reader
from local_rag.model_records import InstalledModel
from local_rag.models.reader import OnnxReader, PassageReading, TokenReading
from local_rag.models.registry import resolve

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shipped() -> InstalledModel:
    return resolve("minilm-l6-reader", "rerank")


@pytest.fixture(scope="module")
def reader(shipped: InstalledModel) -> OnnxReader:
    loaded = load_reader(shipped)
    assert isinstance(loaded, OnnxReader)
    return loaded


def relevance(reader: OnnxReader, question: str, texts: list[str]) -> list[float]:
    return [one.relevance for one in reader.score(question, texts)]


def test_it_tells_an_answer_from_a_neighbour(reader: OnnxReader) -> None:
    texts = [
        "Sick leave needs a doctor's note from the third day on.",
        "Parents in Norway share 49 weeks of leave at full pay.",
        "The ferry to the island leaves the harbour at seven.",
        "def connect(host, port):\n    return socket.create_connection((host, port))",
    ]
    for question, best in (
        ("How many weeks do parents in Norway get?", 1),
        ("When does the ferry leave?", 2),
        ("How does the code open a connection to a host?", 3),
    ):
        scores = relevance(reader, question, texts)
        assert scores.index(max(scores)) == best


def test_it_finds_the_sentence_that_answers_in_its_passage(reader: OnnxReader) -> None:
    sentences = [
        "The island has about 400 inhabitants, most of whom fish.",
        "Its ferry leaves the harbour at seven in the morning.",
        "It was built in 1961 by a shipyard in Bergen.",
        "Dogs travel at half the fare of a child.",
    ]
    text = " ".join(sentences)
    for question, best in (
        ("When does the ferry leave?", 1),
        ("Who built the ferry?", 2),
        ("What does a dog cost?", 3),
    ):
        (reading,) = reader.score(question, [text])
        logits = [reading.sentence(text.index(one), text.index(one) + len(one)) or 0.0 for one in sentences]
        assert logits.index(max(logits)) == best, question


def test_answers_says_more_of_a_passage_that_answers(reader: OnnxReader) -> None:
    texts = ["The ferry leaves the harbour at seven.", "The ferry was painted white and blue last year."]
    answering, other = reader.score("When does the ferry leave?", texts)
    assert answering.answers > other.answers + 1


def test_a_score_does_not_depend_on_the_other_texts(reader: OnnxReader) -> None:
    texts = [f"The boat number {number} leaves. " + "It carries people. " * number for number in range(20)]
    together = relevance(reader, "when does the boat leave", texts)
    alone = [relevance(reader, "when does the boat leave?", [text])[0] for text in reversed(texts)]
    assert together == pytest.approx(relevance(reader, "when does the boat leave", texts), abs=0)
    fresh = [relevance(reader, "when does the boat leave?", texts)[at] for at in reversed(range(len(texts)))]
    assert alone == pytest.approx(fresh)
    assert max(alone) - min(alone) > 1, "scores so alike would prove nothing"


def test_long_questions_and_passages_are_cut(reader: OnnxReader) -> None:
    long = "tide " * 2000
    assert len(reader.score(long, [long, "", "tide"])) == 3
    assert reader.score("when", []) == []
    (reading,) = reader.score("when", [long])
    assert reading.sentence(0, 4) is not None
    assert reading.sentence(9000, 9004) is None
    (empty,) = reader.score("when", [""])
    assert empty.sentence(0, 1) is None


def test_readings_are_kept_for_the_next_use_and_not_for_ever(shipped: InstalledModel) -> None:
    reader = load_reader(shipped)
    (first,) = reader.score("when", ["the tide"])
    (again,) = reader.score("when", ["the tide"])
    assert again is first
    reader.score("who", [f"the tide {number}" for number in range(300)])
    (later,) = reader.score("when", ["the tide"])
    assert later is not first
    assert later.relevance == first.relevance


def test_a_text_given_twice_is_read_once_and_returned_twice(reader: OnnxReader) -> None:
    one, two = reader.score("which", ["the same", "the same"])
    assert one is two


def test_the_logit_of_a_sentence_is_the_mean_of_the_tokens_in_it() -> None:
    starts, ends = np.array([0, 4, 9, 12]), np.array([3, 8, 10, 15])
    reading = TokenReading(1.0, 2.0, starts, ends, np.array([1.0, 3.0, -1.0, 7.0]))
    assert reading.sentence(0, 8) == 2.0
    assert reading.sentence(4, 9) == 3.0
    assert reading.sentence(8, 9) == -1.0, "nothing that was read: the least"
    assert reading.sentence(10, 20) == 7.0, "cut off within"
    assert reading.sentence(15, 20) is None


def test_a_cross_encoder_says_the_same_of_all_sentences() -> None:
    reading = PassageReading(1.5)
    assert (reading.answers, reading.sentence(3, 9)) == (1.5, 1.5)


@pytest.mark.parametrize("damage", [b"", b"no model at all"])
def test_a_damaged_onnx_file_is_one_sentence(tmp_path: Path, shipped: InstalledModel, damage: bytes) -> None:
    shutil.copy(shipped.path / "tokenizer.json", tmp_path)
    (tmp_path / "model.onnx").write_bytes(damage)
    with pytest.raises(ModelError, match="local-rag models verify"):
        load_reader(replace(shipped, path=tmp_path))
