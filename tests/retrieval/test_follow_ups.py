"""Follow-ups: searched with some weight of the questions before, and read behind the last of them."""

from pathlib import Path

import numpy as np
import pytest

from local_rag.answering.answerer import Answerer
from local_rag.answering.selection import whole_sources
from local_rag.asking import Turn
from local_rag.model_records import InstalledModel
from local_rag.retrieval.question import Question
from local_rag.retrieval.searcher import FollowUpTuning, follow_up_query
from local_rag.text.tokens import keyword_tokens
from tests.fakes import FakeEmbedder, FakeGenerator, passage

EMBEDDER = FakeEmbedder(InstalledModel(name="e", role="embed", path=Path("e"), identity="e", context_length=256))
SOURCES = whole_sources("?", [[passage("26 weeks in Norway.", title="Leave")]])


def test_a_question_by_itself_is_searched_as_ever() -> None:
    vector, terms, weights = follow_up_query(EMBEDDER, "Leave in Norway?")
    assert np.array_equal(vector, EMBEDDER.embed_query("Leave in Norway?"))
    assert (terms, weights) == (["leav", "norway"], None)


def test_the_previous_and_the_first_question_count_for_less() -> None:
    tuning = FollowUpTuning(terms=0.3, vector=0.5)
    vector, terms, weights = follow_up_query(
        EMBEDDER, "And Norway?", ["Leave in Ireland?", "Why?", "Half pay?"], tuning
    )
    assert terms == ["norway", "half", "pay", "leav", "ireland"]
    assert weights == [1.0, 0.3, 0.3, 0.3, 0.3]
    wanted = EMBEDDER.embed_query("And Norway?") + 0.5 * EMBEDDER.embed_query("Half pay?")
    assert vector == pytest.approx(wanted / np.linalg.norm(wanted))


def test_a_question_that_is_unlike_the_one_before_opens_a_new_subject() -> None:
    alike, unlike = FollowUpTuning(new_subject_below=0.2), FollowUpTuning(new_subject_below=0.9)
    assert follow_up_query(EMBEDDER, "leave in norway", ["leave in ireland"], alike)[2] is not None
    vector, terms, weights = follow_up_query(EMBEDDER, "leave in norway", ["leave in ireland"], unlike)
    assert (terms, weights) == (["leav", "norway"], None)
    assert np.array_equal(vector, EMBEDDER.embed_query("leave in norway"))


def test_a_first_question_that_is_also_the_previous_one_counts_once() -> None:
    _, terms, weights = follow_up_query(EMBEDDER, "And Norway?", ["Leave in Ireland?"])
    assert terms == [*keyword_tokens("And Norway?"), *keyword_tokens("Leave in Ireland?")]
    assert weights == [1.0, 0.3, 0.3]


def prompt(before: Turn | None) -> str:
    generator = FakeGenerator(lambda _prompt: "26 weeks.")
    answer = Answerer(lambda: generator).answer(Question("And Norway?"), SOURCES, before=before)
    assert answer.question == "And Norway?"
    return generator.prompts[-1]


def test_the_model_reads_the_question_before_on_a_line() -> None:
    text = prompt(Turn("Leave in\nIreland?", "26 weeks.\n\nAt half pay. [1] [2, 3]"))
    wanted = "Question: Leave in Ireland?\nQuestion: And Norway?\n"
    assert text.count(wanted) == 2
    assert text.index(wanted) < text.index("26 weeks in Norway.") < text.rindex(wanted)
    assert "half pay" not in text
    assert prompt(None).count("Question:") == 2


def test_what_was_said_before_is_bounded() -> None:
    assert len(prompt(Turn("long " * 5000, "longer " * 5000))) < len(prompt(None)) + 800
