"""How citations move: which source a citation goes to, and in which order the sentences of an answer change."""

from collections.abc import Set

import pytest

from local_rag.verification.move import better_citation, move_citations
from local_rag.verification.sentences import Sentence, cited_sentences

NOTHING: Set[str] = frozenset()
SEVEN, BOTH = frozenset({"7:00"}), frozenset({"7:00", "Norway"})


@pytest.mark.parametrize(
    ("own", "scores", "lacking", "moves_to"),
    [
        # Its own citation moves only to a clearly higher score ...
        (True, [0.0, 9.0], [NOTHING, NOTHING], 2),
        (True, [0.0, 4.0], [NOTHING, NOTHING], 1),
        (True, [9.0, 0.0], [SEVEN, NOTHING], 1),
        # ... and to a source that lacks nothing that the cited one has.
        (True, [0.0, 9.0], [SEVEN, SEVEN], 2),
        (True, [0.0, 9.0], [BOTH, SEVEN], 2),
        (True, [0.0, 9.0], [SEVEN, BOTH], 1),
        (True, [0.0, 9.0], [NOTHING, SEVEN], 1),
        # An inherited citation moves to any higher score ...
        (False, [0.0, 1.0], [SEVEN, NOTHING], 2),
        (False, [1.0, 1.0], [SEVEN, NOTHING], 1),
        # ... from a source that lacks a fact to one that has all of them.
        (False, [0.0, 9.0], [NOTHING, NOTHING], 1),
        (False, [0.0, 9.0], [BOTH, SEVEN], 1),
        # Only the source with the highest score is considered, the first one if there are several.
        (True, [0.0, 9.0, 8.0], [NOTHING, SEVEN, NOTHING], 1),
        (True, [0.0, 9.0, 9.0], [NOTHING, NOTHING, NOTHING], 2),
    ],
)
def test_where_a_citation_moves(own: bool, scores: list[float], lacking: list[Set[str]], moves_to: int) -> None:
    assert better_citation(1, scores, lambda number: lacking[number - 1], own=own) == moves_to


def nothing(_sentence: Sentence, _number: int) -> Set[str]:
    return NOTHING


def test_a_sentence_inherits_the_citation_to_which_its_neighbour_moved() -> None:
    sentences = cited_sentences("So it is. It is 7 [1].")
    moved, changes = move_citations(sentences, [[0.0, 0.0], [0.0, 9.0]], nothing)
    assert [sentence.text for sentence in moved] == ["So it is. ", "It is 7 [2]."]
    assert [sentence.citations for sentence in moved] == [(2,), (2,)]
    assert changes == [(1, 2)]


def test_sentences_that_cite_several_sources_or_have_no_scores_stay() -> None:
    sentences = cited_sentences("It is 7 [1, 2]. It is 8 [1].")
    moved, changes = move_citations(sentences, [[0.0, 9.0], []], nothing)
    assert (moved, changes) == (sentences, [])


def test_removed_numbers_belong_to_the_sentence_in_which_they_stood() -> None:
    sentences = cited_sentences("At seven. Or eight.", [(0, 9), (8, 7), (18, 6)])
    assert [sentence.removed for sentence in sentences] == [(9, 7), (6,)]
