"""Which of the passages that were found are read."""

from local_rag.asking.select import likely_sources
from local_rag.records import Hit, Passage


def passages(*scores: float | None) -> list[Passage]:
    def hits(score: float | None) -> tuple[Hit, ...]:
        return (Hit("fused", 1, 0.1), *([] if score is None else [Hit("rerank", 1, score)]))

    return [
        Passage(key, "a.md", "", "text", "", "", (), None, 1, 1, 0.1, hits(score)) for key, score in enumerate(scores)
    ]


def kept(*scores: float | None, near: float = 2.0) -> list[int]:
    return [passage.chunk_id for passage in likely_sources(passages(*scores), near)]


def test_what_the_reranker_finds_far_less_fitting_is_not_read() -> None:
    assert kept(5.0, 4.0, 1.0, 3.5, -2.0) == [0, 1, 3]


def test_the_first_two_are_read_whatever_their_scores() -> None:
    assert kept(-3.0, -8.0, 5.0, 0.0) == [0, 1, 2], "the fused rank counts as well"
    assert kept(9.0) == [0]
    assert kept() == []


def test_without_a_reranker_all_are_read() -> None:
    assert kept(None, None, None) == [0, 1, 2]
    assert kept(5.0, 4.0, -9.0, near=0) == [0, 1, 2], "how far is far is not known of every reranker"


def test_passages_that_were_not_scored_are_not_read() -> None:
    assert kept(1.0, 0.5, 0.0, None) == [0, 1, 2]
