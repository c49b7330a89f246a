"""The logic of training a reader: where answers are, what is changed, how scores are compared, where it starts."""

import random

import numpy as np
import pytest
import torch

from local_rag.models.onnx_session import OnnxSession
from local_rag.models.own_models import ONNX_FILE
from scripts.training.changes import Values
from scripts.training.compare_readers import gain, order_of, sentence_first, without
from scripts.training.mine_reader_examples import examples, sentences, spans_of
from scripts.training.reader_model import SHIPPED, load_start, load_tokenizer, token_labels
from scripts.training.sets import Entry, Text
from scripts.training.train_reader import area, as_pair, crop, learning_rate, sentence_scores

TEXT = "The dam was built in 1936. It holds 35 cubic kilometres. Twelve people a year drown in it."


def test_sentences_cover_the_text_without_overlap() -> None:
    found = sentences(TEXT + "\n\nNext part")
    assert "".join((TEXT + "\n\nNext part")[a:b] for a, b in found) == TEXT + "\n\nNext part"
    assert len(found) == 4


def test_the_span_of_an_answer_is_its_sentence() -> None:
    assert [TEXT[a:b].strip() for a, b in spans_of(TEXT, ["35 Cubic kilometres"])] == ["It holds 35 cubic kilometres."]


def test_an_answer_over_two_sentences_has_both() -> None:
    assert len(spans_of(TEXT, ["1936. It holds"])) == 2


@pytest.mark.parametrize("answer", ["", "welve people", "1937"])
def test_parts_of_words_and_absent_answers_have_no_span(answer: str) -> None:
    assert spans_of(TEXT, [answer]) == []


def test_a_year_is_changed_into_another_one() -> None:
    changed = Values(["Oslo"]).changed("what happened in 1936", "", random.Random(0))
    assert changed
    assert changed != "what happened in 1936"
    assert changed.startswith("what happened in ")
    assert changed[-4:].isdigit()
    assert 0 < abs(int(changed[-4:]) - 1936) <= 30


def test_a_name_is_changed_into_one_of_the_others() -> None:
    assert Values(["Oslo", "Paris"]).changed("When did Paris flood?", "", random.Random(0)) == "When did Oslo flood?"


def test_the_subject_is_changed_in_a_question_without_capitals() -> None:
    found = Values(["Emma"]).changed("who wrote pride and prejudice", "Pride and Prejudice (novel)", random.Random(0))
    assert found == "who wrote emma"


def test_a_question_without_values_is_not_changed() -> None:
    assert Values(["Oslo"]).changed("how do birds fly", "Wing", random.Random(0)) is None


def test_cropping_keeps_the_answer_and_moves_its_span() -> None:
    text = "Nothing is said here. " * 60 + "The key is under the mat. " + "Nothing more. " * 60
    span = list(spans_of(text, ["under the mat"])[0])
    for seed in range(20):
        cut, spans = crop(text, [span], random.Random(seed), size=300)
        assert len(cut) <= 300
        assert [cut[a:b].strip() for a, b in spans] == ["The key is under the mat."]


def test_a_title_moves_the_spans() -> None:
    pair = as_pair(
        {"question": "how deep"}, {"title": "Lake", "text": "It is 9 m deep.", "spans": [[6, 7]]}, titled=True
    )
    (start, end), text = pair["spans"][0], pair["text"]
    assert text == "Lake\nIt is 9 m deep."
    assert text[start:end] == "9"


def test_tokens_outside_the_passage_have_no_label() -> None:
    offsets = [(0, 0), (0, 3), (0, 0), (0, 4), (5, 9), (0, 0)]
    assert token_labels(offsets, [None, 0, None, 1, 1, None], [[5, 9]]) == [-1, -1, -1, 0, 1, -1]


def test_a_sentence_that_was_cut_off_scores_lowest() -> None:
    found = sentence_scores("One two. Three four.", [(0, 3), (4, 7)], [1.0, 3.0])
    assert found == [2.0, float("-inf")]


def test_area_counts_equal_scores_by_half() -> None:
    assert area([2.0, 1.0], [1.0, 0.0]) == pytest.approx((1 + 1 + 0.5 + 1) / 4)


def test_the_learning_rate_rises_and_falls() -> None:
    rates = [learning_rate(done / 100, 1.0) for done in range(101)]
    assert rates[0] == 0
    assert max(rates) == pytest.approx(1.0, abs=0.05)
    assert rates[-1] < 0.05
    assert rates.index(max(rates)) < 10


def row(**changes: object) -> dict[str, object]:
    """Return a question with three candidates of which the second is golden."""
    base: dict[str, object] = {
        "golden": 1,
        "keys": ["a", "b", "c"],
        "is_golden": [False, True, False],
        "prefixes": ["", "", ""],
        "texts": ["x", TEXT, "z"],
        "spans": [[], [[0, 26]], []],
    }
    return base | changes


def test_gain_is_of_the_new_order() -> None:
    assert gain(row(), [1, 0, 2]) == 100
    assert gain(row(), [0, 1, 2]) == pytest.approx(100 / 1.584962, abs=1e-3)


def test_a_document_counts_once_at_its_best_chunk() -> None:
    assert gain(row(keys=["a", "b", "b"], is_golden=[False, True, True]), [2, 1, 0]) == 100


def test_the_fused_order_counts_beside_the_scores() -> None:
    assert order_of([0.0, 1.0, 2.0], fused=False) == [2, 1, 0]
    assert order_of([0.0, 1.0, 2.0], fused=True) == [0, 1, 2]


def test_the_best_sentence_is_right_if_it_overlaps_the_answer() -> None:
    assert sentence_first(row(), {"asked": 1, "sentences": [3.0, 1.0, 2.0]}) == 100
    assert sentence_first(row(), {"asked": 1, "sentences": [1.0, 3.0, 2.0]}) == 0
    assert sentence_first(row(spans=[[], [], []]), {"asked": 1, "sentences": [1.0, 3.0, 2.0]}) is None
    assert sentence_first(row(), {"asked": None, "sentences": []}) is None


def test_passages_that_were_trained_on_are_left_out_but_golden_ones_stay() -> None:
    scores = {"relevance": [1.0, 2.0, 3.0], "answers": [4.0, 5.0, 6.0], "asked": 1, "sentences": []}
    less, fewer = without(row(), scores, {"x"})
    assert less["keys"] == ["b", "c"]
    assert fewer["relevance"] == [2.0, 3.0]
    assert fewer["asked"] == 0


@pytest.mark.slow
def test_training_starts_from_what_is_shipped() -> None:
    torch.set_num_threads(1)
    texts = [TEXT, "It opens at nine.", "Paris lies on the Seine. It has two million people.", "def f(): return 1"]
    questions = ["When was the dam built?", "how much water does it hold", "Who wrote it?"]
    model, session = load_start().eval(), OnnxSession(SHIPPED / ONNX_FILE, load_tokenizer())
    pairs = [(question, text) for question in questions for text in texts]
    differences, spread = list[float](), list[float]()
    for encoding, outputs in session.run(pairs):
        inputs = (torch.tensor([values]) for values in (encoding.ids, encoding.attention_mask, encoding.type_ids))
        with torch.inference_mode():
            found = model(*inputs)
        for wanted, one in zip(outputs, found, strict=True):
            differences += np.abs(wanted.ravel() - one.numpy().ravel()).tolist()
            spread += wanted.ravel().tolist()
    assert len({round(value) for value in spread}) > 5, "what differs little could be anything"
    assert np.mean(differences) < 0.3, "the int8 activations of the shipped file make the rest"
    assert max(differences) < 2


def test_what_answers_comes_first_in_an_example_and_a_changed_question_has_no_answer() -> None:
    entry = Entry("nq", "When was it built in 1936?", (Text("Dam", TEXT),), (Text("Lake", "No."),), ("1936",), "1936")
    found = list(examples([entry]))
    right, other = found[0]["passages"]
    assert (right["relevant"], right["answers"], other["relevant"], other["answers"]) == (1, 1, 0, 0)
    assert [TEXT[a:b].strip() for a, b in right["spans"]] == ["The dam was built in 1936."]
    assert found[1]["source"] == "nq-changed"
    assert found[1]["passages"][0]["answers"] == 0
    assert found[0]["held_out"] == found[1]["held_out"]


def test_passages_of_a_question_without_answer_answer_nothing() -> None:
    near = Entry("squad2-near", "Who fell in?", others=(Text("Dam", TEXT), Text("Lake", "No.")))
    (found,) = examples([near])
    assert [one["answers"] for one in found["passages"]] == [0]
    assert found["passages"][0]["relevant"] is None
